"""Oracles replace a step of the pipeline, and the error budget adds up to what is lost."""

from __future__ import annotations

from pathlib import Path

import factories
import pytest
from conversation_data import entry
from conversation_process import listed
from factories import judged_arms

from vrag_kit.benchmarks import ImageFile
from vrag_kit.errors import VragError
from vrag_kit.papers import crag_mm as paper
from vrag_kit.papers.crag_mm.search import LADDER, PARTS, SearchPipeline
from vrag_kit.types import Query

GRAPH = (entry("kg-1", ("Talia ensis", "")), entry("kg-2", ("Talia osa", "")))


def test_an_oracle_of_the_entity_finds_its_entries_and_nothing_else() -> None:
    pipelines = paper.search.oracle_pipelines(
        SearchPipeline(images=listed("image", *GRAPH), similarity_threshold=0.99)
    )
    oracle, plain = pipelines["oracle entity"].images, pipelines["no oracle"].images
    assert oracle is not None
    assert plain is not None
    assert oracle.fingerprint != plain.fingerprint  # stored results of one are not the other's
    assert list(pipelines) == list(paper.search.ORACLES)
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
        paper.search.oracle_pipelines(SearchPipeline())


def test_a_budget_adds_up_to_what_is_lost() -> None:
    benchmark = factories.benchmark([f"q{number}" for number in range(4)])
    letters = dict(zip(LADDER, ("WMRW", "WRRW", "RRRM", "RRWW"), strict=True))
    scores = {
        oracle: ["WMR".index(letter) - 1.0 for letter in word]
        for oracle, word in (letters | {"oracle query": "WMRW"}).items()
    }
    table = judged_arms(scores, ["setting"], score_min=-1.0, score_max=1.0)
    budget = paper.search.truthfulness_budget(table, benchmark).set_index("part")["value"]
    # sums of scores along the ladder: −1, 0, 3, 0, and 4 at best
    assert budget.to_dict() == dict(zip(PARTS, (1 / 4, 3 / 4, -3 / 4, 4 / 4), strict=True))
    assert budget.sum() == pytest.approx(1 - (-1 / 4))
