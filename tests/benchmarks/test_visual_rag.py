"""Annotations are read as they are written, and every mistake in them is named by file and line; a
corpus is a lazy mapping.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from vrag_kit.benchmarks import ImageFile, load_visual_rag
from vrag_kit.errors import VragError
from vrag_kit.papers.describe import describe
from vrag_kit.papers.visual_rag.published import organism_category, question_kind
from vrag_kit.types import LazyMapping

Write = Callable[..., Path]
GOOSE = "00001_Animalia_Chordata_Aves_Anseriformes_Anatidae_Branta_leucopsis"


def test_query_ids_stay_when_rows_move(write_annotations, tree):
    first, second = {"question": "What color are the feet?"}, {"question": "Are they webbed?"}
    alone = load_visual_rag(write_annotations(first), tree)
    both = load_visual_rag(write_annotations(second, first), tree)
    assert set(alone.queries) < set(both.queries)


def test_a_subset_asks_some_of_the_same_questions_in_the_same_order(guide):
    first, second = list(guide.queries)[:2]
    part = guide.subset([second, first])
    assert list(part.queries) == list(part.qrels) == list(part.pools) == [first, second]
    assert part.candidates(first) == guide.candidates(first)
    assert part.corpus is guide.corpus
    assert len({guide.fingerprint, part.fingerprint, guide.subset([second]).fingerprint}) == 3
    with pytest.raises(VragError, match="no query 'nonsense'"):
        guide.subset([first, "nonsense"])


def test_the_corpus_holds_each_image_once_in_order(write_annotations, tree):
    shown, rows = [], []
    for number, names in enumerate(("ca", "abd", "ad")):
        shown.append({f"{GOOSE}/{name}.jpg": int(name == "a") for name in names})
        rows.append({"images": shown[-1], "question": f"{number}?"})
    benchmark = load_visual_rag(write_annotations(*rows), tree)
    assert list(benchmark.corpus) == [f"{GOOSE}/{name}.jpg" for name in "cabd"]
    for doc_id, document in benchmark.corpus.items():
        assert document.image == ImageFile(tree / doc_id)
        assert (document.doc_id, document.metadata) == (doc_id, {"folder": GOOSE})
    assert list(benchmark.qrels.values()) == shown
    assert list(benchmark.pools.values()) == [tuple(each) for each in shown]
    told = [
        [query.text, query.answers, query.entity, sorted(each.items())]
        for query, each in zip(benchmark.queries.values(), shown, strict=True)
    ]
    assert benchmark.fingerprint == hashlib.sha256(json.dumps(told).encode()).hexdigest()


def test_statistics_agree_with_a_count_of_the_rows(guide, guide_folder):
    lines = (guide_folder / "annotations.jsonl").read_text(encoding="utf-8").splitlines()
    shown = [json.loads(line)["images"] for line in lines]
    pairs, clues = sum(map(len, shown)), sum(sum(each.values()) for each in shown)
    table = describe(guide, gold="clue").set_index("statistic")["value"]
    assert table["queries"] == len(lines)
    assert table["query-image pairs"] == pairs
    assert table["unique images"] == len(set().union(*shown))
    assert table["clues a query, mean"] == round(clues / len(lines), 2)
    assert table["clue share of pairs"] == round(100 * clues / pairs, 2)


def test_a_row_of_version_2_keeps_what_else_it_holds(write_annotations, tree):
    more = {"y_rate": 0.25, "y_count": 1, "is_changed_v2": "no"}
    for changes, version in (({}, "v1"), (more, "v2")):
        (query,) = load_visual_rag(write_annotations(changes), tree).queries.values()
        assert query.metadata["version"] == version
        assert changes.items() <= query.metadata.items()


def test_a_file_that_is_bad_is_named(write_annotations, tree, tmp_path):
    with pytest.raises(VragError, match=r"annotations\.jsonl.*line 2"):
        load_visual_rag(write_annotations({}, {"answer": []}), tree)
    (tmp_path / "bare.jsonl").write_bytes(b"\n\n")
    (tmp_path / "utf16.jsonl").write_bytes(b"\xff\xfe\x00")
    for name, word in (("bare.jsonl", "no rows"), ("utf16.jsonl", "utf-8"), ("none.jsonl", "none")):
        with pytest.raises(VragError, match=word):
            load_visual_rag(tmp_path / name, tmp_path)


KINDS = {
    "What color are the hindwings of the moth, usually covered by the forewings?": "color",
    "When wings are folded, they display a pattern; do they appear below?": "yes/no",
    "What pattern is on the belly?": "pattern",
    "How many toes are there?": "count",
    "What is the shape of the seed?": "shape",
    "Where is it?": "other",
}


def test_kinds_of_questions_and_organisms_follow_the_documented_rule():
    assert {question: question_kind(question) for question in KINDS} == KINDS
    folders = [GOOSE, "00002_Plantae_T_M_A_B_C_d", "00003_Animalia_Annelida_C_A_B_C_d", "photos"]
    found = [organism_category(folder) for folder in folders]
    assert found == ["birds", "plants", "other animals", "other"]


def test_what_is_made_lazily_is_a_mapping():
    names = [str(number) for number in range(2000)]
    doubles = LazyMapping(pd.Index(names, dtype=object), lambda name: 2 * name)
    assert doubles == {name: 2 * name for name in names}
    assert doubles.get("x") is None
