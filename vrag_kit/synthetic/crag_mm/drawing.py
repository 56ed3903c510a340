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
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

from vrag_kit.benchmarks.datasets.crag_mm import NAMES, SPLITS, cached_image_name, images_folder
from vrag_kit.benchmarks.datasets.crag_mm_index import ENTRIES, MARKS, PAGES, write_annotations
from vrag_kit.files import write_file
from vrag_kit.log import track
from vrag_kit.papers.crag_mm.parameters import index_folders
from vrag_kit.processes import available_cores, worker_pool
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
from vrag_kit.synthetic.editions import generate_once
from vrag_kit.synthetic.parquet import (
    IMAGE,
    TEXT,
    TEXTS,
    class_labels,
    image_cell,
    parquet_bytes,
    shards,
)
from vrag_kit.synthetic.world.photographs import view_showing
from vrag_kit.synthetic.world.shapes import silhouette
from vrag_kit.synthetic.world.traits import stream, words
from vrag_kit.synthetic.world.views import compose_view, encode_jpeg
from vrag_kit.types import Json, JsonView

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


def generate_crag_mm(edition: str, folder: Path | str, *, workers: int | None = None) -> Path:
    """Generate an edition ("full" or "small") in `folder` unless it exists; returns the folder.

    `workers` processes draw at once (default: one a core). Raises as `generate_once` does.
    """
    indexes = chain.from_iterable(index_folders(Path(), split) for split in SPLITS)
    outputs = [*_KINDS, str(images_folder(Path(SINGLE_TURN))), *map(str, indexes)]
    draw = partial(_draw, edition, workers or available_cores())
    return generate_once("field-guide-crag-mm", edition, EDITIONS, folder, draw, outputs)


def _draw(edition: str, workers: int, folder: Path) -> None:
    size = EDITIONS[edition]
    splits = plan_edition(size)
    with ThreadPoolExecutor(1) if workers == 1 else worker_pool(workers) as pool:
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


@dataclass(frozen=True, slots=True)
class SessionImage:
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
        for number, part in enumerate(shards(rows, _SHARDS)):
            name = f"{split.name}-{number:05d}-of-{_SHARDS:05d}.parquet"
            write_file(folder / kind / "data" / name, _parquet(part, kind))
    write_annotations(folder / kind / MARKS, annotations)


def draw_session_image(edition: CragMMEdition, session: Session) -> SessionImage:
    """Draw a session's image: as glasses take it, or the photograph of a URL, which is in no
    index.
    """
    species = session.entry.entity.species
    if session.egocentric:
        size = edition.worn
        image, region = egocentric_image(species, session.quality, session.picture, size)
        return SessionImage(encode_jpeg(image), size, region)
    side = edition.worn[0]
    image = reference_image(species, session.picture, side)
    alone = replace(view_showing(species, "", session.picture), leaf=False, blades=0)
    box = silhouette(compose_view(species, alone), side).getbbox()
    return SessionImage(encode_jpeg(image), (side, side), box or (0, 0, side, side))


def _row(session: Session, image: SessionImage, kind: str) -> Json:
    """Column → value, in the data set's order."""
    ids = list(session.interaction_ids)
    cells = [
        {
            "domain": _DOMAINS.get(turn.pictured.kind, "animal"),
            "query_category": turn.category,
            "dynamism": turn.dynamism,
            "image_quality": session.quality,
        }
        for turn in session.turns
    ]
    labels = {
        column: [names.index(cell[column]) for cell in cells]
        for column, names in LABELS[kind].items()
    }
    queries = [turn.question for turn in session.turns]
    answers = [turn.reply.sentence for turn in session.turns]
    url = None if session.egocentric else f"{SITE}/pictures/{session.session_id}.jpg"
    return {
        "session_id": session.session_id,
        "image": None if url else image_cell(image.data),
        "image_url": url,
        "turns": {"interaction_id": ids, "query": queries, **labels},
        "answers": {"interaction_id": ids, "ans_full": answers},
    }


def _parquet(rows: Sequence[JsonView], kind: str) -> bytes:
    """The bytes of a Parquet file, which `datasets` reads with its labels."""
    labels = {column: class_labels(names) for column, names in LABELS[kind].items()}
    columns = {
        "session_id": TEXT,
        "image": IMAGE,
        "image_url": TEXT,
        "turns": {"interaction_id": TEXTS, "query": TEXTS, **labels},
        "answers": {"interaction_id": TEXTS, "ans_full": TEXTS},
    }
    return parquet_bytes(columns, rows)


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
