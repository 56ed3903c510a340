"""CRAG-MM is read in both published layouts, its labels by name whatever their numbers,
and nothing wrong with it passes in silence. Bad rows are in bad_inputs.csv.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from crag_rows import MULTI, SINGLE, Row, picture, session, turn, write_rows
from datasets import Dataset

from vrag_kit.benchmarks import load_crag_mm
from vrag_kit.benchmarks.datasets.crag_mm import NAMES, CragSession, CragTurn, cached_image_name
from vrag_kit.benchmarks.datasets.crag_mm_index import (
    read_annotations,
    read_diagnostic,
    read_image_index,
    read_web_index,
    write_annotations,
)
from vrag_kit.benchmarks.rows import Problems, validate
from vrag_kit.errors import VragError
from vrag_kit.types import Benchmark

TALKS = [
    session(
        "s1",
        turn("i1", "Which moth is this?", query_category="multi-hop", image_quality="low light"),
        turn("i2", "Where does it live?", dynamism="slow-changing", image_quality="low light"),
    ),
    session("s2", turn("i3", domain="food"), turn("i4"), color="blue"),
]


def with_picture(images: Path, url: str, data: bytes) -> None:
    """As if it had been fetched."""
    place = images / cached_image_name(url)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)


def write_lines(folder: Path, name: str, *rows: Row) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return folder


def images_of(benchmark: Benchmark) -> dict[str, Any]:
    return {name: query.image for name, query in benchmark.queries.items()}


@pytest.mark.parametrize("names", [MULTI, SINGLE])
@pytest.mark.parametrize("revision", ["v0.1.1", "v0.1.2"])
def test_each_turn_has_labels(tmp_path, revision, names):
    rows = [{**each, "answers": each["answers"][::-1]} for each in TALKS]
    rows[0]["answers"][0]["ans_full"] = "In the marshes."
    benchmark = load_crag_mm(write_rows(tmp_path, rows, names=names, revision=revision, shards=2))
    assert list(benchmark.queries) == ["i1", "i2", "i3", "i4"]
    first, second = benchmark.queries["i1"], benchmark.queries["i2"]
    assert (second.conversation_id, second.group, second.turn) == ("s1", "s1", 1)
    assert (second.text, second.answers) == ("Where does it live?", ("In the marshes.",))
    assert (first.answers, first.metadata["query_category"]) == (("It is a moth.",), "multi-hop")
    assert second.image is first.image
    labels = ["animal", "simple-knowledge", "slow-changing", "low light"]
    assert [second.metadata[column] for column in NAMES] == labels
    assert second.metadata["where"] == "validation-00000-of-00002.parquet row 0 (session s1) turn 1"
    plain = load_crag_mm(write_rows(tmp_path / "plain", rows))
    assert benchmark.fingerprint == plain.fingerprint


def test_images_lie_in_rows_or_a_cache(tmp_path, capsys):
    """Those in rows are egocentric; they alone are squeezed."""
    first, second = "https://x.org/moth.png?size=1", "https://x.org/moth.png?size=2"
    rows = [session("a"), session("b", url=first), session("c", url=second)]
    folder = write_rows(tmp_path / "rows", rows)
    with_picture(tmp_path / "images", first, picture("green", orientation=6))
    benchmark, squeezed = load_crag_mm(folder), load_crag_mm(folder, egocentric_size=(30, 10))
    assert "1 of 3 questions are left out: the pictures of 1 sessions" in capsys.readouterr().out
    shown = {name: query.metadata["egocentric"] for name, query in benchmark.queries.items()}
    assert shown == {"a": True, "b": False}
    before, after = map(images_of, (benchmark, squeezed))
    assert after["b"] == before["b"]
    assert after["b"].open().size == (8, 6)  # stored as 6 by 8, turned by EXIF
    assert after["a"].open().tobytes() == before["a"].open().resize((30, 10)).tobytes()
    assert after["a"].stamp != before["a"].stamp
    assert squeezed.fingerprint != benchmark.fingerprint
    with_picture(tmp_path / "elsewhere", second, picture("blue"))
    assert list(load_crag_mm(folder, images=tmp_path / "elsewhere").queries) == ["a", "c"]


def test_marks_give_the_entity_whose_documents_are_the_labels(tmp_path):
    folder = write_rows(tmp_path / "rows", TALKS)
    marks: Row = {
        "i1": {"entity": "Talia ensis", "popularity": "tail", "region": [1, 2, 3, 4]},
        "i2": {"needs_history": True, "reference_query": "talia ensis region"},
    }
    write_annotations(folder / "marks.jsonl", marks)
    names = ("Talia ensis", "Talia osa", "talia  ensis")
    entries = [{"index": n, "entities": [{"entity_name": name}]} for n, name in enumerate(names)]
    images = write_lines(tmp_path / "images", "entries.jsonl", *entries)
    page = {"page_url": "https://x.org/1", "page_name": "Talia ensis", "page_snippet": "A moth."}
    pages = write_lines(tmp_path, "pages.jsonl", page)
    benchmark = load_crag_mm(folder, image_index=images, web_index=pages)
    assert list(benchmark.corpus) == ["kg-0", "kg-1", "kg-2", "https://x.org/1"]
    assert benchmark.relevant("i1") == ("kg-0", "kg-2", "https://x.org/1")
    assert benchmark.relevant("i2") == ()
    first, second = benchmark.queries["i1"], benchmark.queries["i2"]
    assert (first.entity, first.metadata["region"]) == ("Talia ensis", [1, 2, 3, 4])
    assert second.metadata["needs_history"] is True
    with pytest.raises(VragError, match="public_test"):
        load_crag_mm(folder, web_index=tmp_path / "web-index-public-test")


def test_what_was_read_is_kept_until_a_shard_changes_or_an_image_is_gone(tmp_path):
    folder = write_rows(tmp_path / "rows", [session("a")])
    first = load_crag_mm(folder)
    (shard,) = (folder / "data").iterdir()
    stat, whole = shard.stat(), shard.read_bytes()
    shard.write_bytes(bytes(stat.st_size))
    os.utime(shard, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert load_crag_mm(folder).fingerprint == first.fingerprint  # nobody opened the shard
    next((tmp_path / "images" / "rows").iterdir()).unlink()
    with pytest.raises(VragError, match="cut short or damaged"):
        load_crag_mm(folder)
    shard.write_bytes(whole)
    assert load_crag_mm(folder).fingerprint == first.fingerprint


def test_the_authors_corrections_hold(tmp_path, capsys):
    gone = session("04d98259-27af-41b1-a7be-5798fd1b8e95")
    broken = session("695b4b5c-7c65-4f7b-8968-50fe10482a16", answers=gone["answers"])
    folder = write_rows(tmp_path / "rows", [session("a"), gone, broken])
    assert list(load_crag_mm(folder).queries) == ["a"]
    assert "the authors drop 1" in capsys.readouterr().out
    url = "https://upload.wikimedia.org/x.jpg"
    row = session("0df99a9a-6a5d-4ff4-b8e4-e3ee90209dfe", url=url)
    one = validate(CragSession, row, "x", Problems())
    assert one.url == f"https://web.archive.org/web/20250521025904/{url}"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (session("first", turn("z")), "session first came before"),
        (session("u", turn("first")), "interaction first came before"),
        (session("b", turn("b", dynamism="never")), "row 1: turns 0 .*'never'"),
    ],
)
def test_a_row_that_cannot_be_used_is_refused_by_name(tmp_path, row, words):
    names = {**MULTI, "dynamism": ["static", "never"]}
    folder = write_rows(tmp_path, [session("first"), row], names=names)
    with pytest.raises(VragError, match=rf"validation-00000-of-00001\.parquet .*{words}"):
        load_crag_mm(folder)


def test_a_label_is_known_in_any_usual_spelling_and_an_unknown_number_refused():
    for column, names in NAMES.items():
        for name in names:
            for spelled in (name.upper(), name.replace(" ", "_"), name.replace(" and ", " & ")):
                read = validate(CragTurn, {**turn("a"), column: spelled}, "x", Problems())
                assert read.labels[column] == name
    for known, words in ((["animal", "book"], "13"), (["weather"] * 14, "'weather'")):
        with pytest.raises(VragError, match=f"x: domain is {words}"):
            validate(CragTurn, turn("a") | {"domain": 13}, "x", Problems(), {"domain": known})


def test_shards_that_do_not_fit_together_are_refused(tmp_path):
    folder = write_rows(tmp_path / "rows", [session("a"), session("b")], names=MULTI, shards=2)
    first, second = sorted((folder / "data").iterdir())
    whole = pq.read_table(first)
    pq.write_table(whole.replace_schema_metadata(None), first)
    with pytest.raises(VragError, match="domain is the number 0"):
        load_crag_mm(folder)
    second.unlink()
    for split, words in (("validation", "1 shards of 2"), ("test", "validation or public_test")):
        with pytest.raises(VragError, match=words):
            load_crag_mm(folder, split)
    lacking = whole.drop_columns(["answers"])
    pq.write_table(lacking, folder / "data" / "public_test-00000-of-00001.parquet")
    with pytest.raises(VragError, match="'answers'"):
        load_crag_mm(folder, "public_test")


def test_the_diagnostic_set_gives_the_same_marks(tmp_path):
    metadata = {
        "target_roi_bbox": [10, 20, 30, 40],
        "image_size": [960, 1280],
        "target_object_name": "Talia ensis",
        "textual_only_question": "Where does Talia ensis live?",
        "referring_expression_category": "this",
    }
    rows = [{"id": "a", "metadata": metadata}, {"id": "b", "metadata": dict.fromkeys(metadata)}]
    (tmp_path / "data").mkdir()
    Dataset.from_list(rows).to_parquet(tmp_path / "data" / "test-00000-of-00001.parquet")
    marks = read_diagnostic(tmp_path)
    read = {"entity": "Talia ensis", "reference_query": "Where does Talia ensis live?"}
    read |= {"region": [10, 20, 30, 40], "image_size": [960, 1280]}
    assert marks == {"a": read, "b": {}}
    write_annotations(tmp_path / "marks.jsonl", marks)
    assert read_annotations(tmp_path / "marks.jsonl") == marks


def test_an_entry_has_its_entities_and_its_image_where_there_is_one(tmp_path):
    url = "https://x.org/moth.jpg"
    entities = [{"entity_name": "Talia ensis", "entity_attributes": {"size": "43 mm"}}]
    entry = {"index": 17, "image": None, "image_url": url, "entities": entities}
    bare = [{"entity_name": "Talia osa", "entity_attributes": None}]
    shown = {**entry, "index": 3, "image": "images/00003.png", "entities": bare}
    folder = write_lines(tmp_path, "entries.jsonl", entry, shown)
    (folder / "images").mkdir()
    (folder / "images" / "00003.png").write_bytes(picture("red", (3, 4)))
    found = read_image_index(folder)
    first, second = found["kg-17"], found["kg-3"]
    assert (first.image, first.text) == (None, None)
    assert first.metadata == {"source": "image_search", "entities": entities, "url": url}
    assert second.metadata["entities"][0]["entity_attributes"] == ""
    assert second.image.open().size == (3, 4)


def test_a_page_is_named_by_its_address_and_says_its_snippet(tmp_path):
    page = {"page_url": "https://x.org/a moth", "page_snippet": "A red moth.", "page_result": None}
    empty = {"page_url": "https://x.org/empty", "page_name": None, "page_snippet": None}
    found = read_web_index(write_lines(tmp_path, "pages.jsonl", page, empty))
    assert list(found) == ["https://x.org/a%20moth", "https://x.org/empty"]
    first = found["https://x.org/a%20moth"]
    assert first.text == first.metadata["page_snippet"] == "A red moth."
    assert (first.metadata["page_url"], first.metadata["page_result"]) == (page["page_url"], "")
    assert found["https://x.org/empty"].text == ""
