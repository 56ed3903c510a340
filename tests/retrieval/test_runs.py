"""TREC files are read as trec_eval reads them, and any run takes a retriever's place; a finished
search is read back without its model, and made again when anything changed.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from functools import partial
from typing import Any

import factories
import pandas as pd
import pytest
import pytrec_eval
import tiny_retrievers as tiny
from commands import said
from hypothesis import given, settings
from hypothesis import strategies as st
from retrieval_data import refused
from tiny_retrievers import entry

from vrag_kit.dry_run import dry_run
from vrag_kit.retrieval import (
    make_run,
    read_qrels,
    read_run,
    search_all,
    search_one,
    write_qrels,
    write_run,
    write_runs,
)
from vrag_kit.types import Benchmark, Document, Query
from vrag_kit.workspace import Workspace

Scores = dict[str, dict[str, float]]
TEXT = """q1 Q0 a 1 0.9 t
q1 Q0 b 2 0.5 t
q1 Q0 c 3 0.4 t
q2\tQ0\tc\t1\t1.5e-1\tmine

q2\tQ0\ta\t2\t-2E-3\tmine
"""


def small() -> Benchmark:
    """Two queries to four documents; the second is not searched in d."""
    labels = {"q1": {"a": 1}, "q2": {"a": 1}}
    pools = {"q1": tuple("abcd"), "q2": tuple("abc")}
    documents = [Document(doc_id=name, text=name) for name in "abcd"]
    return factories.benchmark(labels, documents, labels, pools=pools)


def found(entry: object, at: Workspace, k: int = 3) -> dict[str, pd.DataFrame]:
    return search_all(small(), [entry], at=at, k=k)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "my.bm25.run"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_runs_and_labels_come_back_from_their_files_unchanged(tmp_path):
    """Ids that look like something else stay text."""
    ids = ["001", "1", "1e5", "NA", "nan", "null", '"a', "'b'", "#c", "d,e", "é"]
    rows = [(query_id, doc_id, 2.0**-place) for query_id in ids for place, doc_id in enumerate(ids)]
    run = make_run(rows)
    write_run(run, tmp_path / "x.run", "my retriever")
    assert read_run(tmp_path / "x.run").equals(run)
    first, *_ = (tmp_path / "x.run").read_text(encoding="utf-8").splitlines()
    assert first == "001 Q0 001 1 1 my-retriever"
    labels = {query_id: {**dict.fromkeys(ids, 1), "none": 0, "more": 2} for query_id in ids}
    write_qrels(labels, tmp_path / "labels.txt")
    assert read_qrels(tmp_path / "labels.txt") == labels


def test_equal_scores_are_ordered_by_doc_id_descending():
    run = make_run([("q", "a", 1.0), ("q", "c", 1.0), ("q", "b", 1.0)])
    assert list(run["doc_id"]) == ["c", "b", "a"]


@st.composite
def scored(draw: st.DrawFn) -> Scores:
    """Runs whose scores are near one another, beyond what float32 tells apart."""
    names = st.text("abcdé-/.0", min_size=1, max_size=4)
    base = st.sampled_from([0.0, 1.0, 1e-12, 123.456, -3.5e20])
    step = st.sampled_from([0.0, 1e-9, 1e-4])
    score = st.builds(lambda start, by: start + by, base, step)
    documents = st.dictionaries(names, score, min_size=1, max_size=8)
    return draw(st.dictionaries(names, documents, min_size=1, max_size=3))


@pytest.mark.slow
@settings(max_examples=40)
@given(scored(), st.sampled_from([" ", "\t", "  \t "]), st.sampled_from(["\n", "\n\n", "\r\n"]))
def test_a_run_is_ordered_as_trec_eval_orders_it_and_written_as_it_reads_it(
    tmp_path_factory, scores, between, end
):
    path = tmp_path_factory.mktemp("run") / "x.run"
    lines = []
    for query, documents in scores.items():
        for name, score in documents.items():
            lines.append(between.join([query, "Q0", name, "1", f"{score:.17e}", "t"]))
    path.write_text(end.join(lines) + end, encoding="utf-8", newline="")
    ours = read_run(path)
    for query, documents in scores.items():
        ranked = list(ours[ours["query_id"] == query]["doc_id"])
        for name in documents:  # the place of a document is 1 / reciprocal rank
            judge = pytrec_eval.RelevanceEvaluator({query: {name: 1}}, {"recip_rank"})
            place = 1 / judge.evaluate({query: documents})[query]["recip_rank"]
            assert ranked.index(name) + 1 == round(place)
    write_run(ours, path, "a tag")
    assert read_run(path).equals(ours)
    with path.open(encoding="utf-8") as written:
        theirs = pytrec_eval.parse_run(written)
    assert {query: set(some) for query, some in theirs.items()} == {
        query: set(some) for query, some in scores.items()
    }


def test_the_metrics_command_has_no_value_beyond_what_a_run_holds(tmp_path):
    """Five results of q: whether the sixth is d6 nobody knows, and r ended by itself. Of
    three documents the pool of s is ranked to its end.
    """

    def measured(labels: str, run: str) -> list[dict[str, Any]]:
        (tmp_path / "labels.txt").write_text(labels, encoding="utf-8")
        (tmp_path / "x.run").write_text(run, encoding="utf-8")
        files = (str(tmp_path / name) for name in ("labels.txt", "x.run"))
        told = said("metrics", *files, "--json")[1]
        return json.JSONDecoder().raw_decode(told)[0]

    labels = "".join(f"q 0 d{number} 1\n" for number in range(9)) + "r 0 a 1\nr 0 b 1\n"
    ranked = [f"q Q0 d{number} 1 {9 - number} t\n" for number in range(5)]
    table = measured(labels, "".join([*ranked, "r Q0 a 1 9 t\n"]))
    rows = {(row["metric"], row["k"]): row for row in table}
    assert rows["recall", 5]["value"] == pytest.approx((5 / 9 + 1 / 2) / 2)
    for metric in ("recall", "ndcg", "hit", "hit_count"):
        assert rows[metric, 5]["n"] == 2
        assert rows[metric, 10] == {"metric": metric, "k": 10, "value": None, "n": 0}
    labels, run = "s 0 d0 0\ns 0 d1 1\ns 0 d2 0\n", "".join(ranked[:3]).replace("q", "s")
    assert {row["n"] for row in measured(labels, run)} == {1}


def test_gzipped_runs_and_windows_files_are_read(file, tmp_path):
    run = read_run(file)
    (tmp_path / "x.run.gz").write_bytes(gzip.compress(TEXT.encode()))
    (tmp_path / "w.run").write_bytes(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())
    write_run(run, tmp_path / "y.run.gz", "mine")
    assert gzip.decompress((tmp_path / "y.run.gz").read_bytes()).endswith(b" mine\n")
    for name in ("x.run.gz", "w.run", "y.run.gz"):
        assert read_run(tmp_path / name).equals(run)
    blank, cut = run.assign(doc_id="a blank"), tmp_path / "cut.run.gz"
    refused(lambda: write_run(blank, file, "mine"), "'a blank' cannot stand in a TREC run")
    refused(lambda: write_run(run, file, ""), "'' cannot stand in a TREC run")
    cut.write_bytes(gzip.compress(TEXT.encode())[:-9])
    refused(lambda: read_run(cut), "cut.run.gz", "cannot be read")


def test_a_run_takes_a_retrievers_place_under_its_files_name(file, tmp_path, capsys, at):
    (run,) = found(str(file), at, k=2).values()
    assert run.attrs["retriever"] == "my.bm25"  # as results say who found
    rows = [tuple(row) for row in run[["query_id", "doc_id", "rank"]].to_numpy()]
    assert rows == [("q1", "a", 1), ("q1", "b", 2), ("q2", "c", 1), ("q2", "a", 2)]
    assert "run my.bm25: skipped" in capsys.readouterr().out
    assert not [*tmp_path.glob("*/")]  # nothing was embedded
    two = ["field-guide-clip-32", {"model": str(file), "name": "mine"}]
    runs = search_all(small(), two, at=at, k=3)
    assert [run.attrs["retriever"] for run in runs.values()] == ["field-guide-clip-32", "mine"]
    twice = [two[0], {"model": str(file), "name": two[0]}]
    search = partial(search_all, small(), twice, k=3, at=at)
    refused(search, "two retrievers are named 'field-guide-clip-32'")


def test_a_dry_run_reads_the_run_itself(file, tmp_path, at):
    with dry_run(tmp_path / "scratch") as forecast:
        (foreseen,) = found(str(file), at).values()
    assert foreseen.equals(found(str(file), at)["my.bm25"])
    assert not forecast.any_order


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        (f"{TEXT}q1 Q0 a 4 0.1 t\n", "line 7 | 'a' | 'q1'"),
        (TEXT.replace("q2", "q2x"), "1 of 2 queries | 'q2' | 'q1'"),
        ("q1 Q0 a 1 1 t\nq2 Q0 d 1 1 t\n", "'q2' | 'a'"),
    ],
)
def test_a_run_of_others_is_refused(text, tokens, tmp_path, at):
    (tmp_path / "x.run").write_text(text, encoding="utf-8")
    refused(lambda: found(str(tmp_path / "x.run"), at), *tokens.split(" | "))


def test_other_questions_and_documents_that_are_no_candidates_are_skipped(tmp_path, capsys, at):
    more = f"{TEXT}q2 Q0 d 3 9 t\nq3 Q0 nothing 1 1 t\n"
    (tmp_path / "x.run").write_text(more, encoding="utf-8")
    (run,) = found(str(tmp_path / "x.run"), at).values()
    assert list(run[run["query_id"] == "q2"]["doc_id"]) == ["c", "a"]
    assert "skipped 2 lines" in capsys.readouterr().out


def test_a_run_is_not_written_over_its_file(file, tmp_path, at):
    runs = found(str(file), at, k=1)
    for folder in (tmp_path, tmp_path / "elsewhere"):
        write_runs(small(), runs, folder)
    assert file.read_text(encoding="utf-8") == TEXT
    assert len(read_run(tmp_path / "elsewhere" / "my.bm25.run")) == 2


@pytest.fixture
def benchmark(documents):
    """Three questions with images to four documents with images and texts."""
    pairs = zip(tiny.queries(), documents, strict=False)
    queries = [replace(query, image=document.image) for query, document in pairs]
    return factories.benchmark(queries, documents)


class Searches:
    """Searches in one workspace; `output` is what the last one printed."""

    def __init__(self, at: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
        self.at, self.capsys = at, capsys

    def __call__(self, benchmark: Benchmark, spec: object, k: int = 2) -> pd.DataFrame:
        run = search_one(benchmark, spec, at=self.at, k=k)
        self.output = "".join(self.capsys.readouterr())
        return run

    @property
    def read_back(self) -> bool:
        return "found before" in self.output


@pytest.fixture
def search(at, capsys):
    return Searches(at, capsys)


@pytest.mark.slow
def test_a_search_is_made_again_when_something_that_determines_it_has_changed(
    benchmark, retrievers_made, search
):
    first, *_, last = benchmark.queries.values()
    reworded = {**benchmark.queries, first.query_id: replace(first, text="Which bird?")}
    some = {name: benchmark.corpus[name] for name in ("d0", "d1", "d2")}
    made = partial(entry, retrievers_made)
    cases: list[tuple[Benchmark, Any, int]] = [
        (benchmark, made("clip"), 2),
        (benchmark, made("clip"), 3),
        (benchmark, made("clip", query_prompt="a photo of {text}"), 2),
        (benchmark, made("siglip"), 2),
        (replace(benchmark, queries=reworded), made("clip"), 2),
        (replace(benchmark, queries={last.query_id: last}), made("clip"), 2),
        (replace(benchmark, corpus=some), made("clip"), 2),
        (replace(benchmark, pools=dict.fromkeys(benchmark.queries, tuple(some))), made("clip"), 2),
    ]
    runs = []
    for case in cases:
        runs.append(search(*case))
        assert not search.read_back
    for case, run in zip(cases, runs, strict=True):
        assert search(*case).equals(run)  # to the last bit
        assert search.read_back


@pytest.mark.slow
@pytest.mark.parametrize("family", ["clip", "qwen2_vl"])
def test_documents_are_embedded_once_for_all_parts_of_a_question(
    family, benchmark, retrievers_made, tmp_path, search
):
    prompts = {"image": "<|image_pad|> Find this.", "both": "<|image_pad|> Find this: {text}"}
    if family == "clip":
        prompts = {}
    runs = {}
    for part in ("image", "both", "text"):
        more = {"query_prompt": prompts[part]} if part in prompts else {}
        spec = entry(retrievers_made, family, query=part, **more)
        runs[part] = search(benchmark, spec, 4)
        assert ("4 from disk, 0 new" in search.output) == (part != "image")
        apart = Workspace(cache_dir=tmp_path / part)
        assert runs[part].equals(search_one(benchmark, spec, at=apart, k=4))  # to the last bit
    assert not runs["image"]["score"].equals(runs["both"]["score"])


def test_a_damaged_run_is_made_again(benchmark, retrievers_made, tmp_path, search):
    clip = str(retrievers_made / "clip")
    found = search(benchmark, clip)
    (stored,) = tmp_path.glob("clip-*/runs/*.json.gz")
    content = stored.read_bytes()
    flipped = bytes([*content[:-12], content[-12] ^ 1, *content[-11:]])
    for damage in (b"", flipped):
        stored.write_bytes(damage)
        for again in (False, True):
            assert search(benchmark, clip).equals(found)
            assert search.read_back == again


def test_a_missing_image_is_named(benchmark, retrievers_made, search):
    spec = entry(retrievers_made, "clip", query="image")
    search(benchmark, spec)
    bare = replace(benchmark, queries={"q": Query(query_id="q", text="Which?")})
    refused(lambda: search(bare, spec), "query 'q' has no image")
