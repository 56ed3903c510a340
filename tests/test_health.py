"""`vrag check` of a benchmark names every bad row and every image that is missing,
damaged or odd, once, and says by its exit code whether that is a fault.
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

import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner

from vrag_kit.errors import VragError
from vrag_kit.fetching.validate import find_data, find_problems
from vrag_kit.runner.cli import app

Write = Callable[..., Path]
GOOSE = "00001_Animalia_Chordata_Aves_Anseriformes_Anatidae_Branta_leucopsis"
V2 = {"y_rate": 0.25, "y_count": 1, "is_changed_v2": "unchanged"}


def findings(table: pd.DataFrame) -> list[tuple[str, str, str]]:
    """(kind, line, file) of every row; "" for the line of an image."""
    return [
        (row.kind, row.location.partition(".jsonl ")[2], row.image.rpartition("/")[2])
        for row in table.itertuples()
    ]


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
    table = find_problems(write_annotations({}, {"question": "Another?", **V2}), tree)
    assert list(table.columns) == ["kind", "location", "image", "message"]
    assert table.empty


def test_every_fault_is_found_at_once_and_each_image_named_once(
    write_annotations: Write, tree: Path
) -> None:
    damaged = tree / GOOSE / "b.jpg"
    damaged.write_bytes(damaged.read_bytes()[:200])
    (tree / GOOSE / "c.jpg").unlink()
    table = find_problems(
        write_annotations(
            {},
            "{",
            {"question": "Another?"},
            {"answer": []},
            {"question": "One more?", "images": {"../d.jpg": 1}},
        ),
        tree,
    )
    assert findings(table) == [
        ("row", "line 2", ""),
        ("row", "line 4", ""),
        ("row", "line 5", ""),
        ("missing", "line 1", "c.jpg"),
        ("damaged", "", "b.jpg"),
    ]
    assert table["message"][0].startswith("not JSON")
    assert "'answer': found []" in table["message"][1]
    assert "points outside" in table["message"][2]


def test_the_images_of_a_species_folder_that_is_not_there_are_missing(
    write_annotations: Write, tree: Path
) -> None:
    images = {f"{GOOSE}/a.jpg": 1, "00002_Fungi/x.jpg": 0, "00002_Fungi/y.jpg": 0}
    table = find_problems(write_annotations({"images": images}), tree)
    assert list(table["image"]) == ["00002_Fungi/x.jpg", "00002_Fungi/y.jpg"]
    assert "00002_Fungi (0 files there)" in table["message"][0]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "; 0 bytes"),
        (b"<html><body>404", "of no known format; 15 bytes"),
        (None, "cannot be read (Is a directory)"),
    ],
)
def test_a_damaged_file_is_told_by_what_is_in_it(
    write_annotations: Write, tree: Path, content: bytes | None, found: str
) -> None:
    (tree / GOOSE / "a.jpg").unlink()
    if content is None:
        (tree / GOOSE / "a.jpg").mkdir()
    else:
        (tree / GOOSE / "a.jpg").write_bytes(content)
    table = find_problems(write_annotations({}), tree)
    assert findings(table) == [("damaged", "", "a.jpg")]
    assert found in table["message"][0]


def fuzzed_avif() -> bytes:
    file = io.BytesIO()
    RGB.save(file, "AVIF")
    before, after = file.getvalue().split(b"mdat")
    return before + b"mdat" + b"\xff" * 20 + after[20:]


def unknown_dds() -> bytes:
    file = io.BytesIO()
    RGB.save(file, "DDS")
    return (
        file.getvalue()[:80] + struct.pack("<I", 4) + b"XXXX" + file.getvalue()[88:]
    )  # a pixel format that nobody knows


@pytest.mark.parametrize(
    ("make", "found"),
    [(fuzzed_avif, "Failed to decode frame 0"), (unknown_dds, "Unimplemented pixel format")],
)
def test_whatever_a_decoder_raises_the_other_findings_stay(
    write_annotations: Write, tree: Path, make: Callable[[], bytes], found: str
) -> None:
    (tree / GOOSE / "a.jpg").write_bytes(make())
    (tree / GOOSE / "b.jpg").unlink()
    table = find_problems(write_annotations({}), tree)
    assert findings(table) == [("missing", "line 1", "b.jpg"), ("damaged", "", "a.jpg")]
    assert found in table["message"][1]


RGB = Image.new("RGB", (50, 40))


def test_a_repeated_question_is_odd(write_annotations: Write, tree: Path) -> None:
    table = find_problems(write_annotations(V2, {**V2, "question": "Another?"}, V2), tree)
    assert findings(table) == [("odd", "line 3", "")]
    assert "species and question of an earlier row" in table["message"][0]


@pytest.mark.parametrize(
    ("claim", "found"),
    [
        ({"y_rate": float("nan")}, "'y_rate': found nan"),
        ({"y_count": True}, "'y_count': found True"),
    ],
)
def test_a_claim_of_v2_of_another_type_makes_a_bad_row(
    write_annotations: Write, tree: Path, claim: dict, found: str
) -> None:
    table = find_problems(write_annotations({**V2, **claim}), tree)
    assert findings(table) == [("row", "line 1", "")]
    assert found in table["message"][0]


def test_an_image_with_two_labels_in_one_row_makes_it_a_bad_one(
    write_annotations: Write, tree: Path
) -> None:
    path = write_annotations({})
    path.write_text(
        path.read_text(encoding="utf-8").replace(
            f'"{GOOSE}/a.jpg": 1', f'"{GOOSE}/a.jpg": 1, "{GOOSE}/a.jpg": 0'
        ),
        encoding="utf-8",
    )
    table = find_problems(path, tree)
    assert findings(table) == [("row", "line 1", "")]
    assert table["message"][0].startswith(f"'{GOOSE}/a.jpg' stands twice in one object")


def test_a_byte_order_mark_is_no_fault(write_annotations: Write, tree: Path) -> None:
    path = write_annotations({}, {"question": "Another?"})
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert find_problems(path, tree).empty
    assert find_data(path.parent)[0] == path


def test_rows_that_wait_for_a_question_are_odd(write_annotations: Write, tree: Path) -> None:
    assert findings(
        find_problems(write_annotations({}, {"question": "HOLD"}, {"question": "Hold what?"}), tree)
    ) == [("odd", "line 2", "")]


def test_an_empty_file_and_a_missing_image_folder_are_refused(tmp_path: Path, tree: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n", encoding="utf-8")
    with pytest.raises(VragError, match="no queries found"):
        find_problems(tmp_path / "empty.jsonl", tree)
    with pytest.raises(VragError, match="no such image folder"):
        find_problems(tmp_path / "empty.jsonl", tmp_path / "nowhere")


@pytest.mark.slow
def test_more_images_than_are_handed_out_at_once_keep_their_findings(
    write_annotations: Write, tree: Path
) -> None:
    names = [f"{number}.jpg" for number in range(2500)]
    small = tree / GOOSE / "small.jpg"
    Image.new("RGB", (40, 40)).save(small)
    for number, name in enumerate(names):
        (
            os.link(small, tree / GOOSE / name)
            if number % 500
            else (tree / GOOSE / name).write_bytes(b"")
        )
    table = find_problems(
        write_annotations({"images": {f"{GOOSE}/{name}": 1 for name in names}}), tree
    )
    assert findings(table) == [("damaged", "", f"{number}.jpg") for number in range(0, 2500, 500)]


# the command


def test_the_exit_code_is_1_for_faults_and_0_for_oddities(
    write_annotations: Write, tree: Path
) -> None:
    code, output = check(write_annotations({}, {"question": "HOLD"}), tree)
    assert (code, "row: 0, missing: 0, damaged: 0, odd: 1" in output) == (0, True)
    (tree / GOOSE / "a.jpg").unlink()
    code, output = check(write_annotations({}), tree)
    assert (code, "row: 0, missing: 1, damaged: 0, odd: 0" in output) == (1, True)


def test_what_is_odd_alike_is_one_row_and_hides_no_fault(
    write_annotations: Write, tree: Path, tmp_path: Path
) -> None:
    rows = [{"question": "HOLD", "sn": f"Branta {number}"} for number in range(238)]
    gone = {"images": {f"{GOOSE}/gone.jpg": 1}}
    annotations, csv = write_annotations(*rows, gone), tmp_path / "findings.csv"
    _, output = check(annotations, tree, "--csv", csv)
    assert output.count("'HOLD'") == 1
    assert re.search(r"annotations.jsonl line 1: .*'HOLD'.*; 238 such findings\n", output)
    assert re.search(r"\nmissing +\S+ line 239: \S+/gone.jpg: ", output)
    assert len(pd.read_csv(csv)) == 239


def test_names_cannot_move_the_cursor(write_annotations: Write, tree: Path) -> None:
    _, output = check(write_annotations({"images": {f"{GOOSE}/\x1b[2Jx.jpg": 1}}), tree)
    assert "\x1b" not in output
    assert "[2Jx.jpg" in output


# one folder


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
    assert find_data(data)[1] == data / below
    assert check(data)[0] == 0


def test_of_two_image_folders_the_one_with_the_images_is_taken(data: Path) -> None:
    other = data / "another" / GOOSE
    other.mkdir(parents=True)
    (other / "unlike.jpg").write_bytes(b"")
    assert find_data(data)[1] == data / "images"


def test_a_first_row_that_is_broken_does_not_hide_the_file(data: Path) -> None:
    path = data / "annotations.jsonl"
    path.write_text("{broken\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    code, output = check(data)
    assert (code, "row: 1" in output) == (1, True)


def test_a_folder_without_annotations_with_two_or_without_images_says_what_is_there(
    data: Path, tree: Path
) -> None:
    code, output = check(tree)
    assert (code, "no annotation file" in output, f"{GOOSE}/" in output) == (2, True, True)
    row = json.loads((data / "annotations.jsonl").read_text(encoding="utf-8"))
    (data / "b.jsonl").write_text(json.dumps(row), encoding="utf-8")
    (data / "log.jsonl").write_text('{"anything": 1}\n', encoding="utf-8")
    code, output = check(data)
    assert (code, "2 annotation files: annotations.jsonl, b.jsonl;" in output) == (2, True)
    (data / "b.jsonl").unlink()
    shutil.rmtree(tree)
    code, output = check(data)
    assert (
        code,
        "no image folder" in output,
        GOOSE in output,
        "annotations.jsonl, log.jsonl" in output,
    ) == (2, True, True, True)


def test_a_parameter_file_takes_no_options_of_a_benchmark_and_a_lone_file_needs_its_images(
    data: Path,
) -> None:
    code, output = check("params/visual_rag/demo.yaml", "--csv", "x.csv")
    assert (code, "parameter file" in output) == (2, True)
    code, output = check(data / "annotations.jsonl")
    assert (code, "<image folder>" in output) == (2, True)
