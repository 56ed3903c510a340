"""CRAG-MM's two indexes are read from the files that drawn and converted ones share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from vrag_kit.benchmarks.datasets.crag_mm import index_problem
from vrag_kit.benchmarks.datasets.crag_mm_index import read_image_index, read_web_index
from vrag_kit.benchmarks.transforms import percent_encode_spaces

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
    assert len(percent_encode_spaces(address).split()) <= 1
    assert percent_encode_spaces(address).isprintable() or not address.isprintable()


def test_an_index_whose_name_tells_another_split_is_told_apart() -> None:
    assert "the index of public_test" in index_problem("x/image-index-public-test", "validation")
    assert not index_problem("x/image-index-validation", "validation")
    assert not index_problem("x/index", "validation")
