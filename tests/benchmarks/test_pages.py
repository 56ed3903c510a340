"""Questions over pages are read from VisRAG's, ViDoRe's and MTEB's copies by one loader:
ids of any kind, answers as texts, lists or letters, and texts of pages from a sidecar.
"""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copyfile
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_rows import LABELS, PAGES, QUERIES, label, page, png, write_pages
from scipy.sparse.csgraph import connected_components

from vrag_kit.benchmarks import load_page_benchmark
from vrag_kit.benchmarks.transforms import connected_groups, encode_id
from vrag_kit.errors import VragError
from vrag_kit.generation import evidence_modes
from vrag_kit.retrieval import read_run, write_run
from vrag_kit.retrieval.hybrid import bm25_run
from vrag_kit.types import Benchmark


def load(folder: Path, **options: Any) -> Benchmark:
    return load_page_benchmark(folder, cache_dir=folder.parent / "cache", **options)


def write_texts(file: Path, *names: str) -> Path:
    lines = [json.dumps({"doc_id": name, "text": "A moth."}) for name in names]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


@given(first=st.text(min_size=1), second=st.text(min_size=1))
def test_ids_stay_different_and_give_the_names_back(first: str, second: str) -> None:
    assert len(encode_id(first).split()) <= 1
    assert unquote(encode_id(first)) == first
    assert (encode_id(first) == encode_id(second)) == (first == second)


def test_white_space_in_ids_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    queries = [{"query-id": name, "query": "A moth?", "answer": "x"} for name in ("a b", "bare")]
    pages = [page("p 1", 1), page("p\t2", 2), page("p3", 3)]
    folder = write_pages(tmp_path / "docs", pages, queries, [label("a b", "p 1")])
    benchmark = load(folder, ocr=write_texts(tmp_path / "ocr.jsonl", "p 1", "p\t2", "old"))
    assert [document.text for document in benchmark.corpus.values()] == ["A moth.", "A moth.", None]
    assert "has texts of 2 of 3 documents" in capsys.readouterr().out
    assert load(folder).fingerprint != benchmark.fingerprint
    run = bm25_run(benchmark, 2)
    write_run(run, tmp_path / "words.run", "words")
    again = read_run(tmp_path / "words.run")
    assert set(map(unquote, again["doc_id"])) == {"p 1", "p\t2"}
    assert set(map(unquote, again["query_id"])) == {"a b", "bare"}
    with pytest.raises(VragError, match="query 'bare': found no gold evidence"):
        evidence_modes(benchmark, {"image": run}, ks={"image": 1})


@pytest.mark.parametrize(
    ("answer", "options", "right", "choices"),
    [
        ("B", ["A) red", "B) blue"], ("blue",), ("red", "blue")),
        ("(B)", ["(A) red", "(B) blue"], ("blue",), ("red", "blue")),
        ("blue", ["A) red", "B) blue"], ("blue",), ("red", "blue")),
        ("A", ["B", "A"], ("A",), ("B", "A")),  # no letters: these are the options' words
        (["1/8/93", "8 January"], None, ("1/8/93", "8 January"), ()),
        ("['1/8/93', '8 January']", None, ("1/8/93", "8 January"), ()),
        ("[unclear]", None, ("[unclear]",), ()),
        (None, None, (), ()),
    ],
)
def test_an_answer_is_the_text_of_its_option_and_a_list_gives_several(
    answer: Any, options: Any, right: object, choices: object, tmp_path: Path
) -> None:
    row = {"query-id": "q1", "query": "Which?", "answer": answer, "options": options}
    query = load(write_pages(tmp_path / "arxiv", queries=[row])).queries["q1"]
    assert (query.answers, query.choices) == (right, choices)


def test_an_answer_must_be_an_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = {"query-id": "q3", "query": "Which?", "answer": "E", "options": ["A) red", "B) blue"]}
    rows = [{**QUERIES[0], "options": None}, odd]
    benchmark = load(write_pages(tmp_path / "arxiv", queries=rows, labels=LABELS[:1]))
    assert list(benchmark.queries) == ["q1"]
    said = capsys.readouterr().out
    assert "left out 1 of 2 questions" in said
    assert "(query q3): the answer 'E' is none of the options red, blue" in said
    with pytest.raises(VragError, match="no question"):
        load(write_pages(tmp_path / "none", queries=[odd], labels=LABELS[:1]))


