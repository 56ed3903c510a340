"""CRAG-MM generated with the Field Guide's organisms, in the layouts of the real data and indexes.

    <folder>/single-turn/data/…-00000-of-00002.parquet          the rows of both splits
    <folder>/single-turn/marks.jsonl                            annotations beyond the public data
    <folder>/multi-turn/…                                       the same of conversations
    <folder>/images/url/…                                       images with a URL
    <folder>/image-index-public-test/entries.jsonl, images/…    the knowledge graph
    <folder>/web-index-public-test/pages.jsonl                  the small web
    <folder>/edition.json     edition and version of the generator; complete once all is written

The same edition gives the same bytes. Generating that was interrupted goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from vrag_kit.benchmarks.datasets.crag_mm import NAMES, SPLITS, cached_image_name, images_folder
from vrag_kit.benchmarks.datasets.crag_mm_index import ENTRIES, MARKS, PAGES, write_annotations
from vrag_kit.files import write_file
from vrag_kit.log import track
from vrag_kit.papers.crag_mm.parameters import index_folders
from vrag_kit.synthetic import parquet
from vrag_kit.synthetic.crag_mm.edition import (
    EDITIONS,
    CragMMEdition,
    EntityEntry,
    Session,
    Split,
    plan_edition,
)
from vrag_kit.synthetic.crag_mm.images import Box, egocentric_image, reference_image
from vrag_kit.synthetic.crag_mm.web_pages import SITE
from vrag_kit.synthetic.editions import generate_once, worker_pool
from vrag_kit.synthetic.world.photographs import compose_view, encode_jpeg, view_showing
from vrag_kit.synthetic.world.shapes import silhouette
from vrag_kit.synthetic.world.traits import stream, words
from vrag_kit.types import Json

SINGLE_TURN, MULTI_TURN = "single-turn", "multi-turn"
_KINDS = (SINGLE_TURN, MULTI_TURN)
_SHARDS = 2
_DOMAINS = {"flower": "plants and gardening", "mushroom": "plants and gardening"}
LABELS: dict[str, dict[str, tuple[str, ...]]] = {
    MULTI_TURN: {
        "domain": NAMES["domain"],
        "query_category": words("""
            reasoning simple-knowledge comparison simple-recognition multi-hop aggregation
        """),
        "dynamism": ("fast-changing", "static", "slow-changing", "real-time"),
        "image_quality": ("rotated", "truncated", "occluded", "low light", "blurred", "normal"),
    },
    SINGLE_TURN: {
        "domain": NAMES["domain"],
        "query_category": words("""
            reasoning comparison aggregation simple-recognition simple-knowledge multi-hop
        """),
        "dynamism": ("static", "fast-changing", "real-time", "slow-changing"),
        "image_quality": ("normal", "low light", "blurred", "occluded", "rotated", "truncated"),
    },
}
"""Names of labels in the order of their numbers, which differs in the two data sets."""


def generate_crag_mm(edition: str, folder: Path | str) -> Path:
    """Generate an edition ("full" or "small") in `folder` unless it exists; returns the folder.
    Raises as `generate_once` does.
    """
    indexes = chain.from_iterable(index_folders(Path(), split) for split in SPLITS)
    outputs = [*_KINDS, str(images_folder(Path(SINGLE_TURN))), *map(str, indexes)]
    return generate_once("field-guide-crag-mm", edition, EDITIONS, folder, _draw, outputs)


def _draw(edition: str, folder: Path) -> None:
    size = EDITIONS[edition]
    splits = plan_edition(size)
    with worker_pool() as pool:
        for split in splits:
            write_indexes(size, split, folder, pool)
        for kind in _KINDS:
            write_sessions(size, splits, kind, folder, pool)


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
    draw = partial(_draw_photograph, edition.photograph, f"{edition.seed}/{split.name}")
    drawn = pool.map(draw, files, *zip(*shots, strict=True), chunksize=16)
    for _ in track(drawn, f"drawing the graph of {split.name}", len(files), "photographs"):
        pass
    pages = [*split.general, *chain.from_iterable(entry.pages for entry in split.entries)]
    order = stream(edition.seed, split.name, "web").permutation(len(pages))
    urls = [{"page_url": page.url, **page.row(), "page_last_modified": None} for page in pages]
    page_rows = [urls[place] for place in order]
    write_file(image_index / ENTRIES, _json_lines(rows))
    write_file(web_index / PAGES, _json_lines(page_rows))


def _draw_photograph(size: int, seed: str, file: Path, entry: EntityEntry, number: int) -> None:
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


class SessionImage(NamedTuple):
    """The image of a session."""

    data: bytes  # a JPEG file
    size: tuple[int, int]
    region: Box  # what is visible of the organism


def write_sessions(
    edition: CragMMEdition, splits: list[Split], kind: str, folder: Path, pool: Executor
) -> None:
    """Write the splits' rows of one kind (`SINGLE_TURN` or `MULTI_TURN`), their annotations, and
    the files of images with a URL.
    """
    annotations: dict[str, Json] = {}
    for split in splits:
        sessions = split.single if kind == SINGLE_TURN else split.multi
        drawn = pool.map(partial(draw_session_image, edition), sessions, chunksize=8)
        followed = track(drawn, f"drawing {split.name}, {kind}", len(sessions), "images")
        rows: list[Json] = []
        for session, image in zip(sessions, followed, strict=True):
            rows.append(_row(session, image, kind))
            annotations |= _annotations(session, image)
            if url := rows[-1]["image_url"]:
                write_file(images_folder(folder / kind) / cached_image_name(url), image.data)
        for number, part in enumerate(parquet.shards(rows, _SHARDS)):
            name = f"{split.name}-{number:05d}-of-{_SHARDS:05d}.parquet"
            write_file(folder / kind / "data" / name, parquet.parquet_bytes(_columns(kind), part))
    write_annotations(folder / kind / MARKS, annotations)


def draw_session_image(edition: CragMMEdition, session: Session) -> SessionImage:
    """Draw a session's image: as glasses take it, or the photograph of a URL, which is in no
    index.
    """
    species, size = session.entry.entity.species, edition.worn
    if session.egocentric:
        image, region = egocentric_image(species, session.quality, session.picture, size)
        return SessionImage(encode_jpeg(image), size, region)
    side = size[0]
    image = reference_image(species, session.picture, side)
    alone = replace(view_showing(species, "", session.picture), leaf=False, blades=0)
    box = silhouette(compose_view(species, alone), side).getbbox()
    return SessionImage(encode_jpeg(image), (side, side), box or (0, 0, side, side))


def _row(session: Session, image: SessionImage, kind: str) -> Json:
    """Column → value, in the data set's order."""
    ids = list(session.interaction_ids)
    labels: dict[str, list[int]] = {column: [] for column in LABELS[kind]}
    for turn in session.turns:
        cell = {
            "domain": _DOMAINS.get(turn.pictured.kind, "animal"),
            "query_category": turn.category,
            "dynamism": turn.dynamism,
            "image_quality": session.quality,
        }
        for column, numbers in labels.items():
            numbers.append(LABELS[kind][column].index(cell[column]))
    queries = [turn.question for turn in session.turns]
    answers = [turn.reply.sentence for turn in session.turns]
    url = None if session.egocentric else f"{SITE}/pictures/{session.session_id}.jpg"
    return {
        "session_id": session.session_id,
        "image": None if url else parquet.image_cell(image.data),
        "image_url": url,
        "turns": {"interaction_id": ids, "query": queries, **labels},
        "answers": {"interaction_id": ids, "ans_full": answers},
    }


def _columns(kind: str) -> Json:
    labels = {column: parquet.class_labels(names) for column, names in LABELS[kind].items()}
    return {
        "session_id": parquet.TEXT,
        "image": parquet.IMAGE,
        "image_url": parquet.TEXT,
        "turns": {"interaction_id": parquet.TEXTS, "query": parquet.TEXTS, **labels},
        "answers": {"interaction_id": parquet.TEXTS, "ans_full": parquet.TEXTS},
    }


def _annotations(session: Session, image: SessionImage) -> dict[str, Json]:
    """Interaction → annotations; the entity is the one that the image shows."""
    return {
        name: {
            "entity": session.entry.entity.name,
            "popularity": session.entry.popularity,
            "needs_history": turn.needs_history,
            "reference_query": turn.search_query,
            "region": list(image.region),
            "image_size": list(image.size),
        }
        for name, turn in zip(session.interaction_ids, session.turns, strict=True)
    }
