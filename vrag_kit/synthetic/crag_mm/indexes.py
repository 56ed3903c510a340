"""The drawn knowledge graph and the small web of a split, as its two indexes on disk."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PIL import Image

from vrag_kit.benchmarks.datasets.crag_mm_index import ENTRIES, PAGES
from vrag_kit.files import write_file
from vrag_kit.log import track
from vrag_kit.synthetic.crag_mm.edition import CragMMEdition, EntityEntry, Split
from vrag_kit.synthetic.crag_mm.images import reference_image
from vrag_kit.synthetic.crag_mm.web_pages import SITE, WebPage
from vrag_kit.synthetic.traits import stream
from vrag_kit.types import Json

_QUALITY = 88  # of the JPEG files


def index_folders(folder: Path, split: str) -> tuple[Path, Path]:
    """Where the image index and the web index of a split are in a folder."""
    name = split.replace("_", "-")
    return folder / f"image-index-{name}", folder / f"web-index-{name}"


def write_indexes(edition: CragMMEdition, split: Split, folder: Path, pool: Executor) -> None:
    """Draw the photographs that are not there, and write both indexes."""
    image_index, web_index = index_folders(folder, split.name)
    shown: list[tuple[EntityEntry, int]] = []
    for entry in split.entries:
        shown += [(entry, number) for number in range(entry.photographs)]
    order = stream(edition.seed, split.name, "index").permutation(len(shown))
    rows = [_entry_row(index, *shown[place]) for index, place in enumerate(order)]
    files = [image_index / str(row["image"]) for row in rows]
    (image_index / "images").mkdir(parents=True, exist_ok=True)
    seed = f"{edition.seed}/{split.name}"
    jobs = [_Job(seed, *shown[place]) for place in order]
    drawn = pool.map(partial(_draw, edition.photograph), files, jobs, chunksize=16)
    for _ in track(drawn, f"drawing the graph of {split.name}", len(files), "photographs"):
        pass
    write_file(image_index / ENTRIES, _json_lines(rows))
    write_file(web_index / PAGES, _json_lines(_page_row(page) for page in _pages(edition, split)))


def encode_jpeg(picture: Image.Image) -> bytes:
    """A picture as the bytes of a JPEG file."""
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=_QUALITY, subsampling=0)
    return file.getvalue()


@dataclass(frozen=True, slots=True)
class _Job:
    """One photograph of the graph."""

    seed: str
    entry: EntityEntry
    number: int  # among its entity's


def _draw(size: int, file: Path, job: _Job) -> None:
    """Draw a photograph unless it is there; thousands are not waited for on the disk."""
    entity = job.entry.entity
    name = f"{job.seed}/graph/{entity.name}/{job.number}"
    if not file.is_file():
        part = file.with_suffix(".part")
        part.write_bytes(encode_jpeg(reference_image(entity.species, name, size)))
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


def _pages(edition: CragMMEdition, split: Split) -> list[WebPage]:
    """All pages in a shuffled order."""
    pages = list(split.general)
    for entry in split.entries:
        pages += entry.pages
    order = stream(edition.seed, split.name, "web").permutation(len(pages))
    return [pages[i] for i in order]


def _page_row(page: WebPage) -> Json:
    return {
        "page_url": page.url,
        "page_name": page.name,
        "page_snippet": page.snippet,
        "page_result": page.result,
        "page_last_modified": None,
    }


def _json_lines(rows: Iterable[Json]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)
