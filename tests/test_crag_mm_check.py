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

from vrag_kit.benchmarks.datasets.crag_mm import cached_image_name
from vrag_kit.errors import VragError
from vrag_kit.fetching.validate import find_problems
from vrag_kit.runner.cli import app

HERE = "https://x.org/here.jpg"
BROKEN = "https://x.org/broken.jpg"
GONE = "https://x.org/gone.jpg"


def told(findings: pd.DataFrame, kind: str) -> dict[str, str]:
    """Place → what was found there, of one kind."""
    rows = findings[findings["kind"] == kind]
    return dict(zip(rows["location"], rows["message"], strict=True))


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
    return find_problems(folder)


def test_bad_rows_are_named_with_shard_row_and_turn(findings: pd.DataFrame, folder: Path) -> None:
    shard = "multi-turn: public_test-00000-of-00001.parquet row"
    rows = told(findings, "row")
    assert "no answer of q" in rows[f"{shard} 0"]
    assert "session swapped came before, in" in rows[f"{shard} 2 (session swapped)"]
    assert "'guess', an unknown label" in rows[f"{shard} 4"]
    assert (
        "'interaction_id': found None"
        in rows[f"single-turn: {folder}/single-turn/marks.jsonl line 3"]
    )


def test_images_that_were_not_fetched_that_rows_lack_and_damaged_ones_are_named(
    findings: pd.DataFrame,
) -> None:
    first, second = (f"single-turn: validation-0000{number}-of-00002.parquet" for number in "01")
    missing = told(findings, "missing")
    assert set(missing) == {f"{first} row 1 (session gone)", f"{first} row 2 (session bare)"}
    assert f"the image at {GONE} was not fetched" in missing[f"{first} row 1 (session gone)"]
    assert set(told(findings, "damaged")) == {
        f"{second} row 1 (session broken) turn 0",
        f"{second} row 2 (session torn)",
    }


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
    found = find_problems(tmp_path)
    first = f"{tmp_path}/image-index-public-test/entries.jsonl line 1"
    entries_file = f"image-index-public-test: {tmp_path}/image-index-public-test/entries.jsonl line"
    pages_file = f"web-index-validation: {tmp_path}/web-index-validation/pages.jsonl line"
    rows_told = told(found, "row")
    assert f"'kg-0' came before, in {first}" in rows_told[f"{entries_file} 2"]
    assert "points outside" in rows_told[f"{entries_file} 4"]
    assert "'page_url': found None" in rows_told[f"{pages_file} 3"]
    assert "not JSON" in rows_told[f"{pages_file} 4"]
    assert set(told(found, "missing")) == {"image-index-public-test: document kg-1"}
    odd = told(found, "odd")
    assert odd[f"{pages_file} 2"] == "a page without a snippet and a text"
    assert odd[f"{entries_file} 3"] == "an entry without an entity"


def test_a_shard_cut_short_and_a_missing_one_do_not_end_the_check(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows", [session(name) for name in "abcd"], shards=4)
    (first, second) = sorted((rows / "data").iterdir())[:2]
    first.unlink()
    second.write_bytes(second.read_bytes()[:-50])
    found = find_problems(rows)
    assert "3 shards of 4; number 0 is missing" in told(found, "missing")[f"rows: {rows}/data"]
    cut = told(found, "row")[f"rows: {rows}/data/validation-00001-of-00004.parquet"]
    assert "cut short or damaged" in cut
    with pytest.raises(VragError, match="no annotation file"):
        find_problems(tmp_path)


def test_the_command_prints_counts_and_findings_and_ends_with_1_for_faults(
    folder: Path, tmp_path: Path
) -> None:
    csv = tmp_path / "found.csv"
    result = CliRunner().invoke(app, ["check", str(folder), "--csv", str(csv)])
    assert result.exit_code == 1, result.output
    assert "row: 4, missing: 2, damaged: 2, odd: 0" in result.output
    assert "multi-turn-public-test: 9 queries" in result.output
    assert len(pd.read_csv(csv)) == 8
    good = write_rows(tmp_path / "rows", [session("a")])
    assert CliRunner().invoke(app, ["check", str(good)]).exit_code == 0
