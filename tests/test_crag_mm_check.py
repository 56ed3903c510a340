"""`vrag check` names everything that is wrong with CRAG-MM's files, each with its place,
and goes on behind it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from crag_rows import MULTI, Row, picture, session, turn, write_rows
from typer.testing import CliRunner

from vrag_kit.benchmarks.crag_mm_images import cached_image_name
from vrag_kit.errors import VragError
from vrag_kit.fetching import crag_mm_health
from vrag_kit.fetching.crag_mm_health import PUBLISHED, QUESTIONS, check_crag_mm
from vrag_kit.runner.cli import app

HERE = "https://x.org/here.jpg"
BROKEN = "https://x.org/broken.jpg"
GONE = "https://x.org/gone.jpg"


def told(findings: pd.DataFrame, kind: str) -> dict[str, str]:
    """Place → what was found there, of one kind."""
    rows = findings[findings["kind"] == kind]
    return dict(zip(rows["where"], rows["found"], strict=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which something of every sort is wrong."""
    folder = tmp_path_factory.mktemp("crag")
    singles = [
        session("good"),
        session("here", url=HERE),
        session("gone", url=GONE),
        session("broken", url=BROKEN),
        session("bare", image=None),
        session("torn", image={"bytes": b"\x89PNG", "path": None}),
    ]
    write_rows(folder / "single-turn", singles, shards=2)
    lacking: Row = session("lacking", turn("p"), turn("q"))
    lacking = {**lacking, "answers": lacking["answers"][:1]}
    swapped: Row = session("swapped", turn("m"), turn("n"))
    swapped = {**swapped, "answers": swapped["answers"][::-1]}
    long = session("long", *(turn(f"l{number}") for number in range(7)))
    strange = session("strange", turn("s", query_category="guess"))
    names = {**MULTI, "query_category": [*MULTI["query_category"], "guess"]}
    talks = [lacking, swapped, swapped, long, strange]
    write_rows(folder / "multi-turn", talks, names=names, split="public_test")
    (folder / "images" / "url").mkdir(parents=True)
    (folder / "images" / cached_image_name(HERE)).write_bytes(picture("red"))
    (folder / "images" / cached_image_name(BROKEN)).write_bytes(b"<html>")
    marks = [{"interaction_id": "good", "entity": "x"}, {"interaction_id": "nobody"}, {"x": 1}]
    text = "\n".join(json.dumps(each) for each in marks)
    (folder / "single-turn" / "marks.jsonl").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def findings(folder: Path) -> pd.DataFrame:
    return check_crag_mm(folder).findings


def test_bad_rows_are_named_with_data_shard_row_and_turn(findings: pd.DataFrame) -> None:
    shard = "multi-turn/public_test-00000-of-00001.parquet row"
    rows = told(findings, "row")
    assert "no answer has its id, q" in rows[f"{shard} 0 (session lacking) turn 1"]
    assert "session swapped came before, in" in rows[f"{shard} 2 (session swapped)"]
    assert "'guess', an unknown label" in rows[f"{shard} 4 (session strange) turn 0"]
    assert "'x' is no mark" in rows["marks.jsonl line 3"]
    assert len(rows) == 4


def test_pictures_that_were_not_fetched_that_rows_lack_and_damaged_ones_are_named(
    findings: pd.DataFrame,
) -> None:
    first, second = (f"single-turn/validation-0000{number}-of-00002.parquet" for number in "01")
    assert set(told(findings, "missing")) == {
        f"{first} row 1 (session gone)",
        f"{first} row 2 (session bare)",
    }
    missing = told(findings, "missing")
    assert f"the picture at {GONE} was not fetched" in missing[f"{first} row 1 (session gone)"]
    assert set(told(findings, "damaged")) == {
        f"{second} row 1 (session broken)",
        f"{second} row 2 (session torn)",
    }


def test_what_is_odd_is_told_apart(findings: pd.DataFrame) -> None:
    odd = told(findings, "odd")
    assert odd == {
        "multi-turn/public_test-00000-of-00001.parquet row 1 (session swapped)": (
            "the answers stand in another order than the turns"
        ),
        "multi-turn public_test": "1 conversations of 7 turns; published ones have 2 to 6",
        "marks.jsonl": "1 of 2 marks are of no question, as of nobody",
    }


