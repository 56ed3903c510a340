"""MRAG-Bench is read in the order of its ids whatever its shards are called, its pictures
are found in the corpus, and nothing wrong with it passes in silence.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from typer.testing import CliRunner

from vrag_kit.benchmarks import load_mrag_bench
from vrag_kit.errors import VragError
from vrag_kit.fetching.validate import find_problems
from vrag_kit.runner.cli import app

Row = dict[str, Any]
PICTURE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def picture(*shades: int, kind: str = "PNG") -> bytes:
    """A small picture of these shades."""
    pixels = np.zeros((8, 12, 3), np.uint8)
    pixels[:] = np.resize(shades, 3)
    pixels[0, 0] = np.resize(shades[::-1], 3)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def row(number: int, *gt: int, **other: Any) -> Row:
    """A row that asks about picture `number`; `gt` are the numbers of its examples."""
    told = {
        "id": str(number),
        "aspect": "Perspective",
        "scenario": "Angle",
        "image": picture(number, 7),
        "gt_images": [picture(each, 99) for each in gt or range(number * 10, number * 10 + 5)],
        "question": "What is it?",
        "A": "wood_rabbit",
        "B": "hare",
        "C": "pika",
        "D": "vole",
        "answer_choice": "B",
        "answer": "hare",
        "image_type": "Animal",
        "source": "drawn",
        "retrieved_images": [picture(each, 55) for each in range(5)],
    }
    return {**told, **other}


def write(folder: Path, shards: list[list[Row]], told: int | None = None) -> Path:
    """Shards with the names of the real ones."""
    folder.mkdir(exist_ok=True)
    for number, rows in enumerate(shards):
        columns: dict[str, list[Any]] = {}
        for name in rows[0]:
            columns[name] = [_encoded(each[name]) for each in rows]
        lists = ("gt_images", "retrieved_images")
        types = {"image": PICTURE, **dict.fromkeys(lists, pa.list_(PICTURE))}
        texts = {name: pa.array(values).type for name, values in columns.items()}
        schema = pa.schema([(name, types.get(name, texts[name])) for name in columns])
        path = folder / f"test-0000{number}-of-0000{told or len(shards)}.parquet"
        pq.write_table(pa.table(columns, schema=schema), path)
    return folder


def _encoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_encoded(each) for each in value]
    return {"bytes": value, "path": None} if isinstance(value, bytes) else value


def corpus_of(folder: Path, rows: list[Row]) -> Path:
    """A corpus of all pictures of these rows."""
    folder.mkdir()
    for each in rows:
        (folder / f"{each['id']} input%2B+é.png").write_bytes(each["image"])
        for column in ("gt_images", "retrieved_images"):
            for place, data in enumerate(each[column]):
                name = f"retrieved {place}.png" if column == "retrieved_images" else ""
                (folder / (name or f"{each['id']}_gt_{place}.png")).write_bytes(data)
    return folder


def test_rows_come_in_the_order_of_their_ids_though_shards_sort_otherwise(tmp_path: Path) -> None:
    shards = [[row(2 * number), row(2 * number + 1)] for number in range(12)]
    folder = write(tmp_path / "rows", shards)
    names = sorted(path.name for path in folder.iterdir())
    assert names.index("test-000010-of-000012.parquet") == 2  # before 00002: the trap
    benchmark = load_mrag_bench(folder, cache_dir=tmp_path / "store")
    assert list(benchmark.queries) == [str(number) for number in range(24)]
    query = benchmark.queries["17"]
    assert query.choices == ("wood_rabbit", "hare", "pika", "vole")
    assert (query.answers, query.metadata["letter"]) == (("hare",), "B")
    assert query.image is not None
    assert query.image.open().getpixel((5, 5)) == (17, 7, 17)


def test_questions_that_share_pictures_directly_or_through_others_are_one_group(
    tmp_path: Path,
) -> None:
    # 0 and 3 share picture 5, 3 and 4 picture 8; 1 and 2 share none with anyone
    rows = [row(0, 1, 2, 3, 4, 5), row(1), row(2), row(3, 5, 6, 7, 8, 9), row(4, 8, 91, 92, 93, 94)]
    benchmark = load_mrag_bench(write(tmp_path / "rows", [rows]), cache_dir=tmp_path / "store")
    assert benchmark.groups == {"0": "0", "1": "1", "2": "2", "3": "0", "4": "0"}


def test_pictures_are_found_in_the_corpus_by_bytes_or_by_pixels_and_else_kept_apart(
    tmp_path: Path,
) -> None:
    rows = [row(0), row(1), row(2)]
    corpus = corpus_of(tmp_path / "corpus", rows)
    # the same pixels in a file of other bytes, with a palette of which one colour is clear
    few = Image.open(io.BytesIO(rows[1]["image"])).quantize(4, dither=Image.Dither.NONE)
    few.save(corpus / "1 input%2B+é.png", transparency=0)
    (corpus / "2 input%2B+é.png").unlink()
    benchmark = load_mrag_bench(
        write(tmp_path / "rows", [rows]), corpus, cache_dir=tmp_path / "store"
    )
    assert benchmark.left_out["0"] == {"0%20input%252B%2B%C3%A9.png"}
    assert benchmark.left_out["1"] == {"1%20input%252B%2B%C3%A9.png"}
    assert "2" not in benchmark.left_out  # a crop, say: in no file
    assert benchmark.relevant("1") == tuple(f"1_gt_{place}.png" for place in range(5))
    assert benchmark.queries["1"].metadata["retrieved"][:2] == [
        "retrieved%200.png",
        "retrieved%201.png",
    ]
    for doc_id in benchmark.corpus:
        assert not set(doc_id) & set(" +é")
        assert (corpus / unquote(doc_id)).is_file()
    image = benchmark.queries["2"].image
    assert image is not None
    assert image.open().getpixel((5, 5)) == (2, 7, 2)


def test_without_a_corpus_the_documents_are_the_pictures_of_the_rows(tmp_path: Path) -> None:
    rows = [row(0, 1, 2, 3, 4, 5), row(1, 5, 6, 7, 8, 9)]
    rows[1]["gt_images"][0] = picture(5, 99, kind="WEBP")  # lossy: another picture
    benchmark = load_mrag_bench(write(tmp_path / "rows", [rows]), cache_dir=tmp_path / "store")
    shown = {data for each in rows for data in (*each["gt_images"], *each["retrieved_images"])}
    assert len(benchmark.corpus) == len(shown) == 15
    assert sorted(benchmark.corpus)[0].startswith("row-")


def test_what_was_matched_is_remembered_until_a_file_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row(0), row(1)]
    corpus = corpus_of(tmp_path / "corpus", rows)
    folder = write(tmp_path / "rows", [rows])
    load = lambda: load_mrag_bench(folder, corpus, cache_dir=tmp_path / "store")  # noqa: E731
    first = load()
    (shard,) = folder.iterdir()
    stat = shard.stat()
    whole = shard.read_bytes()
    shard.write_bytes(bytes(stat.st_size))
    os.utime(shard, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    capsys.readouterr()
    assert load().fingerprint == first.fingerprint  # nobody opened the shard
    assert capsys.readouterr().out == ""
    shard.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(VragError, match="cut short"):
        load()
    shard.write_bytes(whole)
    os.utime(shard, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    capsys.readouterr()
    assert load().fingerprint == first.fingerprint
    assert capsys.readouterr().out == ""  # what was matched before the damage is there still


BAD: dict[str, tuple[Row, str]] = {
    "answer that is no option": ({"answer": "fox"}, "'fox' is none of the options"),
    "letter of another option": ({"answer_choice": "C"}, "another than option C, 'pika'"),
    "letter beyond D": ({"answer_choice": "E"}, "'answer_choice': found 'E'; expected A, B, C, D"),
    "answer that stands twice": ({"D": "hare"}, "two options are 'hare'"),
    "option without words": ({"A": " "}, "'A': found ' '; expected a text"),
    "missing query picture": ({"image": None}, "'image': found None; expected an image"),
    "missing example": ({"gt_images": [b""]}, "gt_images 0: found"),
    "no examples": ({"gt_images": []}, "'gt_images': found []; expected at least one"),
    "unknown scenario": ({"scenario": "Weather"}, "scenario 'Weather' is unknown"),
    "id that repeats": ({"id": "0"}, "id '0' came before"),
    "id with a space": ({"id": "1 b"}, "'id': found '1 b'; expected a text without white space"),
    "damaged picture": ({"gt_images": [b"\x89PNG not"] * 5}, "not a readable picture"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", BAD)
def test_a_row_that_cannot_be_used_is_refused_by_name_and_listed_by_the_check(
    case: str, tmp_path: Path
) -> None:
    other, words = BAD[case]
    folder = write(tmp_path / "rows", [[row(0)], [row(1, **other)], [row(2)]])
    with pytest.raises(VragError, match=r"test-00001-of-00003\.parquet row 0") as error:
        load_mrag_bench(folder, cache_dir=tmp_path / "store")
    assert words in str(error.value)
    found = find_problems(folder)
    faults = found[found["location"].str.contains("test-00001-of-00003.parquet row 0")]
    assert any(words in each for each in faults["message"])
    assert set(found["kind"]) - set(faults["kind"]) <= {"missing"}  # the row's id


ODD: dict[str, tuple[Row, str]] = {
    "two equal wrong options": ({"C": "vole"}, "two options are 'vole'"),
    "one example twice": (
        {"gt_images": [picture(k) for k in (3, 3, 4, 5, 6)]},
        "one image occurs twice",
    ),
    "the query among its examples": (
        {"gt_images": [picture(1, 7), *(picture(k) for k in (4, 5, 6, 8))]},
        "own image is among them",
    ),
}


@pytest.mark.parametrize("case", ODD)
def test_what_is_odd_is_asked_all_the_same_and_listed_by_the_check(
    case: str, tmp_path: Path
) -> None:
    other, words = ODD[case]
    folder = write(tmp_path / "rows", [[row(0), row(1, **other)]])
    assert len(load_mrag_bench(folder, cache_dir=tmp_path / "store").queries) == 2
    found = find_problems(folder)
    assert set(found["kind"]) == {"odd"}
    assert any(words in each for each in found["message"])


def test_missing_shards_ids_and_pictures_of_the_corpus_are_told(tmp_path: Path) -> None:
    rows = [row(0), row(1), row(4)]
    corpus = corpus_of(tmp_path / "corpus", rows)
    (corpus / "1 input%2B+é.png").unlink()
    (corpus / "4_gt_2.png").write_bytes(b"\x89PNG broken")
    (corpus / "copy.png").write_bytes(rows[0]["image"])
    folder = write(tmp_path / "rows", [rows[:2], rows[2:]], told=3)
    with pytest.raises(VragError, match="2 shards of 3; number 2 is missing"):
        load_mrag_bench(folder, corpus, cache_dir=tmp_path / "store")
    found = find_problems(folder, corpus)
    told = {(kind, text) for kind, text in zip(found["kind"], found["message"], strict=True)}
    assert ("missing", "2 of 5 ids: 2, 3") in told  # ids
    assert ("odd", "1 images are not in the corpus") in told
    assert ("odd", "the bytes of an earlier file") in told
    assert list(found["image"][found["kind"] == "damaged"]) == ["4_gt_2.png"]


def test_a_shard_cut_short_is_refused_and_the_check_goes_on_with_the_others(
    tmp_path: Path,
) -> None:
    folder = write(tmp_path / "rows", [[row(0)], [row(1)], [row(2, answer="fox")]])
    shard = folder / "test-00001-of-00003.parquet"
    shard.write_bytes(shard.read_bytes()[:-100])
    with pytest.raises(VragError, match=r"test-00001-of-00003\.parquet: .* behind row 0"):
        load_mrag_bench(folder, cache_dir=tmp_path / "store")
    found = find_problems(folder)
    assert any("cut short" in each for each in found["message"])
    assert any("'fox' is none" in each for each in found["message"])


def test_a_data_set_with_other_columns_and_a_folder_without_shards_are_refused(
    tmp_path: Path,
) -> None:
    lacking = {name: value for name, value in row(0).items() if name != "gt_images"}
    with pytest.raises(VragError, match="no column 'gt_images'"):
        load_mrag_bench(write(tmp_path / "rows", [[lacking]]), cache_dir=tmp_path / "store")
    with pytest.raises(VragError, match=r"no files \*\.parquet"):
        load_mrag_bench(tmp_path, cache_dir=tmp_path / "store")
    with pytest.raises(VragError, match="found no images"):
        load_mrag_bench(tmp_path / "rows", tmp_path, cache_dir=tmp_path / "store")


def test_vrag_check_prints_findings_and_tells_faults_by_its_exit_code(
    tmp_path: Path,
) -> None:
    good = write(tmp_path / "good", [[row(0)]])
    bad = write(tmp_path / "bad", [[row(0, answer="x")]])
    assert CliRunner().invoke(app, ["check", str(good)]).exit_code == 0
    result = CliRunner().invoke(app, ["check", str(bad)])
    assert result.exit_code == 1
    assert "row: 1" in result.output
