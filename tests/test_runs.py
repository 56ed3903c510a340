"""Runs and labels survive TREC files, order ties as trec_eval does, and are refused by
line when malformed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from vrag_kit.errors import VragError
from vrag_kit.retrieval import make_run, read_qrels, read_run, write_qrels, write_run


def test_a_run_comes_back_from_its_file_unchanged(tmp_path: Path) -> None:
    run = make_run([("q2", "b", 0.125), ("q2", "a", 0.25), ("q1", "c", 2**-24)])
    write_run(run, tmp_path / "x.run", "my retriever")
    assert read_run(tmp_path / "x.run").equals(run)
    assert (tmp_path / "x.run").read_text(encoding="utf-8").splitlines()[
        0
    ] == "q2 Q0 a 1 0.25 my-retriever"


def test_labels_come_back_from_their_file_unchanged(tmp_path: Path) -> None:
    labels = {"q1": {"a": 1, "b": 0}, "q2": {"a": 2}}
    write_qrels(labels, tmp_path / "labels.txt")
    assert read_qrels(tmp_path / "labels.txt") == labels


def test_equal_scores_are_ordered_by_doc_id_descending() -> None:
    assert list(make_run([("q", "a", 1.0), ("q", "c", 1.0), ("q", "b", 1.0)])["doc_id"]) == [
        "c",
        "b",
        "a",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("q Q0 d 1 0.5\n", "line 1: 5 fields, expected 6"),
        ("q Q0 d 1 0.5 t\nq Q0 e 2 high t\n", "line 2: score 'high'"),
        ("q Q0 d 1 nan t\n", "line 1: score 'nan'"),
        ("q Q0 d 1 0.5 t\nq Q0 d 2 0.4 t\n", "line 2: document 'd'.*already ranked in line 1"),
    ],
)
def test_a_malformed_run_is_refused_by_line(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "x.run").write_text(text, encoding="utf-8")
    with pytest.raises(VragError, match=words):
        read_run(tmp_path / "x.run")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("q 0 d yes\n", "line 1: label 'yes'"),
        ("q 0 d 1\nq 0 d 0\n", "line 2: document 'd'.*labelled 0 here and 1 before"),
    ],
)
def test_malformed_labels_are_refused_by_line(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "labels.txt").write_text(text, encoding="utf-8")
    with pytest.raises(VragError, match=words):
        read_qrels(tmp_path / "labels.txt")


def test_the_metrics_command_measures_any_two_files(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("q 0 a 1\nq 0 b 0\nmissing 0 a 1\n", encoding="utf-8")
    (tmp_path / "x.run").write_text("q Q0 b 1 0.9 t\nq Q0 a 2 0.8 t\n", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "vrag_kit.runner",
        "metrics",
        str(tmp_path / "labels.txt"),
        str(tmp_path / "x.run"),
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = {(row["metric"], row["k"]): row for row in json.loads(done.stdout)}
    assert rows["hit", 1] == {"metric": "hit", "k": 1, "value": 0.0, "n": 2}
    assert rows["recall", 5]["value"] == 0.5
    assert "1 queries of the labels have no results" in done.stderr


def test_a_command_that_fails_says_so_in_one_line_and_exits_with_2(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "vrag_kit.runner", "metrics", "nowhere.txt", "x.run"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: nowhere.txt: cannot be read")
    assert "Traceback" not in done.stderr


def test_a_run_that_found_nothing_is_an_empty_file_and_reads_back(tmp_path: Path) -> None:
    write_run(make_run([]), tmp_path / "none.run", "none")
    run = read_run(tmp_path / "none.run")
    assert len(run) == 0
    assert list(run.columns) == ["query_id", "doc_id", "rank", "score"]
    (tmp_path / "labels.txt").write_text("\n", encoding="utf-8")
    with pytest.raises(VragError, match=r"labels\.txt: empty; expected lines 'query_id 0"):
        read_qrels(tmp_path / "labels.txt")
