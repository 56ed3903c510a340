"""CRAG-MM's arms as parameters name them, the control with other pictures, and
differences on some of the turns.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from factories import judged_arms
from talks import make_talks, page

from vrag_kit.analysis import cluster_means, report_table
from vrag_kit.errors import VragError
from vrag_kit.papers import crag_mm as paper
from vrag_kit.papers import published_gains
from vrag_kit.papers.crag_mm.parameters import (
    open_conversation_config,
    open_search_pipeline,
)
from vrag_kit.runner.params import declared_parameters
from vrag_kit.runner.plan import all_notebooks
from vrag_kit.synthetic import crag_mm
from vrag_kit.types import Benchmark

SEARCH = {"image_k": 3, "web_k": 2, "similarity_threshold": 0.5, "rewrite": "reference"}
SEARCH |= {"rewriter": "", "image_service": "", "web_service": "words"}
PROMPTS = {"prompt_set": "paper", "image_context_chars": 900, "web_context_chars": 800}
TALK = {
    "history": "generated",
    "early_stopping": False,
    "max_answer_tokens": 75,
    "answer_tokenizer": "",
}
SCORES = {"R": 1.0, "M": 0.0, "W": -1.0}
SAID = {"none": ("RWW", "RMR"), "generated": ("RRW", "RMR")}
"""History → the turns of two conversations."""


@pytest.fixture
def talks(tmp_path: Path) -> Benchmark:
    return make_talks(tmp_path, {"a": 3, "b": 3, "c": 1})


@pytest.fixture
def two(tmp_path: Path) -> Benchmark:
    return make_talks(tmp_path, {"a": 3, "b": 3})


@pytest.fixture
def judged(two: Benchmark) -> pd.DataFrame:
    told = {"query_id": list(two.queries), "group": [name[0] for name in two.queries]}
    said = {history: [SCORES[each] for each in "".join(SAID[history])] for history in SAID}
    return judged_arms(said, ["history"], setting="task_3", score_min=-1.0, score_max=1.0, **told)


def test_all_turns_of_a_session_get_the_picture_of_one_other(talks: Benchmark) -> None:
    swapped = paper.search.with_mismatched_images(talks)
    own = {name: query.image for name, query in talks.queries.items()}
    lent = {name: query.image for name, query in swapped.queries.items()}
    assert all(lent[name] != own[name] for name in own)
    assert lent["a-0"] == lent["a-1"] == lent["a-2"]
    assert set(lent.values()) <= set(own.values())
    texts = [query.text for query in talks.queries.values()]
    assert [query.text for query in swapped.queries.values()] == texts
    assert swapped.fingerprint != talks.fingerprint
    again = paper.search.with_mismatched_images(talks)
    assert {name: query.image for name, query in again.queries.items()} == lent


def test_some_conversations_are_taken_whole(talks: Benchmark) -> None:
    labelled = replace(talks, qrels={name: {} for name in talks.queries})
    some = paper.oracles.sample_questions(labelled, 2)
    groups = set(some.groups.values())
    assert len(groups) == 2
    assert list(some.queries) == [name for name in talks.queries if name[0] in groups]
    assert paper.oracles.sample_questions(labelled, None).queries == talks.queries


def test_a_session_without_another_has_no_control(tmp_path: Path) -> None:
    with pytest.raises(VragError, match="no other shows another entity"):
        paper.search.with_mismatched_images(make_talks(tmp_path, {"a": 2}))


@pytest.mark.parametrize("number", ["52", "53", "54", "55", "56", "58"])
def test_the_notebooks_ask_the_drawn_editions_as_60_does(number: str) -> None:
    (book,) = [book for book in all_notebooks() if book.name.startswith(number)]
    names = declared_parameters(book)
    search = names["image_search"] | names["web_search"]
    assert {key: search[key] for key in crag_mm.SEARCH} == crag_mm.SEARCH
    assert (names["prompts"], names["conversation"]) == (
        crag_mm.PROMPTS,
        crag_mm.CONVERSATION,
    )


def test_parameters_name_arms_and_talks(talks: Benchmark, tmp_path: Path) -> None:
    pages = {each.doc_id: each for each in [page("w", "Van", "A van has wheels.")]}
    world = replace(talks, corpus=pages)
    how = {"answers_dir": tmp_path, "cache_dir": tmp_path, "hardware": {}}
    arms = open_search_pipeline(world, SEARCH, PROMPTS, **how)
    assert arms.images is None
    assert arms.web is not None
    assert (arms.image_k, arms.web_k, arms.threshold, arms.rewrite) == (3, 2, 0.5, "reference")
    with pytest.raises(VragError, match="no rewriter"):
        open_search_pipeline(world, {**SEARCH, "rewrite": "retrieved"}, PROMPTS, **how)
    talk = open_conversation_config(PROMPTS, TALK, arms)
    assert (talk.history, talk.cut, talk.search) == ("generated", None, arms)
    cut = open_conversation_config(PROMPTS, {**TALK, "answer_tokenizer": "some"}, arms).cut
    assert cut is not None
    assert (cut.tokens, cut.tokenizer) == (75, "some")


def test_slices_are_compared_turn_by_turn(judged: pd.DataFrame, two: Benchmark) -> None:
    """By hand: with own answers turn 1 of a is right and not wrong; the others stay."""
    labels = {name: "later" if query.turn else "first" for name, query in two.queries.items()}
    how = {"arm": "history", "by": ["model", "setting"], "slices": labels}
    gains = paper.results.truthfulness_gains(judged, two, baseline="none", **how)
    found = gains.set_index(["slice", "metric"])["value"].round(4).to_dict()
    assert found["later", "accuracy"] == 1 / 4
    assert found["later", "hallucination"] == -1 / 4
    assert found["first", "accuracy"] == 0
    # after the stop, later turns: none (−1 − 1) / 2 and (0 + 1) / 2; own (1 − 1) / 2 and 1 / 2
    assert found["later", "truthfulness"] == 0.5
    assert gains.set_index(["slice", "metric"]).loc[("later", "accuracy"), "n"] == 4


def test_turns_that_need_history_are_those_that_the_data_tell(
    judged: pd.DataFrame, two: Benchmark
) -> None:
    labels = paper.conversations.needs_history(two)
    assert set(labels.values()) == {"not annotated"}
    turns = paper.conversations.conversation_values(
        judged, two, metrics=("accuracy",), by=["model", "history"], slices=labels
    )
    shares = cluster_means(turns, ["metric", "slice", "model", "history"])
    right = shares.query("metric == 'accuracy'").set_index("history")
    assert right["value"].round(4).to_dict() == {"none": 0.5, "generated": 0.6667}
    table = report_table(shares, rows=["slice", "history"])
    assert table.loc[("not annotated", "generated"), "accuracy"].startswith("0.7 [")
    assert table.loc[("not annotated", "generated"), "accuracy"].endswith("(n = 6)")


def test_a_table_tells_p_and_what_failed() -> None:
    numbers = {"value": 2.0, "ci_low": 1.0, "ci_high": 3.0, "n": 4, "p_holm": 0.012}
    table = pd.DataFrame([{"arm": "x", "metric": "m", **numbers, "n_failed": 1}])
    cell = report_table(table, rows=["arm"]).loc["x", "m"]
    assert cell == "2.0 [1.0, 3.0] (n = 4), p 0.012; 1 failed"


def test_printed_gains_are_differences_of_printed_means() -> None:
    """Table 8, GPT-5 mini: truthfulness 31.5 with both searches."""
    gains = published_gains("crag_mm", 8, ["mm_llm", "task_1"])
    assert set(zip(gains["baseline"], gains["setting"], strict=True)) == {
        ("mm_llm", "task_1"),
        ("mm_llm", "task_2"),
        ("task_1", "mm_llm"),
        ("task_1", "task_2"),
    }
    chosen = gains.query("model == 'GPT-5 Mini' and metric == 'truthfulness'")
    both = chosen.set_index(["baseline", "setting"])["value"]
    assert both["mm_llm", "task_2"] == pytest.approx(
        both["mm_llm", "task_1"] + both["task_1", "task_2"]
    )
