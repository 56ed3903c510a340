"""CRAG-MM's arms: what each searches at its turn, what of it is kept, and the question
that the web is searched for.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import factories
import pytest
from conversation_data import entry, make_conversations, page
from conversation_process import listed, listed_scores
from factories import judged_arms
from strange_server import StrangeServer, text_in

from vrag_kit.benchmarks import ImageFile
from vrag_kit.errors import VragError
from vrag_kit.generation import ConversationConfig, ask_conversations, load_rewriter
from vrag_kit.generation.rewriting import Rewriter, parse_rewriting
from vrag_kit.papers.crag_mm.parameters import PROMPT_SETS, REWRITING
from vrag_kit.papers.crag_mm.search import (
    LADDER,
    ORACLES,
    PARTS,
    SearchPipeline,
    oracle_pipelines,
    truthfulness_budget,
    with_mismatched_images,
)
from vrag_kit.types import Benchmark, Query
from vrag_kit.workspace import Workspace

ENTRIES = (
    entry("kg-1", ("Van", {"wheels": 4}), ("Bus", "")),
    entry("kg-2", ("", "")),  # nothing to show
    entry("kg-3", ("Van", {"wheels": 5})),
    entry("kg-4", ("Car", "")),  # 0.80
    entry("kg-5", ("Cart", "")),  # 0.75: not above the threshold
)
PAGES = (page("w1", "Vans", "Vans have wheels."), page("w2", "Bare", ""), page("w3", "Cars", "So."))


@pytest.fixture
def server():
    with StrangeServer() as server:
        yield server


@pytest.fixture
def talks(tmp_path):
    return make_conversations(tmp_path, {"a": 2})


def ask(
    server: StrangeServer, talks: Benchmark, arms: SearchPipeline, which: list[str], folder: Path
) -> Any:
    model = {"model": f"talker@{server.url}", "decoding": {"temperature": 0}}
    talk = ConversationConfig(prompts=PROMPT_SETS["paper"], search=arms)
    asked = [model], talks, arms.contexts(talks, which), Workspace(answers_dir=folder)
    return ask_conversations(*asked, conversation=talk)


def rewriter(server: StrangeServer, folder: Path) -> Rewriter:
    at = Workspace(answers_dir=folder)
    return load_rewriter(f"writer@{server.url}", at, prompts=REWRITING)


def told(server: StrangeServer) -> list[str]:
    """All words of the answerer's questions, in order."""
    return [words for words in map(text_in, server.requests) if "Query: " in words]


def test_each_arm_searches_and_is_told_what_it_should(server, talks, tmp_path, capsys):
    arms = SearchPipeline(images=listed("image", *ENTRIES), web=listed("text", *PAGES))
    images, web = arms.images.name, arms.web.name
    both = f"{images} + {web}"
    assert arms.found_by == {"mm_llm": "", "task_1": images, "task_2": both, "task_3": both}
    which = ["mm_llm", "task_1", "task_2", "task_3"]
    table = ask(server, talks, arms, which, tmp_path)
    last = table[table["query_id"] == "a-1"].set_index("setting")
    assert last["k"].to_dict() == {"mm_llm": 0, "task_1": 30, "task_2": 80, "task_3": 80}
    entries, pages = ("kg-1", "kg-4"), ("w1", "w3")
    assert {arm: last.loc[arm, "doc_ids"] for arm in which} == {
        "mm_llm": (),
        "task_1": entries,  # kg-3 repeats kg-1's entity
        "task_2": (*entries, *pages),
        "task_3": (*entries, *pages),
    }
    assert last["search_query"].tolist() == ["", "", "turn 1 of a?", "turn 1 of a?"]
    assert last["n_skipped"].tolist() == [0, 1, 2, 2]  # kg-2, and w2
    assert "10 retrieved documents with nothing to show" in capsys.readouterr().out
    prompts = [each for each in told(server) if each.endswith("Query: turn 1 of a?")]
    assert len(prompts) == 4
    histories = ["Conversation history: " in each for each in prompts]
    assert sorted(histories) == [False, False, True, True]  # mm_llm's and task_3's
    assert sum("\nVan, Bus, Car\n" in each for each in prompts) == 3


def test_the_web_is_searched_for_the_rewritten_question(server, talks, tmp_path):
    rewritten = {"entity_name": "Van", "updated_question": "What of the Van?"}
    server.plans = {
        "Question: turn 1 of a?": ["say I cannot tell."],
        "Question: turn 0 of a?": [f"say It is the Van. {json.dumps(rewritten)}"],
        "Query: turn 0 of a?": ["say Four."],
    }
    scores = {"What of the Van?": {"w1": 1.0}, "turn 1 of a?": {"w3": 1.0}}
    web, images = listed_scores("text", PAGES, scores), listed("image", *ENTRIES)
    how: Any = {"rewrite": "retrieved_history", "rewriter": rewriter(server, tmp_path)}
    arms = SearchPipeline(images=images, web=web, **how)
    table = ask(server, talks, arms, ["task_3"], tmp_path)
    assert table["search_query"].tolist() == ["What of the Van?", "turn 1 of a?"]
    assert table["rewrite_status"].tolist() == ["rewritten", "unparsed"]
    assert [ids[-1] for ids in table["doc_ids"]] == ["w1", "w3"]
    found, history = [words for words in map(text_in, server.requests) if "Question: " in words]
    assert "Van, Bus, Car" in found
    assert "User: turn 0 of a?\nAssistant: Four.\n" in history


