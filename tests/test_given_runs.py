"""A TREC run from elsewhere stands where a retriever's name does: read as trec_eval reads
it, held against the benchmark's queries and documents, and never embedded.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import factories
import pandas as pd
import pytest
import pytrec_eval
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

from vrag_kit.dry_run import dry_run
from vrag_kit.errors import VragError
from vrag_kit.generation import top_k
from vrag_kit.papers import mrag_bench
from vrag_kit.retrieval import make_run, read_run, score_runs, search_all, write_run, write_runs
from vrag_kit.retrieval.services import image_service, text_service
from vrag_kit.runner.params import declared_parameters, split_by_notebook
from vrag_kit.types import Benchmark, Document, Query

Scores = dict[str, dict[str, float]]
TEXT = """q1 Q0 a 1 0.9 t
q1 Q0 b 2 0.5 t
q1 Q0 c 3 0.4 t
q2\tQ0\tc\t1\t1.5e-1\tmine

q2\tQ0\ta\t2\t-2E-3\tmine
"""


def benchmark() -> Benchmark:
    """Two queries to four documents; the second is not searched in d."""
    queries = [Query(query_id=name, text=name, group=name) for name in ("q1", "q2")]
    documents = [Document(doc_id=name, text=name) for name in "abcd"]
    labels = {"q1": {"a": 1}, "q2": {"a": 1}}
    pools = {"q1": tuple("abcd"), "q2": tuple("abc")}
    return factories.benchmark(queries, documents, labels, pools=pools, name="four")


def found(entry: object, folder: Path, k: int = 3) -> dict[str, pd.DataFrame]:
    return search_all(benchmark(), [entry], k=k, cache_dir=folder / "embeddings")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "my.bm25.run"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_a_run_stands_for_a_retriever_under_its_files_name(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = found(str(file), tmp_path, k=2)
    assert list(runs) == ["my.bm25"]
    assert runs["my.bm25"].attrs["retriever"] == "my.bm25"  # as results say who found
    rows = [tuple(row) for row in runs["my.bm25"][["query_id", "doc_id", "rank"]].to_numpy()]
    assert rows == [("q1", "a", 1), ("q1", "b", 2), ("q2", "c", 1), ("q2", "a", 2)]
    assert capsys.readouterr().out == "run my.bm25: 2 queries, 2 documents each\n"
    assert list(found({"model": str(file), "name": "mine"}, tmp_path)) == ["mine"]
    assert not (tmp_path / "embeddings").exists()  # nothing was embedded


def test_what_is_larger_than_a_run_is_deep_is_cut_for_all_questions_alike(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run,) = found(str(file), tmp_path, k=30).values()
    assert "run my.bm25: 2 queries, 2 to 3 documents each\n" in capsys.readouterr().out
    assert {context.k for context in top_k(benchmark(), run, ks=[1, 3], full_depth=True)} == {1, 2}
    scores = score_runs(benchmark(), {"mine": run}, cutoffs=(1, 5), full_depth=True)
    assert set(scores["k"]) == {1, 2}
    assert "the run of mine holds 2 documents for query 'q2'" in capsys.readouterr().out


def test_runs_and_encoders_stand_in_one_list(file: Path, tmp_path: Path) -> None:
    guide = benchmark()
    runs = search_all(
        guide, ["field-guide-clip-32", str(file)], k=3, cache_dir=tmp_path / "embeddings"
    )
    assert list(runs) == ["field-guide-clip-32", "my.bm25"]
    assert [run.attrs["retriever"] for run in runs.values()] == list(runs)
    assert set(score_runs(guide, runs, cutoffs=(1,))["retriever"]) > set(runs)
    again = {"model": str(file), "name": "field-guide-clip-32"}
    with pytest.raises(VragError, match="two retrievers are named 'field-guide-clip-32'"):
        search_all(guide, ["field-guide-clip-32", again], k=3, cache_dir=tmp_path / "embeddings")


def test_a_forecast_reads_the_run_itself(file: Path, tmp_path: Path) -> None:
    (asked,) = found(str(file), tmp_path).values()
    with dry_run(tmp_path / "scratch") as forecast:
        (foreseen,) = found(str(file), tmp_path).values()
    assert foreseen.equals(asked)
    assert not forecast.any_order


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"x\.run: empty; expected lines 'query_id Q0 doc_id rank score tag'"),
        (TEXT.replace("0.4", "inf"), r"x\.run line 3: score 'inf'"),
        (TEXT.replace(" 3 ", " 2.5 "), r"x\.run line 3: rank '2\.5'"),
        ("q1 Q0 a 1 0.9\n", r"x\.run line 1: 5 fields, expected 6"),
        (f"{TEXT}q1 Q0 a 4 0.1 t\n", "line 7: document 'a' of query 'q1' was already ranked"),
        (TEXT.replace("q2", "q2x"), "1 of 2 queries .*'q2'; line 4 .*'q2x'.*mean 'q2'"),
        (TEXT.split("q2")[0], "1 of 2 queries of four .*'q2'"),
        (TEXT.replace("Q0 b", "Q0 images/bb"), "line 2: document 'images/bb' .*such as 'a'"),
        (TEXT.replace("Q0 b", "Q0 bb"), "line 2: document 'bb' .*'b'"),
        ("q1 Q0 a 1 1 t\nq2 Q0 d 1 1 t\n", "'q2' .*in four, such as .*'a'"),
    ],
)
def test_a_run_that_does_not_fit_is_refused_with_its_line(
    text: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "x.run").write_text(text, encoding="utf-8")
    with pytest.raises(VragError, match=words):
        found(str(tmp_path / "x.run"), tmp_path)


def test_a_run_that_is_not_there_is_looked_for_nowhere_else(file: Path, tmp_path: Path) -> None:
    near = str(tmp_path / "my.bm52.run")
    with pytest.raises(VragError, match=r"no such file.*Did you mean 'my\.bm25\.run'"):
        found(near, tmp_path)
    with pytest.raises(VragError, match="unknown option 'query'; expected name"):
        found({"model": str(file), "query": "image"}, tmp_path)
    with pytest.raises(VragError, match="name is 'a/b'; expected a text without '/'"):
        found({"model": str(file), "name": "a/b"}, tmp_path)


def test_questions_that_are_not_asked_and_documents_that_are_no_candidates_are_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = f"{TEXT}q2 Q0 d 3 9 t\nq3 Q0 nothing 1 1 t\n"
    (tmp_path / "x.run").write_text(more, encoding="utf-8")
    (run,) = found(str(tmp_path / "x.run"), tmp_path).values()
    assert list(run[run["query_id"] == "q2"]["doc_id"]) == ["c", "a"]
    assert "skipped 2 lines" in capsys.readouterr().out


def test_a_run_is_not_written_over_the_file_that_it_was_read_from(
    file: Path, tmp_path: Path
) -> None:
    runs = found(str(file), tmp_path, k=1)
    write_runs(benchmark(), runs, tmp_path)
    assert file.read_text(encoding="utf-8") == TEXT
    write_runs(benchmark(), runs, tmp_path / "elsewhere")
    assert len(read_run(tmp_path / "elsewhere" / "my.bm25.run")) == 2


def test_a_search_that_is_asked_anew_takes_no_run(file: Path, tmp_path: Path) -> None:
    for service in (image_service, text_service):
        with pytest.raises(VragError, match="is a run, which ranks questions as they stand"):
            service(benchmark().corpus, str(file), tmp_path)


def test_gzipped_runs_and_windows_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "x.run").write_text(TEXT, encoding="utf-8")
    (tmp_path / "x.run.gz").write_bytes(gzip.compress(TEXT.encode()))
    (tmp_path / "w.run").write_bytes(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())
    for name in ("x.run.gz", "w.run"):
        assert read_run(tmp_path / name).equals(read_run(tmp_path / "x.run"))
    write_run(read_run(tmp_path / "x.run.gz"), tmp_path / "y.run.gz", "mine")
    assert gzip.decompress((tmp_path / "y.run.gz").read_bytes()).endswith(b" mine\n")
    assert read_run(tmp_path / "y.run.gz").equals(read_run(tmp_path / "x.run.gz"))
    blank = read_run(tmp_path / "x.run.gz").assign(doc_id="a blank")
    with pytest.raises(VragError, match="'a blank' cannot stand in a TREC run"):
        write_run(blank, tmp_path / "z.run", "mine")
    with pytest.raises(VragError, match="'' cannot stand in a TREC run"):
        write_run(read_run(tmp_path / "x.run.gz"), tmp_path / "z.run", "")
    (tmp_path / "cut.run.gz").write_bytes(gzip.compress(TEXT.encode())[:-9])
    with pytest.raises(VragError, match=r"cut\.run\.gz: cannot be read"):
        read_run(tmp_path / "cut.run.gz")


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
@settings(max_examples=100, deadline=None)
@given(scored(), st.sampled_from([" ", "\t", "  \t "]), st.sampled_from(["\n", "\n\n", "\r\n"]))
def test_a_run_is_ordered_as_trec_eval_orders_it(
    tmp_path_factory: pytest.TempPathFactory, scores: Scores, between: str, end: str
) -> None:
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


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(scored())
def test_a_run_comes_back_from_its_file_and_reads_alike_elsewhere(
    tmp_path_factory: pytest.TempPathFactory, scores: Scores
) -> None:
    path = tmp_path_factory.mktemp("run") / "x.run"
    rows = [(query, name, score) for query, some in scores.items() for name, score in some.items()]
    write_run(make_run(rows), path, "a tag")
    once = read_run(path)
    write_run(once, path, "a tag")
    assert read_run(path).equals(once)
    with path.open(encoding="utf-8") as file:
        theirs = pytrec_eval.parse_run(file)
    assert {query: set(some) for query, some in theirs.items()} == {
        query: set(some) for query, some in scores.items()
    }


def test_examples_of_a_shallow_run_are_as_many_for_every_question(tmp_path: Path) -> None:
    about = {"metadata": {"scenario": "angle"}}
    asked = [Query(query_id=name, text=name, group=name, **about) for name in ("q1", "q2")]
    few = factories.benchmark(asked, benchmark().corpus.values())
    (tmp_path / "x.run").write_text(TEXT, encoding="utf-8")
    (run,) = search_all(few, [str(tmp_path / "x.run")], k=5, cache_dir=tmp_path).values()
    shown = [context.doc_ids for context in mrag_bench.settings.retrieved_rag(few, run)]
    assert shown == [("a", "b"), ("c", "a")]


def test_a_name_stands_where_a_notebook_has_a_retriever_with_options() -> None:
    notebook = ROOT / "notebooks" / "mrag_bench" / "35_mrag_positions.ipynb"
    assert isinstance(declared_parameters(notebook)["retriever"], dict)
    given = split_by_notebook([notebook], {"retriever": "my.run"}, Path("p.yaml"))
    assert given[notebook] == {"retriever": "my.run"}
