"""The drawn CRAG-MM is laid out like the real data, its facts agree wherever they stand,
and its pictures and proportions are those that were planned.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest
from conftest import ROOT

from vrag_kit.errors import VragError
from vrag_kit.judging import TruthfulnessRuleJudge
from vrag_kit.papers import crag_mm as paper
from vrag_kit.papers.crag_mm.parameters import open_services
from vrag_kit.papers.crag_mm.recall import page_relevance
from vrag_kit.synthetic.crag_mm import EDITIONS, generate_crag_mm, open_multi_turn, open_single_turn
from vrag_kit.synthetic.crag_mm.conversations import TYPE_SHARES
from vrag_kit.synthetic.crag_mm.edition import (
    plan_edition,
)
from vrag_kit.types import Benchmark, Document
from vrag_kit.workspace import Workspace

SMALL = "field-guide-crag-mm-small"


@pytest.fixture(scope="module")
def drawn() -> Path:
    return generate_crag_mm("small", ROOT / "data" / SMALL)


def test_the_hubs_own_library_reads_the_rows_with_their_labels(drawn: Path, tmp_path: Path) -> None:
    import datasets

    shards = [str(path) for path in sorted(drawn.glob("single-turn/data/public_test-*"))]
    rows = datasets.load_dataset("parquet", data_files=shards, split="train", cache_dir=tmp_path)
    assert rows.column_names == ["session_id", "image", "image_url", "turns", "answers"]
    names = rows.features["turns"]["query_category"].feature.names
    assert names[1] == "comparison"  # single- and multi-turn data number differently
    assert sorted(names) == sorted(TYPE_SHARES)
    for row in rows:
        assert bool(row["image"]) != bool(row["image_url"])
        assert row["turns"]["interaction_id"] == row["answers"]["interaction_id"]
        assert row["turns"]["interaction_id"] == [row["session_id"]]
        if row["image"]:
            assert row["image"].size == EDITIONS["small"].worn


def test_no_asked_image_is_in_the_graph_and_none_comes_twice(drawn: Path) -> None:
    asked = {}
    for split in ("validation", "public_test"):
        for benchmark in (open_single_turn(SMALL, split), open_multi_turn(SMALL, split)):
            queries = benchmark.queries.values()
            asked |= {query.group: query.image.data() for query in queries if query.image}
    graph = [path.read_bytes() for path in drawn.glob("image-index-*/images/*.jpg")]
    assert len(set(asked.values())) == len(asked)
    assert len(set(graph)) == len(graph)
    assert set(asked.values()).isdisjoint(graph)


def test_notebooks_open_it_by_name_and_real_rows_by_folder(
    drawn: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("vrag_kit.synthetic.editions.project_path", lambda name: drawn)
    by_name = open_multi_turn(SMALL, "public_test")
    assert by_name.name == "field-guide-crag-mm-small-multi-turn-public-test"
    with pytest.raises(VragError, match="of its own"):
        open_single_turn(SMALL, indexes="elsewhere")
    monkeypatch.setattr("vrag_kit.synthetic.editions.project_path", Path)
    rows = str(drawn / "single-turn")
    assert open_single_turn(rows, "validation", indexes=str(drawn)).corpus
    assert not open_single_turn(rows, "validation").corpus
    with pytest.raises(VragError, match="'image-index-validation'"):
        open_single_turn(rows, "validation", indexes=str(tmp_path))
    for data, web, words in ((SMALL, "larger", "'large'"), (rows, "large", "synthetic")):
        with pytest.raises(VragError, match=words):
            open_single_turn(data, web_index=web)


# the larger web: one of an entity's pages tells what is asked


@pytest.fixture(scope="module")
def larger() -> Benchmark:
    return open_single_turn(SMALL, "public_test", web_index="large")


def pages_by_name(benchmark: Benchmark) -> dict[str, list[Document]]:
    found = defaultdict(list)
    for page in benchmark.corpus.values():
        if page.metadata["source"] == "web_search":
            found[str(page.metadata["page_name"])].append(page)
    return found


@pytest.mark.slow
def test_of_an_entitys_pages_exactly_one_tells_each_fact(larger: Benchmark) -> None:
    pages = pages_by_name(larger)
    split = next(each for each in plan_edition(EDITIONS["small"]) if each.name == "public_test")
    written = [each for each in split.entries if each.pages]
    assert {len(pages[each.entity.name]) for each in written} == {6, 10, 16}
    assert not any(each.entity.name in pages for each in split.entries if not each.pages)
    for each in written:
        texts = [str(page.metadata["page_result"]) for page in pages[each.entity.name]]
        assert all(each.entity.name in text for text in texts)
        facts = {**each.entity.facts, "color": each.entity.species.outside.color}
        for value in facts.values():
            telling = [text for text in texts if re.search(rf"\b{re.escape(value)}\b", text)]
            assert len(telling) == 1


@pytest.mark.slow
def test_recall_of_the_question_as_meant_grows_with_k(larger: Benchmark, tmp_path: Path) -> None:
    recalls = {}
    usual = open_single_turn(SMALL, "public_test")
    for name, benchmark in {"usual": usual, "larger": larger}.items():
        search = {"image_service": "field-guide-clip-64", "web_service": "bm25"}
        web = open_services(benchmark, search, Workspace(cache_dir=tmp_path / name)).web
        assert web is not None
        tells = {"full pages": page_relevance(TruthfulnessRuleJudge(), benchmark, "full pages")}
        asked = {"reference query": paper.recall.web_queries(benchmark)["reference query"]}
        found = paper.recall.web_recall(web, asked, tells)
        recalls[name] = found.groupby("k")["value"].mean()
    assert recalls["usual"][50] == recalls["usual"][5]  # all of an entity's pages come first
    assert recalls["larger"][50] - recalls["larger"][5] > 0.2
    assert recalls["larger"][50] == recalls["usual"][50]  # the same entities are written about