def test_a_turn_whose_question_nobody_said_anew_fails_with_that(server, talks, tmp_path):
    server.plans = {"Question: turn 0 of a?": ["filtered"]}
    both = {"images": listed("image", *ENTRIES), "web": listed("text", *PAGES)}
    arms = SearchPipeline(**both, rewrite="image", rewriter=rewriter(server, tmp_path))
    table = ask(server, talks, arms, ["task_3"], tmp_path)
    assert table["status"].tolist() == ["refused", "skipped"]
    assert told(server) == []
    given = ask(server, talks, SearchPipeline(**both, rewrite="reference"), ["task_3"], tmp_path)
    assert given["search_query"].tolist() == ["turn 0 of a?", "what is a1"]
    assert given["rewrite_status"].tolist() == ["no_reference", "reference"]


def test_what_an_arm_lacks_is_named(talks):
    with pytest.raises(VragError, match="rewrite is 'image', but there is no rewriter"):
        SearchPipeline(rewrite="image")
    with pytest.raises(KeyError, match="task_4"):
        SearchPipeline().contexts(talks, ["task_4"])
    with pytest.raises(VragError, match="task_2 has no web search"):
        SearchPipeline(images=listed("image", *ENTRIES)).contexts(talks, ["task_2"])


GOOD = '{"entity_name": "Van", "updated_question": "What of the\\n Van?"}'


@pytest.mark.parametrize(
    ("raw", "outcome"),
    [
        (f"It is a van.\n```json\n{GOOD}\n```", "rewritten"),
        (f"<think>{{</think>{GOOD}", "rewritten"),
        (GOOD.replace('"Van"', "null"), "no_entity"),
        (GOOD + GOOD, "unparsed"),  # two meanings
        (GOOD.replace("}", ', "sure": true}'), "unparsed"),
        (GOOD.replace('"Van"', '["Van", "Bus"]'), "unparsed"),
        (GOOD.replace("What of the\\n Van?", " "), "unparsed"),
        (GOOD.replace("of", "\\ud83d"), "unparsed"),  # half a character
        ("[" * 100_000, "unparsed"),
        ("", "unparsed"),
    ],
)
def test_one_object_at_the_end_is_read_and_all_else_leaves_the_question(raw, outcome):
    found = parse_rewriting(raw)
    assert found["outcome"] == outcome
    assert found.get("question") == ("What of the Van?" if outcome == "rewritten" else None)


@pytest.fixture
def three(tmp_path):
    return make_conversations(tmp_path, {"a": 3, "b": 3, "c": 1})


def test_all_turns_of_a_session_get_the_image_of_one_other(three):
    swapped = with_mismatched_images(three)
    own = {name: query.image for name, query in three.queries.items()}
    lent = {name: query.image for name, query in swapped.queries.items()}
    assert all(lent[name] != own[name] for name in own)
    assert lent["a-0"] == lent["a-1"] == lent["a-2"]
    assert set(lent.values()) <= set(own.values())
    assert swapped.fingerprint != three.fingerprint


def test_a_session_without_another_has_no_control(tmp_path):
    with pytest.raises(VragError, match="no other shows another entity"):
        with_mismatched_images(make_conversations(tmp_path, {"a": 2}))


def test_an_oracle_of_the_entity_finds_its_entries_and_nothing_else():
    graph = entry("kg-1", ("Talia ensis", "")), entry("kg-2", ("Talia osa", ""))
    images = listed("image", *graph)
    pipelines = oracle_pipelines(SearchPipeline(images=images, similarity_threshold=0.99))
    oracle, plain = pipelines["oracle entity"].images, pipelines["no oracle"].images
    assert oracle is not None
    assert plain is not None
    assert oracle.fingerprint != plain.fingerprint  # stored results of one are not the other's
    assert list(pipelines) == list(ORACLES)
    image = ImageFile(Path("never-opened.png"))
    queries = [
        Query(query_id=name, text="?", image=image, entity=entity)
        for name, entity in (("a", "talia OSA"), ("b", "Nobody"))
    ]
    run = oracle.search(queries, 5)
    assert run[["query_id", "doc_id"]].to_numpy().tolist() == [["a", "kg-2"]]
    assert (run["score"] > 0.99).all()
    assert pipelines["oracle entity and query"].rewrite == "reference"
    with pytest.raises(VragError, match="no image search"):
        oracle_pipelines(SearchPipeline())


def test_a_budget_adds_up_to_what_is_lost():
    benchmark = factories.benchmark([f"q{number}" for number in range(4)])
    letters = dict(zip(LADDER, ("WMRW", "WRRW", "RRRM", "RRWW"), strict=True))
    scores = {
        oracle: ["WMR".index(letter) - 1.0 for letter in word]
        for oracle, word in (letters | {"oracle query": "WMRW"}).items()
    }
    table = judged_arms(scores, ["setting"], score_min=-1.0, score_max=1.0)
    budget = truthfulness_budget(table, benchmark).set_index("part")["value"]
    # sums of scores along the ladder: −1, 0, 3, 0, and 4 at best
    assert budget.to_dict() == dict(zip(PARTS, (1 / 4, 3 / 4, -3 / 4, 4 / 4), strict=True))
    assert budget.sum() == pytest.approx(1 - (-1 / 4))
