"""Questions over pages and charts in the published layouts, and data sets of any layout."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copyfile
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
from chart_rows import BLUE, KEYPOINTS, RED, ROWS, chart_row, write_charts
from hypothesis import given
from hypothesis import strategies as st
from mrag_rows import four_questions
from page_rows import LABELS, PAGES, QUERIES, label, page, png, write_pages
from scipy.sparse.csgraph import connected_components

from vrag_kit.benchmarks import load_chart_mrag, load_collection, load_page_benchmark
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
def test_ids_stay_different_and_give_the_names_back(first, second):
    assert len(encode_id(first).split()) <= 1
    assert unquote(encode_id(first)) == first
    assert (encode_id(first) == encode_id(second)) == (first == second)


def test_white_space_in_ids_is_kept(tmp_path, capsys):
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
    answer, options, right, choices, tmp_path
):
    row = {"query-id": "q1", "query": "Which?", "answer": answer, "options": options}
    query = load(write_pages(tmp_path / "arxiv", queries=[row])).queries["q1"]
    assert (query.answers, query.choices) == (right, choices)


def test_an_answer_must_be_an_option(tmp_path, capsys):
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
def test_shared_pages_group(tmp_path, document, groups):
    queries = [{"query-id": f"q{number}", "query": "?", "answer": "x"} for number in range(4)]
    pairs = (("q0", "a"), ("q1", "a"), ("q1", "b"), ("q2", "b"), ("q3", "c"))
    other = dict.fromkeys(document, "d2")
    pages = [page("a", 9, **document), page("b", 9, **other), page("c", 9, **document)]
    labels = [label(query, name) for query, name in pairs]
    benchmark = load(write_pages(tmp_path / "decks", pages, queries, labels))
    assert list(benchmark.groups.values()) == groups
    assert benchmark.queries["q1"].metadata["hops"] == 2


def test_two_revisions_in_one_folder_and_missing_shards_are_refused(tmp_path):
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


def test_pictures_are_written_once_and_a_changed_file_is_read_anew(tmp_path):
    folder = write_pages(tmp_path / "docs")
    before = load(folder)
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").glob("*.png")}
    assert len(files) == 3
    assert load(folder).fingerprint == before.fingerprint
    assert {path: path.stat().st_mtime_ns for path in files} == files
    write_pages(folder, [*PAGES[:2], page("deck_c.jpg", 40)])
    changed = load(folder)
    assert picture(changed, "deck_c.jpg") == png((40, 40, 40))
    assert changed.fingerprint != before.fingerprint


def test_vidores_and_mtebs_copies_name_ids_and_questions_differently(tmp_path):
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
def test_groups_are_connected_components_named_by_their_first(keys):
    """As scipy finds them in the graph of questions and keys."""
    links = np.zeros((len(keys) + 7, len(keys) + 7))
    for number, linked in enumerate(keys.values()):
        for key in linked:
            links[number, len(keys) + key] = 1
    _, members = connected_components(links, directed=False)
    first: dict[int, str] = {}
    for name, component in zip(keys, members, strict=False):
        assert connected_groups(keys)[name] == first.setdefault(component, name)


def load_charts(folder: Path, **options: Any) -> Benchmark:
    texts = folder / "text_corpus.jsonl"
    return load_chart_mrag(folder / "rows", texts, cache_dir=folder / "cache", **options)


def picture(benchmark: Benchmark, chart: str) -> bytes:
    return benchmark.corpus[chart].image.data()


def test_keypoints_are_labels_and_gold_claims(tmp_path):
    """What else is read, tests/goldens hold."""
    write_charts(tmp_path)
    benchmark = load_charts(tmp_path)
    query = benchmark.queries["Inter_Document_Text-Chart_00003"]
    assert query.metadata["gold_claims"] == ("May had 12.", "June had 3.", "Birds came later.")
    assert (query.metadata["hops"], query.metadata["required_modality"]) == (2, "both")
    gold = ("chart_00001_02", "chart_00002_01", "paragraph_00002_01_01")
    assert benchmark.qrels[query.query_id] == dict.fromkeys(gold, 1)


def test_a_chart_has_the_picture_of_the_row_that_names_it_alone(tmp_path):
    swapped = chart_row("Inter_Document_Text-Chart_00003", KEYPOINTS, BLUE, RED)
    write_charts(tmp_path, [swapped, *ROWS[1:]])
    benchmark = load_charts(tmp_path)
    assert picture(benchmark, "chart_00001_02") == RED
    assert picture(benchmark, "chart_00002_01") == BLUE


def test_a_row_may_hold_one_image_alone(tmp_path, capsys):
    write_charts(tmp_path, [ROWS[0], ROWS[2]], one_picture=True)
    assert list(load_charts(tmp_path).queries) == ["Single-Point_Text-only_00001"]
    assert "left out 1 of 2 questions" in capsys.readouterr().out
    more = chart_row("Single-Point_Chart-only_00009", {"chart_00002_01": "June had 3."}, BLUE)
    write_charts(tmp_path, [*ROWS, more], one_picture=True)
    benchmark = load_charts(tmp_path)
    assert len(benchmark.queries) == 4
    assert picture(benchmark, "chart_00002_01") == BLUE


def test_missing_evidence_is_left_out(tmp_path, capsys):
    bare = chart_row("Single-Point_Text-only_00004", {})
    lost = chart_row("Single-Point_Text-only_00005", {"paragraph_00009_01_01": "?"})
    write_charts(tmp_path, [*ROWS, bare, lost])
    benchmark = load_charts(tmp_path)
    assert len(benchmark.queries) == 4
    assert benchmark.qrels[bare["id"]] == {}
    said = capsys.readouterr().out
    assert "left out 1 of 5 questions" in said
    assert "00005): paragraph_00009_01_01" in said
    write_charts(tmp_path, [lost])
    with pytest.raises(VragError, match=r"evidence of all 1 questions is missing.*text_corpus"):
        load_charts(tmp_path)


def test_what_the_bars_say_may_stand_beside(tmp_path):
    write_charts(tmp_path)
    bars = tmp_path / "bars.jsonl"
    bars.write_text(json.dumps({"doc_id": "chart_00001_02", "text": "12 in May."}))
    benchmark = load_charts(tmp_path, chart_texts=bars)
    assert benchmark.corpus["chart_00001_02"].text == "12 in May."
    assert benchmark.fingerprint != load_charts(tmp_path).fingerprint
    bars.write_text(json.dumps({"doc_id": "chart_00009_01", "text": "12 in May."}))
    with pytest.raises(VragError, match=r"none of chart-mrag.* Give the sidecar of this data set"):
        load_charts(tmp_path, chart_texts=bars)


def test_missing_and_damaged_files_are_named(tmp_path):
    rows, _ = write_charts(tmp_path)
    arrow = rows / "data-00000-of-00001.arrow"
    arrow.write_bytes(arrow.read_bytes()[:-600])
    with pytest.raises(VragError, match=r"arrow: cannot be read"):
        load_charts(tmp_path)
    arrow.unlink()
    with pytest.raises(VragError, match=r"data-00000-of-00001\.arrow"):
        load_charts(tmp_path)


Entries = dict[str, dict[str, str]]
QUESTIONS = four_questions()


@pytest.fixture
def entries(tmp_path, monkeypatch, write_annotations):
    """Four small data sets, in four layouts, below a project's root."""
    for folder in ("notebooks", "params"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path)
    write_pages(tmp_path / "data" / "docs")
    write_charts(tmp_path / "data" / "charts")
    row = {"Q": '"Why?"', "A": ['"So."'], "split": "val", "img_posFacts": [], "img_negFacts": []}
    row |= {"txt_posFacts": [{"fact": "So it is."}], "txt_negFacts": []}
    Path("data/webqa.json").write_text(json.dumps({"a1": row}), encoding="utf-8")
    write_annotations({}).rename("data/visual.jsonl")
    charts = {"rows": "data/charts/rows", "texts": "data/charts/text_corpus.jsonl"}
    visual = {"annotations": "data/visual.jsonl", "image_root": "images"}
    return {
        "Doc": {"layout": "pages", "rows": "data/docs", "domain": "Scans"},
        "Chart": {"layout": "charts", **charts},
        "Web": {"layout": "webqa", "annotations": "data/webqa.json", "questions": "text"},
        "Visual": {"layout": "visual-rag", **visual},
    }


