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

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.random import Generator
from PIL import Image, ImageFilter

from vrag_kit.benchmarks.datasets.crag_mm import NAMES, SPLITS, cached_image_name, images_folder
from vrag_kit.benchmarks.datasets.crag_mm_index import ENTRIES, MARKS, PAGES, write_annotations
from vrag_kit.files import write_file
from vrag_kit.log import progress
from vrag_kit.papers.crag_mm.parameters import index_folders
from vrag_kit.synthetic import rows as columns
from vrag_kit.synthetic.crag_mm.edition import (
    EDITIONS,
    CragMMEdition,
    EntityEntry,
    Session,
    Split,
    plan_edition,
)
from vrag_kit.synthetic.crag_mm.entities import ATTRIBUTES, SITE
from vrag_kit.synthetic.editions import generate_once, worker_pool
from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.photographs import (
    View,
    compose_view,
    draw_photograph,
    draw_showing,
    encode_jpeg,
    sample_view,
    view_showing,
)
from vrag_kit.synthetic.world.shapes import (
    Shape,
    across,
    darker,
    direction,
    paint,
    rgb,
    silhouette,
    to_image,
)
from vrag_kit.synthetic.world.traits import Species, choose, shuffled, stream, words
from vrag_kit.types import Json

Box = tuple[int, int, int, int]
"""Left, top, right, lower edge in pixels; what is seen of the organism lies inside."""
UPRIGHT = 0.14
"""Largest rotation of an organism in a picture that is not rotated, radians: under 10°."""
_SKIN = ((226, 178, 148), (198, 144, 110), (150, 100, 72), (104, 68, 48))
_WIRE = ((40, 42, 44), (120, 122, 120), (206, 208, 204))


def egocentric_image(
    species: Species, quality: str, name: str, size: tuple[int, int]
) -> tuple[Image.Image, Box]:
    """A worn picture of `size` (width, height), which is higher than wide, and the box
    of what it shows of the organism; the same name gives the same picture.
    """
    width, height = size
    left = (height - width) // 2
    frame = (left, 0, left + width, height)
    rng = stream(name, "worn", quality)
    view = _view(species, quality, name, rng, width / height)
    image = draw_photograph(species, view, height)
    box = silhouette(compose_view(species, view), height).crop(frame).getbbox()
    assert box, f"{species.scientific_name}: nothing of it in the frame ({name})"
    if quality == "occluded":
        cover = choose((_finger, _mesh), rng)
        low, high = np.array(box).reshape(2, 2)
        middle = (low + high) / 2 + (left, 0)
        large = image.resize((2 * height, 2 * height), Image.Resampling.BILINEAR)
        paint(large, cover(middle / height - 0.5, (high - low).max() / height, rng))
        image = large.reduce(2).filter(ImageFilter.GaussianBlur(0.6))
    if quality == "low light":  # a quarter to two fifths of the light, and coarse grain
        pixels = np.asarray(image, dtype=np.float32) * rng.uniform(0.22, 0.4)
        image = to_image(pixels + 5 * rng.standard_normal(pixels.shape, dtype=np.float32))
    return image.crop(frame), box


def _view(species: Species, quality: str, name: str, rng: Generator, width: float) -> View:
    """Where the organism stands in a square of the picture's height, of which the
    middle `width` is kept.
    """
    angle = rng.uniform(-UPRIGHT, UPRIGHT)
    if quality == "rotated":
        angle = rng.choice((-1, 1)) * np.radians(rng.uniform(15, 75))
    scale = rng.uniform(0.3, 0.46)
    room = np.array([width, 1.0]) / 2 - scale / 2  # from the middle to either side
    x, y = room * rng.uniform(-1, 1, size=2)
    if abs(x) + abs(y) < 0.12:  # never in the middle
        y += np.copysign(0.14, y)
    if quality == "truncated":
        beyond = scale * rng.uniform(0.42, 0.62)  # of the organism is out of the frame
        side = rng.choice((-1, 1))
        if rng.random() < 0.6:
            x = side * (width / 2 - scale / 2 + beyond)
        else:
            y = side * (0.5 - scale / 2 + beyond)
    blur = rng.uniform(0.011, 0.02) if quality == "blurred" else rng.uniform(0.001, 0.005)
    view = sample_view(species, KINDS[species.kind].outside_pose, 0.0, rng, name)
    light = float(np.clip(view.light, 0.75, 1.2))
    placed = replace(view, scale=scale, angle=float(angle), x=float(x), y=float(y))
    return replace(placed, blur=blur, light=light, leaf=False, blades=0)


