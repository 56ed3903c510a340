"""The generated questions and conversations as rows with their images, in the columns of CRAG-MM's
hub data sets (v0.1.2), and the annotations that the public data do not have.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from vrag_kit.benchmarks.datasets.crag_mm import NAMES, cached_image_name, images_folder
from vrag_kit.benchmarks.datasets.crag_mm_index import MARKS, write_annotations
from vrag_kit.files import write_file
from vrag_kit.log import track
from vrag_kit.synthetic.crag_mm.edition import CragMMEdition, Session, Split
from vrag_kit.synthetic.crag_mm.images import Box, egocentric_image, reference_image
from vrag_kit.synthetic.crag_mm.indexes import encode_jpeg
from vrag_kit.synthetic.crag_mm.web_pages import SITE
from vrag_kit.synthetic.mrag_bench.painting import view_showing
from vrag_kit.synthetic.parquet import (
    IMAGE,
    TEXT,
    TEXTS,
    class_labels,
    image_cell,
    parquet_bytes,
)
from vrag_kit.synthetic.world.shapes import part_map
from vrag_kit.synthetic.world.views import compose_view
from vrag_kit.types import Json

SINGLE_TURN, MULTI_TURN = "single-turn", "multi-turn"
_SHARDS = 2
_DOMAINS = {"flower": "plants and gardening", "mushroom": "plants and gardening"}
LABELS: dict[str, dict[str, tuple[str, ...]]] = {
    MULTI_TURN: {
        "domain": NAMES["domain"],
        "query_category": (
            "reasoning",
            "simple-knowledge",
            "comparison",
            "simple-recognition",
            "multi-hop",
            "aggregation",
        ),
        "dynamism": ("fast-changing", "static", "slow-changing", "real-time"),
        "image_quality": ("rotated", "truncated", "occluded", "low light", "blurred", "normal"),
    },
    SINGLE_TURN: {
        "domain": NAMES["domain"],
        "query_category": (
            "reasoning",
            "comparison",
            "aggregation",
            "simple-recognition",
            "simple-knowledge",
            "multi-hop",
        ),
        "dynamism": ("static", "fast-changing", "real-time", "slow-changing"),
        "image_quality": ("normal", "low light", "blurred", "occluded", "rotated", "truncated"),
    },
}
"""Names of labels in the order of their numbers, which differs in the two data sets."""


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
        for number in range(_SHARDS):
            first, last = (len(rows) * edge // _SHARDS for edge in (number, number + 1))
            name = f"{split.name}-{number:05d}-of-{_SHARDS:05d}.parquet"
            write_file(folder / kind / "data" / name, _parquet(rows[first:last], kind))
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
    organism = [replace(shape, part="organism") for shape in compose_view(species, alone)]
    box = part_map(organism, side)[0].getbbox()
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


def _parquet(rows: list[Json], kind: str) -> bytes:
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