def test_counts_of_labels_are_told_and_held_against_those_of_the_published_data(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = check_crag_mm(folder).counts
    categories = counts[counts["column"] == "query_category"].set_index("data")["questions"]
    assert categories.to_dict() == {"single-turn": 6, "multi-turn": 9}
    assert set(counts["published"].dropna()) == set()
    # all questions have exactly one label of each column
    totals = [sum(labels.values()) for labels in PUBLISHED.values()]
    assert totals == [QUESTIONS] * 4
    monkeypatch.setattr(crag_mm_health, "QUESTIONS", 2)
    monkeypatch.setattr(crag_mm_health, "PUBLISHED", {"dynamism": {"static": 1, "real-time": 1}})
    rows = [session("a"), session("b", turn("b", dynamism="real-time"))]
    whole = check_crag_mm(write_rows(tmp_path / "rows", rows))
    assert whole.findings.empty
    assert dict(whole.counts[["label", "published"]].dropna().values) == {
        "static": 1,
        "real-time": 1,
    }
    rows[1] = session("b")
    found = check_crag_mm(write_rows(tmp_path / "other", rows)).findings
    assert told(found, "odd") == {"other validation": "2 questions, published are 1"}


def test_both_indexes_are_read_line_by_line(tmp_path: Path) -> None:
    write_rows(tmp_path / "single-turn", [session("a")])
    entities = [{"entity_name": "Talia"}]
    entries = [
        {"index": 0, "image": None, "entities": entities},
        {"index": 0, "image": None, "entities": entities},
        {"index": 1, "image": "images/gone.jpg", "entities": []},
        {"index": 2, "image": "../x.jpg", "entities": entities},
    ]
    pages = [
        {"page_url": "https://x.org/1", "page_snippet": "A moth."},
        {"page_url": "https://x.org/2", "page_name": "Empty", "page_snippet": " "},
        {"page_url": None},
        "no object",
    ]
    for name, file, rows in (
        ("image-index-public-test", "entries.jsonl", entries),
        ("web-index-validation", "pages.jsonl", pages),
    ):
        (tmp_path / name).mkdir()
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        (tmp_path / name / file).write_text("\n".join(lines), encoding="utf-8")
    found = check_crag_mm(tmp_path).findings
    entries_file = "image-index-public-test/entries.jsonl line"
    pages_file = "web-index-validation/pages.jsonl line"
    rows_told = told(found, "row")
    assert rows_told[f"{entries_file} 2"] == f"kg-0 came before, in {entries_file} 1"
    assert "points outside" in rows_told[f"{entries_file} 4"]
    assert "'page_url' is None" in rows_told[f"{pages_file} 3"]
    assert "not JSON" in rows_told[f"{pages_file} 4"]
    assert set(told(found, "missing")) == {f"{entries_file} 3"}
    odd = told(found, "odd")
    assert odd[f"{pages_file} 2"] == "a page that says nothing: no snippet and no text"
    assert odd[f"{entries_file} 3"] == "an entry without an entity"
    assert "the index of public_test, but the questions are" in odd["image-index-public-test"]


def test_a_shard_cut_short_and_a_missing_one_do_not_end_the_check(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows", [session(name) for name in "abcd"], shards=4)
    (first, second) = sorted((rows / "data").iterdir())[:2]
    first.unlink()
    second.write_bytes(second.read_bytes()[:-50])
    check = check_crag_mm(rows)
    assert (
        "3 shards of 4; number 0 is missing" in told(check.findings, "missing")["rows validation"]
    )
    cut = told(check.findings, "row")["rows/validation-00001-of-00004.parquet"]
    assert "cut short or damaged" in cut
    questions = check.counts.query("column == 'domain'")["questions"]
    assert questions.sum() == 2
    with pytest.raises(VragError, match="no rows of CRAG-MM"):
        check_crag_mm(tmp_path)


def test_the_command_prints_counts_and_findings_and_ends_with_1_for_faults(
    folder: Path, tmp_path: Path
) -> None:
    csv = tmp_path / "found.csv"
    result = CliRunner().invoke(app, ["check", str(folder), "--csv", str(csv)])
    assert result.exit_code == 1, result.output
    assert "bad rows: 4, missing: 2, damaged: 2, odd: 3" in result.output
    assert "simple-knowledge" in result.output
    assert len(pd.read_csv(csv)) == 11
    assert set(pd.read_csv(tmp_path / "found_counts.csv")["data"]) == {"single-turn", "multi-turn"}
    good = write_rows(tmp_path / "rows", [session("a")])
    assert CliRunner().invoke(app, ["check", str(good)]).exit_code == 0
