"""`vrag check` names everything that is wrong with pages and charts, in one walk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chart_rows import RED, ROWS, SENTENCES, chart_row, write_charts
from page_rows import LABELS, PAGES, QUERIES, label, page, write_pages
from typer.testing import CliRunner

from vrag_kit.errors import VragError
from vrag_kit.fetching import find_problems
from vrag_kit.runner.cli import app


def findings(folder: Path) -> list[tuple[str, str]]:
    """(kind, location and message) of each problem in a folder."""
    table = find_problems(folder)
    return [(row["kind"], f"{row['location']}: {row['message']}") for _, row in table.iterrows()]


def test_good_data_have_no_findings_and_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_pages(tmp_path / "plots")
    write_charts(tmp_path / "charts")
    assert findings(tmp_path) == []
    printed = capsys.readouterr().out
    assert "plots train, revision unknown: 2 questions, 3 pages, 2 labels" in printed
    assert "charts, revision unknown: 3 questions, 2 charts, 3 sentences" in printed
    assert "charts: 3 queries, 5 documents, 5 labels" in printed


@pytest.mark.parametrize(
    ("parts", "kind", "words"),
    [
        ({"queries": [*QUERIES, QUERIES[0]]}, "row", "row 2 (query q1): query 'q1' came before"),
        (
            {"queries": [*QUERIES, {"query-id": "q3", "query": ""}]},
            "row",
            "(query q3): 'query': found ''",
        ),
        (
            {"queries": [*QUERIES, {"query-id": "q3", "query": "?", "answer": "x"}]},
            "odd",
            "row 2 (query q3): no gold page",
        ),
        (
            {"pages": [*PAGES, PAGES[0]]},
            "row",
            "row 3 (page deck_a.jpg): page",
        ),
        (
            {"pages": [*PAGES, page("d", 1, image={"bytes": b"", "path": None})]},
            "missing",
            "(page d): 'image'",
        ),
        (
            {"pages": [*PAGES, page("d", 1, image={"bytes": b"no picture", "path": None})]},
            "damaged",
            "plots train: document d: ",
        ),
        ({"labels": [*LABELS, label("q1", "gone")]}, "row", "page 'gone' is not in the corpus"),
        (
            {"labels": [*LABELS, label("q1", "deck_a.jpg", -1)]},
            "row",
            "q1): 'score': found -1",
        ),
        ({"labels": [*LABELS, label("q9", "deck_a.jpg")]}, "odd", "labels of 1 questions"),
    ],
)
def test_each_fault_of_pages_is_found_alone_and_named_with_its_place(
    parts: dict[str, Any], kind: str, words: str, tmp_path: Path
) -> None:
    write_pages(tmp_path / "plots", **parts)
    ((found, told),) = findings(tmp_path)
    assert found == kind
    assert words in told


def test_an_answer_that_is_no_option_and_equal_options_are_told_apart(tmp_path: Path) -> None:
    rows = [
        {"query-id": "q1", "query": "?", "answer": "E", "options": ["A) red", "B) blue"]},
        {"query-id": "q2", "query": "?", "answer": "A", "options": ["A) red", "B) Red"]},
    ]
    write_pages(tmp_path, queries=rows, labels=LABELS[1:])
    assert [(kind, told.rpartition("): ")[2]) for kind, told in findings(tmp_path)] == [
        ("row", "the answer 'E' is none of the options red, blue"),
        ("odd", "two options are 'red'"),
    ]


@pytest.mark.parametrize(
    ("rows", "kind", "words"),
    [
        ([*ROWS, ROWS[1]], "row", "came before, in data-00000-of-00001.arrow row 1"),
        ([*ROWS, chart_row("r9", {"paragraph_9_1": " "})], "row", "paragraph_9_1 0: found"),
        (
            [*ROWS, chart_row("Single-Point_Text-only_9", {"paragraph_9_1": "x"})],
            "missing",
            "paragraph_9_1: not in text_corpus.jsonl",
        ),
        (
            [*ROWS, chart_row("Single-Point_Chart-only_9", {"chart_9_1": "x"}, b"no picture")],
            "damaged",
            "not a readable picture",
        ),
        ([*ROWS, chart_row("Single-Point_Text-only_9", {})], "odd", "no gold evidence"),
        (
            [*ROWS, chart_row("Single-Point_Text-only_9", {"chart_00001_02": "x"}, RED)],
            "odd",
            "the id says text, the evidence image",
        ),
    ],
)
def test_each_fault_of_charts_is_found_alone_and_named_with_its_place(
    rows: list[dict[str, Any]], kind: str, words: str, tmp_path: Path
) -> None:
    write_charts(tmp_path / "charts", rows)
    ((found, told),) = findings(tmp_path)
    assert found == kind
    assert words in told


def test_missing_files_damaged_ones_and_bad_sentences_are_found_together(tmp_path: Path) -> None:
    write_charts(tmp_path / "charts", sentences={**SENTENCES, "paragraph_9_1": " "})
    folder = write_pages(tmp_path / "plots")
    shard = folder / "corpus" / "train-00000-of-00001.parquet"
    shard.write_bytes(shard.read_bytes()[:-20])
    shard = folder / "qrels" / "train-00000-of-00001.parquet"
    shard.rename(shard.with_name("train-00000-of-00002.parquet"))
    told = findings(tmp_path)
    kinds = [kind for kind, _ in told]
    assert kinds == sorted(kinds, key=["row", "missing", "damaged", "odd"].index)
    joined = "\n".join(words for _, words in told)
    for words in (
        "plots train: ",
        "corpus/train-00000-of-00001.parquet: cannot be read",
        "qrels: 1 shards of 2; number 1 is missing",
        "(paragraph_9_1): 'text': found ' '",
    ):
        assert words in joined


def test_webqa_is_checked_beside_the_others_by_question_and_list(tmp_path: Path) -> None:
    write_pages(tmp_path / "plots")
    good = {"Q": "?", "A": ["a"], "split": "val", "img_posFacts": [], "img_negFacts": []}
    good |= {"txt_posFacts": [{"fact": "a", "snippet_id": "s"}], "txt_negFacts": []}
    picture = {"image_id": 30000003, "caption": "c"}
    rows = {
        "a1": good,
        "a2": {**good, "txt_negFacts": [{"fact": " "}]},
        "a3": {**good, "img_negFacts": [picture]},
        "a4": {**good, "txt_posFacts": []},
    }
    folder = tmp_path / "webqa"
    folder.mkdir()
    (folder / "WebQA_train_val.json").write_text(json.dumps(rows), encoding="utf-8")
    (folder / "imgs.tsv").write_bytes(b"30000000\t\n")
    (folder / "imgs.lineidx").write_text("0\n", encoding="utf-8")
    told = findings(tmp_path)
    assert [kind for kind, _ in told] == ["row", "missing", "odd"]
    assert "question 'a2', txt_negFacts number 1: 'fact': found ' '" in told[0][1]
    assert "image 30000003 would be in line 3" in told[1][1]
    assert told[2][1].endswith("question 'a4': no gold evidence")


def test_the_command_shows_counts_and_faults_and_writes_them(tmp_path: Path) -> None:
    write_pages(tmp_path / "plots", labels=[*LABELS, label("q1", "gone")])
    csv = tmp_path / "found.csv"
    result = CliRunner().invoke(app, ["check", str(tmp_path), "--csv", str(csv)])
    assert result.exit_code == 1
    assert "row: 1, missing: 0" in result.output
    assert "page 'gone' is not in the corpus" in csv.read_text(encoding="utf-8")


def test_a_folder_of_neither_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VragError, match=r"neither pages .* nor charts .* nor WebQA"):
        find_problems(tmp_path)
