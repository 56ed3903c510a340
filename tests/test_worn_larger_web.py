"""The larger web of the drawn CRAG-MM: of an entity's pages one tells what is asked, so that
recall grows with k; the web on disk stays as it was.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest

from vrag_kit.errors import VragError
from vrag_kit.judging import TruthfulnessRuleJudge
from vrag_kit.papers import crag_mm as paper
from vrag_kit.papers.crag_mm.parameters import index_folders, open_services
from vrag_kit.papers.crag_mm.search import page_relevance
from vrag_kit.synthetic.crag_mm import EDITIONS, open_single_turn
from vrag_kit.synthetic.crag_mm.edition import plan_edition
from vrag_kit.types import Benchmark, Document
from vrag_kit.workspace import path as project_path

SMALL = "field-guide-crag-mm-small"
AS_BEFORE = {  # sha256 of pages.jsonl, drawn by the code before there was a larger web
    "validation": "ec75a734c4144fe8b69c38550b22a2203ff84b3e9853169d888260f902ac7df9",
    "public_test": "b50e2d8b68acd4af8d4306ab361746d226aaa8b80f85c46f8b7483dc9b593cbb",
}


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
def test_recall_of_the_question_as_meant_grows_with_k(larger: Benchmark) -> None:
    recalls = {}
    for name, benchmark in {
        "usual": open_single_turn(SMALL, "public_test"),
        "larger": larger,
    }.items():
        with tempfile.TemporaryDirectory() as cache:
            web = open_services(benchmark, "field-guide-clip-64", "bm25", cache).web
            assert web is not None
            tells = {"full pages": page_relevance(TruthfulnessRuleJudge(), benchmark, "full pages")}
            asked = {"reference query": paper.recall.web_queries(benchmark)["reference query"]}
            found = paper.recall.web_recall(web, asked, tells)
        recalls[name] = found.groupby("k")["value"].mean()
    assert recalls["usual"][50] == recalls["usual"][5]  # all of an entity's pages come first
    assert recalls["larger"][50] - recalls["larger"][5] > 0.2
    assert recalls["larger"][50] == recalls["usual"][50]  # the same entities are written about


@pytest.mark.parametrize("split", ["validation", "public_test"])
def test_the_web_on_disk_stays_as_it_was(split: str) -> None:
    open_single_turn(SMALL, split, web_index="large")
    pages = index_folders(project_path(f"data/{SMALL}"), split)[1] / "pages.jsonl"
    assert hashlib.sha256(pages.read_bytes()).hexdigest() == AS_BEFORE[split]


def test_labels_are_the_entitys_entries_and_pages(larger: Benchmark) -> None:
    usual = open_single_turn(SMALL, "public_test")
    assert larger.fingerprint != usual.fingerprint
    assert list(larger.queries) == list(usual.queries)
    pages = pages_by_name(larger)
    for name, query in larger.queries.items():
        entries = {doc for doc in usual.qrels[name] if doc.startswith("kg-")}
        of_entity = {page.doc_id for page in pages.get(query.entity, [])}
        assert set(larger.qrels[name]) == entries | of_entity


def test_only_drawn_editions_have_a_larger_web(tmp_path: Path) -> None:
    with pytest.raises(VragError, match=r"expected 'standard' or 'large'\. Did you mean 'large'"):
        open_single_turn(SMALL, web_index="larger")
    with pytest.raises(VragError, match="synthetic editions alone"):
        open_single_turn(str(tmp_path), web_index="large")
