"""CRAG-MM's answers taken apart: by slice, by what was found, by what an oracle tells, and
a judge's three classes; each against counts by hand.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import factories
import numpy as np
import pandas as pd
import pytest
from factories import judged_arms
from scipy import stats
from talking_process import listed
from talks import entry

from vrag_kit.benchmarks import ImageFile
from vrag_kit.dry_run import dry_run
from vrag_kit.errors import VragError
from vrag_kit.papers import crag_mm as paper
from vrag_kit.papers import published
from vrag_kit.papers.crag_mm.oracles import LADDER, NONE, PARTS
from vrag_kit.papers.crag_mm.results import RETRIEVED
from vrag_kit.papers.crag_mm.search import SearchPipeline
from vrag_kit.types import Benchmark, Query

SCORES = {"R": 1.0, "M": 0.0, "W": -1.0}
GRAPH = (
    entry("kg-1", ("Talia ensis", "")),  # 0.95, the others 0.05 less each
    entry("kg-2", ("Talia osa", "")),
    entry("kg-3", ("Bora", "")),
    entry("kg-4", ("Cara", "")),
)
IMAGE = ImageFile(Path("never-opened.png"))


def asked(*told: tuple[str, str], entity: str = "", needs: bool | None = None) -> Benchmark:
    """Single questions of (name, quality)."""
    queries = []
    for name, quality in told:
        marks = {"image_quality": quality, "egocentric": True, "needs_history": needs}
        asked = Query(query_id=name, text="?", group=name, entity=entity, metadata=marks)
        queries.append(asked)
    return factories.benchmark(queries, name="Drawn")


def judged(benchmark: Benchmark, **letters: str) -> pd.DataFrame:
    """One setting a keyword, a letter (R, M, W) a query."""
    scores = {setting: [SCORES[letter] for letter in word] for setting, word in letters.items()}
    told = {"query_id": list(benchmark.queries), "group": [*benchmark.groups.values()]}
    return judged_arms(
        scores, ["setting"], model="mine", k=0, score_min=-1.0, score_max=1.0, **told
    )


def test_slices_are_those_that_the_data_tell_in_the_papers_order() -> None:
    benchmark = asked(("a", "rotated"), ("b", "low light"), ("c", ""), ("d", "normal"))
    labels = paper.results.slice_labels(benchmark)
    assert list(labels) == [
        "low_quality",
        "image_quality",
        "image_type",
    ]  # no history of a question
    order = list(dict.fromkeys(labels["image_quality"].values()))
    assert order == ["normal", "low light", "rotated", "not annotated"]
    table = paper.conversations.conversation_means(
        judged(benchmark, task_2="RWRM"), benchmark, slices=labels["image_quality"]
    )
    assert list(zip(table["slice"], table["value"], strict=True)) == [
        ("normal", 0.0), ("low light", -1.0), ("rotated", 1.0), ("not annotated", 1.0)
    ]  # fmt: skip


def test_a_drop_is_the_difference_of_two_slices_and_is_tested_unpaired_over_sessions() -> None:
    names = [(f"q{i}", "normal" if i % 2 else "blurred") for i in range(160)]
    benchmark = asked(*names)
    letters = "".join("RRMW"[(i // 2) % 4] if i % 2 else "WMRW"[(i // 2) % 4] for i in range(160))
    table = judged(benchmark, task_2=letters)
    labels = paper.results.slice_labels(benchmark)["low_quality"]
    (row,) = paper.results.slice_contrast(
        table, benchmark, labels, paper.results.LOW_LESS_NORMAL
    ).to_dict("records")
    bad, good = np.array([-1, 0, 1, -1] * 20), np.array([1, 1, 0, -1] * 20)
    assert row["value"] == pytest.approx(bad.mean() - good.mean())  # −0.25 − 0.25
    assert (row["n"], row["n_baseline"], row["arm"]) == (80, 80, "task_2")
    welch = stats.ttest_ind(bad, good, equal_var=False)
    interval = (row["ci_low"], row["ci_high"])
    assert interval == pytest.approx(tuple(welch.confidence_interval()), abs=0.02)
    assert row["p"] == row["p_holm"] == pytest.approx(welch.pvalue, abs=0.001)
    alike = judged(benchmark, task_2="RW" * 40 + "WR" * 40)
    (row,) = paper.results.slice_contrast(
        alike, benchmark, labels, paper.results.LOW_LESS_NORMAL
    ).to_dict("records")
    assert (row["value"], row["p"]) == (0, 1)


def test_a_drop_of_two_sessions_may_be_none_and_of_an_empty_slice_there_is_no_row() -> None:
    benchmark = asked(("a", "normal"), ("b", "blurred"))
    labels = paper.results.slice_labels(benchmark)["low_quality"]
    few = paper.results.slice_contrast(
        judged(benchmark, task_2="RW"), benchmark, labels, paper.results.LOW_LESS_NORMAL
    )
    assert few["value"].tolist() == [-2.0]
    assert few["ci_high"].item() > 0
    good = asked(("a", "normal"))
    labels = paper.results.slice_labels(good)["low_quality"]
    assert paper.results.slice_contrast(
        judged(good, task_2="R"), good, labels, paper.results.LOW_LESS_NORMAL
    ).empty


def test_three_classes_as_counted_by_hand() -> None:
    pairs = [("correct", "correct")] * 3 + [
        ("correct", "incorrect"),
        ("incorrect", "incorrect"),
        ("incorrect", "correct"),
    ]
    pairs += [("missing", "missing"), ("incorrect", "")]
    table = pd.DataFrame(pairs, columns=["label", "judged"])
    table = table.assign(query_id=[f"q{i}" for i in range(len(pairs))])
    found = paper.judge.judge_validation(table).set_index(["label", "metric"])["value"]
    # right: 3 of both, 1 missed, 1 added; wrong: 1 of both, 2 missed, 1 added
    assert found["accurate"].to_dict() == {
        "accuracy": 6 / 8, "precision": 3 / 4, "recall": 3 / 4, "f1": 6 / 8
    }  # fmt: skip
    assert found["hallucinated", "precision"] == 1 / 2
    assert found["hallucinated", "recall"] == pytest.approx(1 / 3)
    assert found["hallucinated", "f1"] == pytest.approx(2 / 5)
    assert found["average", "precision"] == pytest.approx((3 / 4 + 1 / 2 + 1) / 3)
    assert set(published("crag_mm", 7)["label"]) == set(found.index.get_level_values("label"))


def test_each_question_says_how_far_its_entity_was_found(tmp_path: Path) -> None:
    images = listed("image", *GRAPH)
    queries = {}
    wanted = {"a": "Talia ensis", "b": "Talia osa", "c": "Bora", "d": "Nobody", "e": ""}
    for name, entity in wanted.items():
        queries[name] = Query(query_id=name, text="?", image=IMAGE, group=name, entity=entity)
    benchmark = Benchmark(name="Drawn", fingerprint="", queries=queries, corpus={}, qrels={})
    labels = paper.results.entity_retrieval_status(benchmark, images, 2, 0.92)
    assert labels == {
        "a": RETRIEVED,
        "b": "below threshold",
        "c": "in index, not retrieved",
        "d": "not in index",
        "e": "not annotated",
    }
    table = judged(benchmark, task_2="RWMWR")
    assert paper.results.with_entity_retrieved(table, labels)["query_id"].tolist() == ["a"]
    none = dict.fromkeys(labels, "not in index")
    with pytest.raises(VragError, match="no question with the label 'retrieved'"):
        paper.results.with_entity_retrieved(table, none)
    with dry_run(tmp_path):  # where other entries stand in for what a search will find
        assert paper.results.with_entity_retrieved(table, none).equals(table)
    with pytest.raises(VragError, match="no query with an entity"):
        paper.results.entity_retrieval_status(asked(("a", "normal")), images, 2, 0.92)
    assert (
        paper.results.entity_retrieval_shares(benchmark, labels)["share"].dropna().tolist()
        == [25.0] * 4
    )


def test_an_oracle_of_the_entity_finds_its_entries_and_nothing_else() -> None:
    arms = paper.oracles.oracle_pipelines(
        SearchPipeline(images=listed("image", *GRAPH), threshold=0.99)
    )
    told = arms["oracle entity"].images
    plain = arms["no oracle"].images
    assert told is not None
    assert plain is not None
    assert told.fingerprint != plain.fingerprint  # so that no reply is taken for the other's
    assert list(arms) == list(paper.oracles.ORACLES)
    (query,) = asked(("a", "normal"), entity="talia OSA").queries.values()
    query = replace(query, image=IMAGE)
    run = told.search([query, replace(query, query_id="b", entity="Nobody")], 5)
    assert run[["query_id", "doc_id"]].to_numpy().tolist() == [["a", "kg-2"]]
    assert (run["score"] > 0.99).all()
    assert arms["oracle entity and query"].rewrite == "reference"
    with pytest.raises(VragError, match="no image search"):
        paper.oracles.oracle_pipelines(SearchPipeline())


def test_a_budget_adds_up_to_what_is_lost_and_counts_what_sets_answers_right() -> None:
    benchmark = asked(*((f"q{i}", "normal") for i in range(4)))
    letters = dict(zip(LADDER, ("WMRW", "WRRW", "RRRM", "RRWW"), strict=True))
    table = judged(benchmark, **letters, **{"oracle query": "WMRW"})
    budget = paper.oracles.truthfulness_budget(table, benchmark).set_index("part")["value"]
    # sums of scores along the ladder: −1, 0, 3, 0, and 4 at best
    assert budget.to_dict() == dict(zip(PARTS, (1 / 4, 3 / 4, -3 / 4, 4 / 4), strict=True))
    assert budget.sum() == pytest.approx(1 - (-1 / 4))
    counts = paper.oracles.recovered_by(table)
    wrong = counts.T[("mine", "incorrect")]
    assert wrong.to_dict() == {
        "oracle region": 0, "oracle entity": 1, "oracle query": 0,
        "oracle entity and query": 0, NONE: 1,
    }  # fmt: skip
    assert counts.loc[("mine", "missing"), "oracle region"] == 1
    assert (
        paper.oracles.sample_questions(benchmark, None).queries.keys() == benchmark.queries.keys()
    )
    assert len(paper.oracles.sample_questions(benchmark, 3).queries) == 3