def _finger(at: np.ndarray, reach: float, rng: Generator) -> Iterator[Shape]:
    """A finger that comes in from the nearer side and ends over the organism."""
    side = -1.0 if at[0] < 0 else 1.0
    foot = np.array([side * 0.5, at[1] + rng.uniform(0.05, 0.3)])
    tip = at + rng.uniform((0.02, -0.08), (0.14, 0.12)) * (side, 1) * reach
    along = (tip - foot) / np.linalg.norm(tip - foot)
    axes = np.array([along, across(along)])
    wide = reach * rng.uniform(0.2, 0.27)
    half = 1.15 * wide * axes[1]
    turn = np.linspace(-np.pi / 2, np.pi / 2, 14)
    end = tip + wide * direction(turn).T @ axes
    base = foot - 0.3 * along
    outline = np.array([base - half, *end, base + half])
    skin = choose(_SKIN, rng)
    nail = tip + 0.55 * wide * (direction(2 * turn).T * (0.9, 0.7)) @ axes
    yield Shape(outline, darker(skin, 0.82))
    yield Shape(outline - 0.06 * wide * axes[1], skin)
    yield Shape(nail + 0.35 * wide * along, rgb(min(255.0, 1.12 * c) for c in skin))


def _mesh(at: np.ndarray, reach: float, rng: Generator) -> Iterator[Shape]:
    """Wire netting before the whole picture."""
    wire = choose(_WIRE, rng)
    turn = rng.uniform(0, np.pi / 2)
    gap = rng.uniform(0.05, 0.075)
    thick = gap * rng.uniform(0.11, 0.17)
    for angle in (turn, turn + np.pi / 2):
        along = direction(angle)
        side = across(along)
        for offset in np.arange(-0.75, 0.75, gap):
            middle = at + offset * side
            start = middle - 2 * along
            end = middle + 2 * along
            half = thick * side
            outline = np.array([start - half, end - half, end + half, start + half])
            yield Shape(outline, wire)


