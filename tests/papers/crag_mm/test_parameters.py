"""The searches and conversations that a notebook's parameters name."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conversation_data import make_conversations, page
from strange_server import StrangeServer, text_in

from vrag_kit.errors import VragError
from vrag_kit.papers.crag_mm.parameters import Setup
from vrag_kit.papers.crag_mm.search import SearchPipeline
from vrag_kit.runner.params import declared_parameters
from vrag_kit.runner.plan import all_notebooks
from vrag_kit.synthetic import crag_mm
from vrag_kit.workspace import Workspace

SEARCH = {"image_k": 3, "web_k": 2, "similarity_threshold": 0.5, "rewrite": "reference"}
SEARCH |= {"rewriter": "", "image_service": "", "web_service": "words"}


@pytest.fixture
def world(tmp_path):
    pages = {each.doc_id: each for each in [page("w", "Van", "A van has wheels.")]}
    return replace(make_conversations(tmp_path, {"a": 3, "b": 3, "c": 1}), corpus=pages)


@pytest.fixture
def setup(tmp_path):
    at = Workspace(answers_dir=tmp_path, cache_dir=tmp_path)
    return Setup(SEARCH, crag_mm.PROMPTS, crag_mm.CONVERSATION, {}, at)


@pytest.mark.parametrize("number", ["52", "55"])
def test_the_notebooks_ask_the_synthetic_editions_as_60_does(number):
    (book,) = [book for book in all_notebooks() if book.name.startswith(number)]
    names = declared_parameters(book)
    search = names["image_search"] | names["web_search"]
    assert {key: search[key] for key in crag_mm.SEARCH} == crag_mm.SEARCH
    assert names["prompts"] == crag_mm.PROMPTS
    assert names["conversation"] == crag_mm.CONVERSATION


def test_parameters_name_arms_and_talks(world, setup):
    searches = setup.open(world)
    assert searches.web is not None
    assert searches == SearchPipeline(
        web=searches.web, image_k=3, web_k=2, similarity_threshold=0.5, rewrite="reference"
    )
    with pytest.raises(VragError, match="no rewriter"):
        replace(setup, search={**SEARCH, "rewrite": "retrieved"}).open(world)


def test_the_control_asks_some_conversations_with_another_image(world, setup):
    with StrangeServer() as server:
        model = {"model": f"talker@{server.url}", "decoding": {"temperature": 0}}
        searches = setup.open(world)
        both = setup.ask_with_control([model], world, searches, ["mm_llm"], 2)
        bare = setup.ask([model], world, searches, ["mm_llm"], history="none")
        history = [text_in(body) for body in server.requests if "turn 1 of a?" in text_in(body)]
    assert both.groupby("image")["query_id"].size()["matched"] == len(world.queries)
    control = both[both["image"] == "mismatched"]
    assert control["query_id"].str[0].nunique() == 2
    assert set(bare["history"]) == {"none"}
    assert ["turn 0 of a?" in words for words in history].count(False) >= 1
