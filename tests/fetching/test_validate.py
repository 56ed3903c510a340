"""`vrag check` of data names every bad row and image once, with its place, and its exit code
says whether that is a fault.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from chart_rows import RED, ROWS, SENTENCES, chart_row, write_charts
from crag_rows import MULTI, Row, picture, session, turn, write_rows
from page_rows import LABELS, PAGES, QUERIES, label, page, write_pages
from PIL import Image
from typer.testing import CliRunner

from vrag_kit.benchmarks.datasets.crag_mm import cached_image_name
from vrag_kit.errors import VragError
from vrag_kit.fetching.validate import find_data, find_problems
from vrag_kit.runner.cli import app

Write = Callable[..., Path]
GOOSE = "00001_Animalia_Chordata_Aves_Anseriformes_Anatidae_Branta_leucopsis"
V2 = {"y_rate": 0.25, "y_count": 1, "is_changed_v2": "unchanged"}
RGB = Image.new("RGB", (50, 40))


def findings(table: pd.DataFrame) -> list[tuple[str, str, str]]:
    """(kind, line, file) of every row; "" for the line of an image."""
    return [
        (row.kind, row.location.partition(".jsonl ")[2], row.image.rpartition("/")[2])
        for row in table.itertuples()
    ]


def problems(folder: Path) -> list[tuple[str, str]]:
    """(kind, location and message) of each problem in a folder."""
    table = find_problems(folder)
    return [(row["kind"], f"{row['location']}: {row['message']}") for _, row in table.iterrows()]


def check(*arguments: object) -> tuple[int, str]:
    """(exit code, output) of `vrag check`."""
    done = CliRunner().invoke(app, ["check", *map(str, arguments)])
    if isinstance(done.exception, VragError):
        return 2, str(done.exception)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def test_a_benchmark_without_faults_gives_an_empty_table(
    write_annotations: Write, tree: Path
) -> None:
    path = write_annotations({}, {"question": "Another?", **V2})
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())  # a byte order mark is no fault
    table = find_problems(path, tree)
    assert list(table.columns) == ["kind", "location", "image", "message"]
    assert table.empty
    assert find_data(path.parent)[0] == path


def test_every_fault_is_found_at_once_and_each_image_named_once(
    write_annotations: Write, tree: Path
) -> None:
    damaged = tree / GOOSE / "b.jpg"
    damaged.write_bytes(damaged.read_bytes()[:200])
    (tree / GOOSE / "c.jpg").unlink()
    bad = [{"answer": []}, {"question": "One more?", "images": {"../d.jpg": 1}}]
    gone = {"question": "And?", "images": {"00002_Fungi/x.jpg": 0, f"{GOOSE}/a.jpg": 1}}
    twice = '{"question": "Q?", "answer": ["a"], "sn": "S s", "images": {"a/b": 1, "a/b": 0}}'
    rows = [{}, "{", {"question": "Another?"}, *bad, gone, twice, {}, {"question": "HOLD"}]
    assert findings(find_problems(write_annotations(*rows), tree)) == [
        ("row", "line 2", ""),
        ("row", "line 4", ""),
        ("row", "line 5", ""),
        ("row", "line 7", ""),
        ("missing", "line 1", "c.jpg"),
        ("missing", "line 6", "x.jpg"),
        ("damaged", "", "b.jpg"),
        ("odd", "line 8", ""),
        ("odd", "line 9", ""),
    ]


def fuzzed_avif() -> bytes:
    file = io.BytesIO()
    RGB.save(file, "AVIF")
    before, after = file.getvalue().split(b"mdat")
    return before + b"mdat" + b"\xff" * 20 + after[20:]


def unknown_dds() -> bytes:
    file = io.BytesIO()
    RGB.save(file, "DDS")
    data = file.getvalue()
    return data[:80] + struct.pack("<I", 4) + b"XXXX" + data[88:]  # an unknown pixel format


@pytest.mark.parametrize("content", [b"", b"<html><body>404", None, fuzzed_avif(), unknown_dds()])
def test_a_damaged_image_is_found_whatever_its_decoder_raises(
    write_annotations: Write, tree: Path, content: bytes | None
) -> None:
    (tree / GOOSE / "a.jpg").unlink()
    if content is None:
        (tree / GOOSE / "a.jpg").mkdir()
    else:
        (tree / GOOSE / "a.jpg").write_bytes(content)
    (tree / GOOSE / "b.jpg").unlink()
    table = find_problems(write_annotations({}), tree)
    assert findings(table) == [("missing", "line 1", "b.jpg"), ("damaged", "", "a.jpg")]


def test_an_empty_file_a_missing_image_folder_and_a_folder_of_nothing_are_refused(
    tmp_path: Path, tree: Path
) -> None:
    (tmp_path / "empty.jsonl").write_text("\n", encoding="utf-8")
    with pytest.raises(VragError, match="no queries"):
        find_problems(tmp_path / "empty.jsonl", tree)
    with pytest.raises(VragError, match="nowhere"):
        find_problems(tmp_path / "empty.jsonl", tmp_path / "nowhere")
    (tmp_path / "bare").mkdir()
    with pytest.raises(VragError, match=r"neither pages .* nor charts .* nor WebQA"):
        find_problems(tmp_path / "bare")


@pytest.mark.slow
def test_more_images_than_are_handed_out_at_once_keep_their_findings(
    write_annotations: Write, tree: Path
) -> None:
    names = [f"{number}.jpg" for number in range(2500)]
    small = tree / GOOSE / "small.jpg"
    Image.new("RGB", (40, 40)).save(small)
    for number, name in enumerate(names):
        if number % 500:
            os.link(small, tree / GOOSE / name)
        else:
            (tree / GOOSE / name).touch()
    images = {f"{GOOSE}/{name}": 1 for name in names}
    table = find_problems(write_annotations({"images": images}), tree)
    assert findings(table) == [("damaged", "", f"{number}.jpg") for number in range(0, 2500, 500)]


def test_the_command_ends_with_1_for_faults_alone_and_shows_what_is_odd_alike_once(
    write_annotations: Write, tree: Path, tmp_path: Path
) -> None:
    rows = [{"question": "HOLD", "sn": f"Branta {number}"} for number in range(238)]
    code, output = check(write_annotations(*rows), tree)
    assert (code, "row: 0, missing: 0, damaged: 0, odd: 238" in output) == (0, True)
    gone = {"images": {f"{GOOSE}/\x1b[2Jgone.jpg": 1}}
    code, output = check(write_annotations(*rows, gone), tree, "--csv", tmp_path / "found.csv")
    assert (code, output.count("'HOLD'")) == (1, 1)
    assert re.search(r"\n\S+ +\S+ line 239: ", output)
    assert "\x1b" not in output  # names cannot move the cursor
    assert len(pd.read_csv(tmp_path / "found.csv")) == 239


@pytest.fixture
def data(write_annotations: Write, tree: Path) -> Path:
    """A folder with annotations.jsonl (v2) and images/."""
    return write_annotations(V2).parent


@pytest.mark.parametrize("below", ["", "train", "images"])
def test_a_folder_is_checked_whole_wherever_its_images_lie(
    data: Path, tree: Path, below: str
) -> None:
    if below != "images":
        (data / below).mkdir(exist_ok=True)
        shutil.move(tree / GOOSE, data / below / GOOSE)
    (data / "another" / GOOSE).mkdir(parents=True)
    (data / "another" / GOOSE / "unlike.jpg").touch()
    assert find_data(data)[1] == data / below
    assert check(data)[0] == 0


def test_a_folder_in_which_annotations_or_images_are_not_clear_says_what_is_in_it(
    data: Path, tree: Path
) -> None:
    path = data / "annotations.jsonl"
    text = path.read_text(encoding="utf-8")
    path.write_text("{broken\n" + text, encoding="utf-8")  # does not hide the file
    code, output = check(data)
    assert (code, "row: 1" in output) == (1, True)
    code, output = check(tree)
    assert (code, f"{GOOSE}/" in output) == (2, True)
    (data / "b.jsonl").write_text(text, encoding="utf-8")
    code, output = check(data)
    assert (code, "annotations.jsonl, b.jsonl" in output) == (2, True)
    (data / "b.jsonl").unlink()
    shutil.rmtree(tree)
    code, output = check(data)
    assert (code, "no image folder" in output) == (2, True)


def test_a_lone_file_needs_its_images(data: Path) -> None:
    code, output = check(data / "annotations.jsonl")
    assert (code, "<image folder>" in output) == (2, True)


# pages, charts and WebQA


def test_good_pages_and_charts_have_no_findings_and_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_pages(tmp_path / "plots")
    write_charts(tmp_path / "charts")
    assert problems(tmp_path) == []
    printed = capsys.readouterr().out
    assert "2 questions, 3 pages, 2 labels" in printed
    assert "3 questions, 2 charts, 3 sentences" in printed


BARE_IMAGE, NO_IMAGE = ({"bytes": data, "path": None} for data in (b"", b"no picture"))
OPTIONS = [
    {"query-id": "q1", "query": "?", "answer": "E", "options": ["A) red", "B) blue"]},
    {"query-id": "q2", "query": "?", "answer": "A", "options": ["A) red", "B) Red"]},
]


@pytest.mark.parametrize(
    ("parts", "kinds", "words"),
    [
        ({"queries": [*QUERIES, QUERIES[0]]}, ["row"], "row 2 (query q1)"),
        ({"queries": [*QUERIES, {"query-id": "q3", "query": ""}]}, ["row"], "(query q3): 'query'"),
        ({"queries": [*QUERIES, {"query-id": "q3", "query": "?"}]}, ["odd"], "row 2 (query q3)"),
        ({"pages": [*PAGES, PAGES[0]]}, ["row"], "row 3 (page deck_a.jpg)"),
        ({"pages": [*PAGES, page("d", 1, image=BARE_IMAGE)]}, ["missing"], "(page d): 'image'"),
        ({"pages": [*PAGES, page("d", 1, image=NO_IMAGE)]}, ["damaged"], "document d"),
        ({"labels": [*LABELS, label("q1", "gone")]}, ["row"], "'gone'"),
        ({"labels": [*LABELS, label("q1", "deck_a.jpg", -1)]}, ["row"], "'score': found -1"),
        ({"labels": [*LABELS, label("q9", "deck_a.jpg")]}, ["odd"], "labels of 1 questions"),
        ({"queries": OPTIONS, "labels": LABELS[1:]}, ["row", "odd"], "'E' is none of the options"),
    ],
)
def test_each_fault_of_pages_is_found_alone_and_named_with_its_place(
    parts: dict[str, Any], kinds: list[str], words: str, tmp_path: Path
) -> None:
    write_pages(tmp_path / "plots", **parts)
    found = problems(tmp_path)
    assert [kind for kind, _ in found] == kinds
    assert words in found[0][1]


TEXT, CHART = "Single-Point_Text-only_9", "Single-Point_Chart-only_9"


@pytest.mark.parametrize(
    ("row", "kind", "words"),
    [
        (ROWS[1], "row", "came before, in data-00000-of-00001.arrow row 1"),
        (chart_row("r9", {"paragraph_9_1": " "}), "row", "paragraph_9_1 0: found"),
        (chart_row(TEXT, {"paragraph_9_1": "x"}), "missing", "paragraph_9_1"),
        (chart_row(CHART, {"chart_9_1": "x"}, b"no picture"), "damaged", ""),
        (chart_row(TEXT, {}), "odd", "no gold evidence"),
        (chart_row(TEXT, {"chart_00001_02": "x"}, RED), "odd", "says text, the evidence image"),
    ],
)
def test_each_fault_of_charts_is_found_alone_and_named_with_its_place(
    row: dict[str, Any], kind: str, words: str, tmp_path: Path
) -> None:
    write_charts(tmp_path / "charts", [*ROWS, row])
    ((found, message),) = problems(tmp_path)
    assert found == kind
    assert words in message


def test_faults_of_several_data_sets_are_found_together(tmp_path: Path) -> None:
    write_charts(tmp_path / "charts", sentences={**SENTENCES, "paragraph_9_1": " "})
    folder = write_pages(tmp_path / "plots", labels=[*LABELS, label("q1", "gone")])
    shard = folder / "corpus" / "train-00000-of-00001.parquet"
    shard.write_bytes(shard.read_bytes()[:-20])
    shard = folder / "qrels" / "train-00000-of-00001.parquet"
    shard.rename(shard.with_name("train-00000-of-00002.parquet"))
    code, output = check(tmp_path, "--csv", tmp_path / "found.csv")
    assert (code, (tmp_path / "found.csv").is_file()) == (1, True)
    found = problems(tmp_path)
    kinds = [kind for kind, _ in found]
    assert kinds == sorted(kinds, key=["row", "missing", "damaged", "odd"].index)
    for words in ("corpus/train-00000-of-00001.parquet", "number 1 is missing", "(paragraph_9_1)"):
        assert any(words in message for _, message in found), words
        assert words in output


def test_webqa_is_checked_by_question_and_list(tmp_path: Path) -> None:
    good = {"Q": "?", "A": ["a"], "split": "val", "img_posFacts": [], "img_negFacts": []}
    good |= {"txt_posFacts": [{"fact": "a", "snippet_id": "s"}], "txt_negFacts": []}
    rows = {
        "a1": good,
        "a2": {**good, "txt_negFacts": [{"fact": " "}]},
        "a3": {**good, "img_negFacts": [{"image_id": 30000003, "caption": "c"}]},
        "a4": {**good, "txt_posFacts": []},
    }
    (tmp_path / "WebQA_train_val.json").write_text(json.dumps(rows), encoding="utf-8")
    (tmp_path / "imgs.tsv").write_bytes(b"30000000\t\n")
    (tmp_path / "imgs.lineidx").write_text("0\n", encoding="utf-8")
    found = problems(tmp_path)
    assert [kind for kind, _ in found] == ["row", "missing", "odd"]
    for (_, message), words in zip(found, ("'a2', txt_negFacts", "30000003", "'a4'"), strict=True):
        assert words in message


# CRAG-MM


HERE, BROKEN, GONE = (f"https://x.org/{name}.jpg" for name in ("here", "broken", "gone"))


@pytest.fixture(scope="module")
def crag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which something of every sort is wrong."""
    folder = tmp_path_factory.mktemp("crag")
    urls = {"here": HERE, "gone": GONE, "broken": BROKEN}
    torn = {"bytes": b"\x89PNG", "path": None}
    singles = [session("good"), *(session(name, url=url) for name, url in urls.items())]
    singles += [session("bare", image=None), session("torn", image=torn)]
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