SINGLE_TURN, MULTI_TURN = "single-turn", "multi-turn"
_KINDS = (SINGLE_TURN, MULTI_TURN)
_SHARDS = 2
_DOMAINS = {"flower": "plants and gardening", "mushroom": "plants and gardening"}
LABELS: dict[str, dict[str, tuple[str, ...]]] = {
    MULTI_TURN: {
        "domain": NAMES["domain"],
        "query_category": words(
            "reasoning simple-knowledge comparison simple-recognition multi-hop aggregation"
        ),
        "dynamism": words("fast-changing static slow-changing real-time"),
        "image_quality": ("rotated", "truncated", "occluded", "low light", "blurred", "normal"),
    },
    SINGLE_TURN: {
        "domain": NAMES["domain"],
        "query_category": words(
            "reasoning comparison aggregation simple-recognition simple-knowledge multi-hop"
        ),
        "dynamism": words("static fast-changing real-time slow-changing"),
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
    pages = [*split.general]
    for entry in split.entries:
        shots += [(entry, number) for number in range(entry.photographs)]
        pages += entry.pages
    shots = shuffled(shots, stream(edition.seed, split.name, "index"))
    rows = [_entry_row(index, *shot) for index, shot in enumerate(shots)]
    files = [image_index / row["image"] for row in rows]
    (image_index / "images").mkdir(parents=True, exist_ok=True)
    draw = partial(_draw_photograph, edition.photograph, f"{edition.seed}/{split.name}")
    drawn = pool.map(draw, files, *zip(*shots, strict=True), chunksize=16)
    list(progress(drawn, f"drawing the graph of {split.name}", len(files), "photographs"))
    pages = shuffled(pages, stream(edition.seed, split.name, "web"))
    page_rows = [{"page_url": page.url, **page.row(), "page_last_modified": None} for page in pages]
    columns.write_json_lines(image_index / ENTRIES, rows)
    columns.write_json_lines(web_index / PAGES, page_rows)


def _draw_photograph(size: int, seed: str, file: Path, entry: EntityEntry, number: int) -> None:
    """Draw a photograph unless it exists; thousands are not synced to disk."""
    if not file.is_file():
        name = f"{seed}/graph/{entry.entity.name}/{number}"
        part = file.with_suffix(".part")
        part.write_bytes(encode_jpeg(draw_showing(entry.entity.species, "", name, size)))
        part.replace(file)


def _entry_row(index: int, entry: EntityEntry, number: int) -> Json:
    entity = entry.entity
    attributes = None if entry.bare else {key: entity.facts[key] for key in ATTRIBUTES}
    return {
        "index": index,
        "image": f"images/{index:05d}.jpg",
        "image_url": f"{SITE}/photographs/{entity.address}-{number}.jpg",
        "entities": [{"entity_name": entity.name, "entity_attributes": attributes}],
    }


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
        followed = progress(drawn, f"drawing {split.name}, {kind}", len(sessions), "images")
        rows: list[Json] = []
        for session, (data, placed) in zip(sessions, followed, strict=True):
            rows.append(_row(session, data, kind))
            annotations |= _annotations(session, placed)
            if url := rows[-1]["image_url"]:
                write_file(images_folder(folder / kind) / cached_image_name(url), data)
        for number, part in enumerate(columns.shards(rows, _SHARDS)):
            name = f"{split.name}-{number:05d}-of-{_SHARDS:05d}.parquet"
            write_file(folder / kind / "data" / name, columns.parquet_bytes(_columns(kind), part))
    write_annotations(folder / kind / MARKS, annotations)


def draw_session_image(edition: CragMMEdition, session: Session) -> tuple[bytes, Json]:
    """Draw a session's image: as glasses take it, or the photograph of a URL, which is in no
    index. Returns a JPEG file, and what the annotations say of it.
    """
    species, side = session.entry.entity.species, edition.worn[0]
    if session.egocentric:
        image, box = egocentric_image(species, session.quality, session.picture, edition.worn)
    else:
        image = draw_showing(species, "", session.picture, side)
        alone = replace(view_showing(species, "", session.picture), leaf=False, blades=0)
        box = silhouette(compose_view(species, alone), side).getbbox() or (0, 0, side, side)
    return encode_jpeg(image), {"region": list(box), "image_size": list(image.size)}


def _row(session: Session, image: bytes, kind: str) -> Json:
    """Column → value, in the data set's order."""
    turns = session.turns
    cells = {
        "domain": [_DOMAINS.get(turn.pictured.kind, "animal") for turn in turns],
        "query_category": [turn.ask.category for turn in turns],
        "dynamism": [turn.dynamism for turn in turns],
        "image_quality": [session.quality for _ in turns],
    }
    labels = {name: list(map(LABELS[kind][name].index, values)) for name, values in cells.items()}
    ids = {"interaction_id": list(session.interaction_ids)}
    url = None if session.egocentric else f"{SITE}/pictures/{session.session_id}.jpg"
    return {
        "session_id": session.session_id,
        "image": None if url else columns.image_cell(image),
        "image_url": url,
        "turns": {**ids, "query": [turn.question for turn in turns], **labels},
        "answers": {**ids, "ans_full": [turn.reply.sentence for turn in turns]},
    }


def _columns(kind: str) -> Json:
    labels = {column: columns.class_labels(names) for column, names in LABELS[kind].items()}
    return {
        "session_id": columns.TEXT,
        "image": columns.IMAGE,
        "image_url": columns.TEXT,
        "turns": {"interaction_id": columns.TEXTS, "query": columns.TEXTS, **labels},
        "answers": {"interaction_id": columns.TEXTS, "ans_full": columns.TEXTS},
    }


def _annotations(session: Session, placed: Json) -> dict[str, Json]:
    """Interaction → annotations; the entity is the one that the image shows."""
    return {
        name: {
            "entity": session.entry.entity.name,
            "popularity": session.entry.popularity,
            "needs_history": turn.needs_history,
            "reference_query": turn.search_query,
            **placed,
        }
        for name, turn in zip(session.interaction_ids, session.turns, strict=True)
    }
