"""Runs and labels survive TREC files, order ties as trec_eval does, and are refused by
line when malformed.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vrag_kit.errors import VragError
from vrag_kit.retrieval import make_run, read_qrels, read_run, write_qrels, write_run
from vrag_kit.runner.cli import app


def test_a_run_comes_back_from_its_file_unchanged(tmp_path: Path) -> None:
    run = make_run([("q2", "b", 0.125), ("q2", "a", 0.25), ("q1", "c", 2**-24)])
    write_run(run, tmp_path / "x.run", "my retriever")
    assert read_run(tmp_path / "x.run").equals(run)
    first, *_ = (tmp_path / "x.run").read_text(encoding="utf-8").splitlines()
    assert first == "q2 Q0 a 1 0.25 my-retriever"


def test_labels_come_back_from_their_file_unchanged(tmp_path: Path) -> None:
    labels = {"q1": {"a": 1, "b": 0}, "q2": {"a": 2}}
    write_qrels(labels, tmp_path / "labels.txt")
    assert read_qrels(tmp_path / "labels.txt") == labels


def test_ids_that_look_like_something_else_stay_text(tmp_path: Path) -> None:
    ids = ["001", "1", "1e5", "NA", "nan", "null", '"a', "'b'", "#c", "d,e", "é"]
    run = make_run([(query_id, doc_id, 1.0) for query_id in ids for doc_id in ids])
    write_run(run, tmp_path / "x.run", "t")
    assert read_run(tmp_path / "x.run").equals(run)
    labels = {query_id: dict.fromkeys(ids, 1) for query_id in ids}
    write_qrels(labels, tmp_path / "labels.txt")
    assert read_qrels(tmp_path / "labels.txt") == labels


def test_equal_scores_are_ordered_by_doc_id_descending() -> None:
    run = make_run([("q", "a", 1.0), ("q", "c", 1.0), ("q", "b", 1.0)])
    assert list(run["doc_id"]) == ["c", "b", "a"]


def test_distances_that_are_written_as_scores_are_refused_and_not_read_backwards(
    tmp_path: Path,
) -> None:
    lines = ["q Q0 a 1 0.1 t", "q Q0 b 2 0.4 t", "p Q0 c 1 0.2 t", "p Q0 a 2 0.3 t"]
    (tmp_path / "x.run").write_text("\n".join(lines), encoding="utf-8")
    tokens = "line 2: rank 2 .*'q' .*0.4.* rank 1 .*0.1.*throughout the file.*as negative numbers"
    with pytest.raises(VragError, match=tokens):
        read_run(tmp_path / "x.run")


def test_ranks_that_contradict_the_scores_are_noted_and_scores_order_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["q Q0 a 1 0.5 t", "q Q0 b 2 0.2 t", "q Q0 c 3 0.3 t", "q Q0 d 4 0.1 t"]
    (tmp_path / "x.run").write_text("\n".join(lines), encoding="utf-8")
    assert list(read_run(tmp_path / "x.run")["doc_id"]) == ["a", "c", "b", "d"]
    said = capsys.readouterr()
    assert said.out == ""  # which may be JSON
    assert all(token in said.err for token in ("x.run line 3: rank 3", "'q'", "0.3", "1 of 3"))


@pytest.mark.parametrize("ranks", ["1 2 3", "0 0 0", "3 3 3", "x x x", "1 - 2"])
def test_ranks_that_say_nothing_else_than_the_scores_are_no_matter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ranks: str
) -> None:
    parts = zip("abc", ranks.split(), ("0.3", "0.2", "0.2"), strict=True)
    lines = [f"q Q0 {name} {rank} {score} t" for name, rank, score in parts]
    (tmp_path / "x.run").write_text("\n".join(lines), encoding="utf-8")
    assert list(read_run(tmp_path / "x.run")["doc_id"]) == ["a", "c", "b"]
    assert capsys.readouterr().err == ""


def test_the_metrics_command_measures_any_two_files(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("q 0 a 1\nq 0 b 0\nmissing 0 a 1\n", encoding="utf-8")
    (tmp_path / "x.run").write_text("q Q0 b 1 0.9 t\nq Q0 a 2 0.8 t\n", encoding="utf-8")
    files = [str(tmp_path / "labels.txt"), str(tmp_path / "x.run")]
    done = CliRunner().invoke(app, ["metrics", *files, "--json"])
    rows = {(row["metric"], row["k"]): row for row in json.loads(done.stdout)}
    assert rows["hit", 1] == {"metric": "hit", "k": 1, "value": 0.0, "n": 2}
    assert rows["recall", 5]["value"] == 0.5
    assert "1 queries of the labels have no results" in done.stderr


def test_beyond_what_a_run_holds_the_metrics_command_has_no_value(tmp_path: Path) -> None:
    """Five results of q: whether the sixth is d6 nobody knows, and r ended by itself. Of
    three documents the pool of s is ranked to its end.
    """
    labels = [f"q 0 d{number} 1" for number in range(9)] + ["r 0 a 1", "r 0 b 1"]
    ranked = [f"q Q0 d{number} 1 {9 - number} t" for number in range(5)] + ["r Q0 a 1 9 t"]
    (tmp_path / "labels.txt").write_text("\n".join(labels) + "\n", encoding="utf-8")
    (tmp_path / "x.run").write_text("\n".join(ranked) + "\n", encoding="utf-8")
    files = [str(tmp_path / "labels.txt"), str(tmp_path / "x.run")]
    told = CliRunner().invoke(app, ["metrics", *files, "--json"])
    rows = {(row["metric"], row["k"]): row for row in json.loads(told.stdout)}
    assert rows["recall", 5]["value"] == pytest.approx((5 / 9 + 1 / 2) / 2)
    for metric in ("recall", "ndcg", "hit", "hit_count"):
        assert rows[metric, 5]["n"] == 2
        for k in (10, 20, 30):
            assert rows[metric, k] == {"metric": metric, "k": k, "value": None, "n": 0}
    assert "the run has at most 5 results a query: no value at k = 10, 20, 30" in told.stderr
    whole = [f"s Q0 d{number} 1 {9 - number} t\n" for number in range(3)]
    (tmp_path / "x.run").write_text("".join(whole), encoding="utf-8")
    (tmp_path / "labels.txt").write_text("s 0 d0 0\ns 0 d1 1\ns 0 d2 0\n", encoding="utf-8")
    told = CliRunner().invoke(app, ["metrics", *files, "--json"])
    assert {row["n"] for row in json.loads(told.stdout)} == {1}
    assert "no value" not in told.stderr


@pytest.mark.parametrize("text", ["", "\n", "q Q0 a 1 inf t\n", "q Q0 a 0.5 1 t\n"])
def test_the_metrics_command_measures_no_run_of_a_job_that_died(tmp_path: Path, text: str) -> None:
    (tmp_path / "labels.txt").write_text("q 0 a 1\n", encoding="utf-8")
    (tmp_path / "x.run").write_text(text, encoding="utf-8")
    files = [str(tmp_path / "labels.txt"), str(tmp_path / "x.run")]
    told = CliRunner().invoke(app, ["metrics", *files])
    assert told.exit_code
    assert told.stdout == ""
    assert "x.run" in str(told.exception)
    (tmp_path / "labels.txt").write_text("\n", encoding="utf-8")
    with pytest.raises(VragError, match=r"labels\.txt: empty; expected lines 'query_id 0"):
        read_qrels(tmp_path / "labels.txt")