def test_bad_rows_and_images_of_crag_mm_are_named_with_shard_row_and_turn(
    crag: Path, tmp_path: Path
) -> None:
    table = find_problems(crag)
    talks = "multi-turn: public_test-00000-of-00001.parquet row"
    first, second = (f"single-turn: validation-0000{n}-of-00002.parquet row" for n in "01")
    assert set(zip(table["kind"], table["location"], strict=True)) == {
        ("row", f"{talks} 0"),
        ("row", f"{talks} 2 (session swapped)"),
        ("row", f"{talks} 4"),
        ("row", f"single-turn: {crag}/single-turn/marks.jsonl line 3"),
        ("missing", f"{first} 1 (session gone)"),
        ("missing", f"{first} 2 (session bare)"),
        ("damaged", f"{second} 1 (session broken) turn 0"),
        ("damaged", f"{second} 2 (session torn)"),
    }
    code, output = check(crag, "--csv", tmp_path / "found.csv")
    assert (code, "row: 4, missing: 2, damaged: 2, odd: 0" in output) == (1, True)
    assert len(pd.read_csv(tmp_path / "found.csv")) == 8


def test_both_indexes_of_crag_mm_are_read_line_by_line(tmp_path: Path) -> None:
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
    table = find_problems(tmp_path)
    assert "image-index-public-test: document kg-1" in set(table["location"])
    by_line = table[table["location"].str.contains(" line ")]
    places = by_line["location"].str.rpartition("/")[2]
    assert set(zip(by_line["kind"], places, strict=True)) == {
        ("odd", "entries.jsonl line 3"),
        ("odd", "pages.jsonl line 2"),
        ("row", "entries.jsonl line 2"),
        ("row", "entries.jsonl line 4"),
        ("row", "pages.jsonl line 3"),
        ("row", "pages.jsonl line 4"),
    }


def test_a_shard_cut_short_and_a_missing_one_do_not_end_the_check(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows", [session(name) for name in "abcd"], shards=4)
    (first, second) = sorted((rows / "data").iterdir())[:2]
    first.unlink()
    second.write_bytes(second.read_bytes()[:-50])
    (cut, missing) = problems(rows)
    assert (cut[0], missing[0]) == ("row", "missing")
    assert "validation-00001-of-00004.parquet" in cut[1]
    assert "number 0 is missing" in missing[1]
    with pytest.raises(VragError, match="no annotation file"):
        find_problems(tmp_path)
