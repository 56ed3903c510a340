"""The generated knowledge graph and the small web of a split, as its two indexes on disk."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from concurrent.futures import Executor
from functools import partial
from itertools import chain
from pathlib import Path

from PIL import Image

from vrag_kit.benchmarks.datasets.crag_mm_index import ENTRIES, PAGES
from vrag_kit.files import write_file
from vrag_kit.log import track
from vrag_kit.papers.crag_mm.parameters import index_folders
from vrag_kit.synthetic.crag_mm.edition import CragMMEdition, EntityEntry, Split
from vrag_kit.synthetic.crag_mm.images import reference_image
from vrag_kit.synthetic.crag_mm.web_pages import SITE
from vrag_kit.synthetic.world.traits import stream
from vrag_kit.types import Json

_JPEG_QUALITY = 88


def write_indexes(edition: CragMMEdition, split: Split, folder: Path, pool: Executor) -> None:
    """Draw the photographs that do not exist, and write both indexes."""
    image_index, web_index = index_folders(folder, split.name)
    shots: list[tuple[EntityEntry, int]] = []
    for entry in split.entries:
        shots += [(entry, number) for number in range(entry.photographs)]
    order = stream(edition.seed, split.name, "index").permutation(len(shots))
    shots = [shots[place] for place in order]
    rows = [_entry_row(index, *shot) for index, shot in enumerate(shots)]
    files = [image_index / row["image"] for row in rows]
    (image_index / "images").mkdir(parents=True, exist_ok=True)
    draw = partial(_draw, edition.photograph, f"{edition.seed}/{split.name}")
    drawn = pool.map(draw, files, *zip(*shots, strict=True), chunksize=16)
    for _ in track(drawn, f"drawing the graph of {split.name}", len(files), "photographs"):
        pass
    pages = [*split.general, *chain.from_iterable(entry.pages for entry in split.entries)]
    order = stream(edition.seed, split.name, "web").permutation(len(pages))
    page_rows: list[Json] = [
        {
            "page_url": pages[i].url,
            "page_name": pages[i].name,
            "page_snippet": pages[i].snippet,
            "page_result": pages[i].result,
            "page_last_modified": None,
        }
        for i in order
    ]
    write_file(image_index / ENTRIES, _json_lines(rows))
    write_file(web_index / PAGES, _json_lines(page_rows))


def encode_jpeg(image: Image.Image) -> bytes:
    """Return an image as the bytes of a JPEG file."""
    file = io.BytesIO()
    image.save(file, "JPEG", quality=_JPEG_QUALITY, subsampling=0)
    return file.getvalue()


def _draw(size: int, seed: str, file: Path, entry: EntityEntry, number: int) -> None:
    """Draw a photograph unless it exists; thousands are not synced to disk."""
    if not file.is_file():
        name = f"{seed}/graph/{entry.entity.name}/{number}"
        part = file.with_suffix(".part")
        part.write_bytes(encode_jpeg(reference_image(entry.entity.species, name, size)))
        part.replace(file)


def _entry_row(index: int, entry: EntityEntry, number: int) -> Json:
    entity = entry.entity
    attributes = None if entry.bare else entity.attributes
    return {
        "index": index,
        "image": f"images/{index:05d}.jpg",
        "image_url": f"{SITE}/photographs/{entity.address}-{number}.jpg",
        "entities": [{"entity_name": entity.name, "entity_attributes": attributes}],
    }


def _json_lines(rows: Iterable[Json]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)
