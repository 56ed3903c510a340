"""CRAG-MM's two indexes are read from the files that drawn and converted ones share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from vrag_kit.benchmarks import read_image_index, read_web_index
from vrag_kit.benchmarks.crag_mm_index import index_problem, without_white_space
from vrag_kit.errors import VragError

ENTRY = {
    "index": 17,
    "image": None,
    "image_url": "https://x.org/moth.jpg",
    "entities": [{"entity_name": "Talia ensis", "entity_attributes": {"size": "43 mm"}}],
}
PAGE = {
    "page_url": "https://x.org/a moth",
    "page_name": "Talia ensis",
    "page_snippet": "A red moth.",
    "page_result": None,
    "page_last_modified": None,
}


def write(folder: Path, name: str, *rows: dict[str, Any] | str) -> Path:
    folder.mkdir(exist_ok=True)
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (folder / name).write_text("\n".join(lines), encoding="utf-8")
    return folder


def test_an_entry_has_its_entities_and_its_picture_where_there_is_one(tmp_path: Path) -> None:
    bare = {"entity_name": "Talia osa", "entity_attributes": None}
    shown = {**ENTRY, "index": 3, "image": "images/00003.png", "entities": [bare]}
    folder = write(tmp_path, "entries.jsonl", ENTRY, shown)
    (folder / "images").mkdir()
    Image.new("RGB", (3, 4), "red").save(folder / "images" / "00003.png")
    found = read_image_index(folder)
    assert list(found) == ["kg-17", "kg-3"]
    assert (found["kg-17"].image, found["kg-17"].text) == (None, None)
    assert found["kg-17"].metadata == {
        "source": "image_search",
        "entities": ENTRY["entities"],
        "url": "https://x.org/moth.jpg",
    }
    assert found["kg-3"].metadata["entities"][0]["entity_attributes"] == ""
    assert found["kg-3"].image is not None
    assert found["kg-3"].image.open().size == (3, 4)


def test_a_page_is_named_by_its_address_and_says_its_snippet(tmp_path: Path) -> None:
    empty = {"page_url": "https://x.org/empty", "page_name": None, "page_snippet": None}
    found = read_web_index(write(tmp_path, "pages.jsonl", PAGE, empty))
    assert list(found) == ["https://x.org/a%20moth", "https://x.org/empty"]
    page = found["https://x.org/a%20moth"]
    assert page.text == page.metadata["page_snippet"] == "A red moth."
    assert page.metadata["page_url"] == "https://x.org/a moth"
    assert page.metadata["page_result"] == ""
    assert found["https://x.org/empty"].text == ""


@given(st.text(min_size=1))
def test_an_id_has_no_white_space_whatever_an_address_holds(address: str) -> None:
    assert len(without_white_space(address).split()) <= 1
    assert without_white_space(address).isprintable() or not address.isprintable()


BAD_ENTRIES: dict[str, tuple[Any, str]] = {
    "no number": ({**ENTRY, "index": "17"}, "'index' is '17', expected a whole number"),
    "no entities": ({**ENTRY, "entities": None}, "'entities' is None, expected a list"),
    "no name": ({**ENTRY, "entities": [{"entity_name": " "}]}, "'entity_name' is ' '"),
    "attributes of text": (
        {**ENTRY, "entities": [{"entity_name": "a", "entity_attributes": "{}"}]},
        "'entity_attributes' of 'a' is '{}', expected an object or null",
    ),
    "a picture elsewhere": ({**ENTRY, "image": "../x.jpg"}, "'../x.jpg' points outside"),
    "no object": ("[1]", "expected an object with the keys index, image, image_url, entities"),
    "number twice": ({**ENTRY, "index": 1}, "'kg-1' came before"),
}


@pytest.mark.parametrize("case", BAD_ENTRIES)
def test_a_bad_entry_is_refused_with_file_and_line(case: str, tmp_path: Path) -> None:
    row, words = BAD_ENTRIES[case]
    folder = write(tmp_path, "entries.jsonl", {**ENTRY, "index": 1}, row)
    with pytest.raises(VragError, match=r"entries\.jsonl line 2: ") as error:
        read_image_index(folder)
    assert words in str(error.value)


def test_a_bad_page_and_an_index_that_is_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(VragError, match=r"line 1: 'page_url' is '', expected the page's address"):
        read_web_index(write(tmp_path, "pages.jsonl", {**PAGE, "page_url": ""}))
    with pytest.raises(VragError, match=r"line 2: .* came before; expected each once"):
        read_web_index(write(tmp_path, "pages.jsonl", PAGE, PAGE))
    with pytest.raises(VragError, match=r"pages\.jsonl: holds nothing"):
        read_web_index(write(tmp_path, "pages.jsonl", ""))
    with pytest.raises(VragError, match=r"entries\.jsonl: no such image index"):
        read_image_index(tmp_path)


def test_an_index_whose_name_tells_another_split_is_told_apart() -> None:
    assert "the index of public_test" in index_problem("x/image-index-public-test", "validation")
    assert not index_problem("x/image-index-validation", "validation")
    assert not index_problem("x/index", "validation")