def test_every_query_of_every_layout_tells_the_same_things(entries):
    suite = load_collection(entries)
    assert [benchmark.name for benchmark in suite.values()] == list(suite) == list(entries)
    for benchmark in suite.values():
        for query in benchmark.queries.values():
            assert isinstance(query.metadata["reference"], str)
            assert isinstance(query.metadata["gold_claims"], tuple)
            assert query.group
    told = {name: next(iter(each.queries.values())).metadata for name, each in suite.items()}
    assert [told[name]["domain"] for name in suite] == ["Scans", "", "", ""]
    assert [told[name]["required_modality"] for name in suite] == ["image", "both", "text", "image"]
    assert told["Visual"]["hops"] is None
    assert told["Chart"]["gold_claims"]


def test_open_answers_show_no_options(entries, monkeypatch):
    """As the paper asks MRAG-Bench; another fingerprint, as another thing is asked."""
    monkeypatch.setattr(
        "vrag_kit.benchmarks.datasets.collection.load_mrag_bench", lambda *_, **__: QUESTIONS
    )
    entry = {"layout": "mrag-bench", "rows": "data/docs"}
    found = load_collection({"closed": entry, "open": {**entry, "answers": "open"}})
    closed, asked = found["closed"], found["open"]
    assert any(query.choices for query in closed.queries.values())
    assert not any(query.choices for query in asked.queries.values())
    assert [each.answers for each in asked.queries.values()] == [
        each.answers for each in QUESTIONS.queries.values()
    ]
    assert asked.fingerprint != closed.fingerprint