@pytest.mark.parametrize(
    ("document", "groups"),
    [({}, ["q0", "q0", "q0", "q3"]), ({"doc-id": "d1"}, ["q0", "q0", "q0", "q0"])],
)
def test_shared_pages_group(tmp_path: Path, document: dict[str, str], groups: list[str]) -> None:
    queries = [{"query-id": f"q{number}", "query": "?", "answer": "x"} for number in range(4)]
    pairs = (("q0", "a"), ("q1", "a"), ("q1", "b"), ("q2", "b"), ("q3", "c"))
    other = dict.fromkeys(document, "d2")
    pages = [page("a", 9, **document), page("b", 9, **other), page("c", 9, **document)]
    labels = [label(query, name) for query, name in pairs]
    benchmark = load(write_pages(tmp_path / "decks", pages, queries, labels))
    assert list(benchmark.groups.values()) == groups
    assert benchmark.queries["q1"].metadata["hops"] == 2


def test_two_revisions_in_one_folder_and_missing_shards_are_refused(tmp_path: Path) -> None:
    folder = write_pages(tmp_path / "docs")
    new, old = (folder / f"queries/{name}" for name in ("train-00000-of-00001", "train/0000"))
    old.parent.mkdir()
    copyfile(new.with_suffix(".parquet"), old.with_suffix(".parquet"))
    with pytest.raises(VragError, match=r"2 shards of 1; expected each once"):
        load(folder)
    new.with_suffix(".parquet").unlink()
    assert len(load(folder).queries) == 2  # the other layout alone is read as well
    with pytest.raises(VragError, match=r"split 'test'; the splits in it are train\."):
        load(folder, split="test")
    shard = folder / "corpus" / "train-00000-of-00001.parquet"
    shard.rename(shard.with_name("train-00001-of-00002.parquet"))
    with pytest.raises(VragError, match="1 shards of 2"):
        load(folder)


def test_pictures_are_written_once_and_a_changed_file_is_read_anew(tmp_path: Path) -> None:
    folder = write_pages(tmp_path / "docs")
    before = load(folder)
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").glob("*.png")}
    assert len(files) == 3
    assert load(folder).fingerprint == before.fingerprint
    assert {path: path.stat().st_mtime_ns for path in files} == files
    write_pages(folder, [*PAGES[:2], page("deck_c.jpg", 40)])
    changed = load(folder)
    image = changed.corpus["deck_c.jpg"].image
    assert image is not None
    assert image.data() == png((40, 40, 40))
    assert changed.fingerprint != before.fingerprint


def test_vidores_and_mtebs_copies_name_ids_and_questions_differently(tmp_path: Path) -> None:
    numbers = [page(number, number) for number in (1, 2)]
    row = {"query-id": 5, "query": "Which page?"}
    folder = write_pages(tmp_path / "a", numbers, [row], [label(5, 2, 1.0)], split="test")
    vidore = load(folder, split="test", name="ViDoRe")
    assert vidore.qrels == {"5": {"2": 1}}
    assert vidore.queries["5"].answers == ()
    named = [{"id": "d 1", "image": PAGES[0]["image"]}]
    asked = [{"_id": "q1", "text": "Which page?"}]
    mteb = load(write_pages(tmp_path / "b", named, asked, [label("q1", "d 1")]))
    assert mteb.queries["q1"].text == "Which page?"
    assert mteb.qrels == {"q1": {"d%201": 1}}
    assert mteb.corpus["d%201"].metadata["id"] == "d 1"


KEYS = st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.integers(0, 6), max_size=3))


@given(KEYS)
def test_groups_are_connected_components_named_by_their_first(keys: dict[str, list[int]]) -> None:
    """As scipy finds them in the graph of questions and keys."""
    links = np.zeros((len(keys) + 7, len(keys) + 7))
    for number, linked in enumerate(keys.values()):
        for key in linked:
            links[number, len(keys) + key] = 1
    _, members = connected_components(links, directed=False)
    first: dict[int, str] = {}
    for name, component in zip(keys, members, strict=False):
        assert connected_groups(keys)[name] == first.setdefault(component, name)
