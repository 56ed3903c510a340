"""The drawn questions and conversations as rows with their pictures, and the marks of
what the public data do not tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from vrag_kit.benchmarks.datasets.crag_mm import cached_image_name, images_folder
from vrag_kit.files import write_file
from vrag_kit.log import track
from vrag_kit.synthetic.crag_mm.edition import CragMMEdition, Session, Split
from vrag_kit.synthetic.crag_mm.images import Box, egocentric_image, reference_image
from vrag_kit.synthetic.crag_mm.indexes import encode_jpeg
from vrag_kit.synthetic.crag_mm.rows import MULTI, SINGLE, SessionWithImage, parquet_rows
from vrag_kit.synthetic.crag_mm.web_pages import SITE
from vrag_kit.synthetic.mrag_bench.painting import view_showing
from vrag_kit.synthetic.shapes import part_map
from vrag_kit.synthetic.views import compose_view
from vrag_kit.types import Json

SINGLE_TURN, MULTI_TURN = "single-turn", "multi-turn"
_SHARDS = 2


@dataclass(frozen=True, slots=True)
class SessionImage:
    """The picture of a session, drawn."""

    data: bytes  # a JPEG file
    size: tuple[int, int]
    region: Box  # what is seen of the asked one


def write_sessions(
    edition: CragMMEdition, split: Split, kind: str, folder: Path, pool: Executor
) -> dict[str, Json]:
    """Write a split's rows of one kind (`SINGLE_TURN` or `MULTI_TURN`), and the files of
    their pictures with an address; returns interaction → its marks.
    """
    is_single = kind == SINGLE_TURN
    sessions = split.single if is_single else split.multi
    drawn = pool.map(partial(draw_session_image, edition), sessions, chunksize=8)
    followed = track(drawn, f"drawing {split.name}, {kind}", len(sessions), "pictures")
    rows: list[SessionWithImage] = []
    marks: dict[str, Json] = {}
    for session, asked in zip(sessions, followed, strict=True):
        rows.append(_pictured(session, asked, images_folder(folder / kind)))
        marks |= _marks(session, asked)
    for number in range(_SHARDS):
        first, last = (len(rows) * edge // _SHARDS for edge in (number, number + 1))
        name = f"{split.name}-{number:05d}-of-{_SHARDS:05d}.parquet"
        data = parquet_rows(rows[first:last], SINGLE if is_single else MULTI)
        write_file(folder / kind / "data" / name, data)
    return marks


def draw_session_image(edition: CragMMEdition, session: Session) -> SessionImage:
    """As glasses take it, or the photograph at an address, which is in no index."""
    species = session.entry.entity.species
    if session.egocentric:
        size = edition.worn
        image, region = egocentric_image(species, session.quality, session.picture, size)
        return SessionImage(encode_jpeg(image), size, region)
    side = edition.worn[0]
    image = reference_image(species, session.picture, side)
    alone = replace(view_showing(species, "", session.picture), leaf=False, blades=0)
    organism = [replace(shape, part="organism") for shape in compose_view(species, alone)]
    found = part_map(organism, side)[0].getbbox()
    return SessionImage(encode_jpeg(image), (side, side), found or (0, 0, side, side))


def _pictured(session: Session, asked: SessionImage, images: Path) -> SessionWithImage:
    if session.egocentric:
        return SessionWithImage(session, asked.data, "")
    url = f"{SITE}/pictures/{session.session_id}.jpg"
    write_file(images / cached_image_name(url), asked.data)
    return SessionWithImage(session, b"", url)


def _marks(session: Session, asked: SessionImage) -> dict[str, Json]:
    """Interaction → marks; the entity is the one that the picture shows."""
    found: dict[str, Json] = {}
    for name, turn in zip(session.interaction_ids, session.turns, strict=True):
        found[name] = {
            "entity": session.entry.entity.name,
            "popularity": session.entry.popularity,
            "needs_history": turn.needs_history,
            "reference_query": turn.search_query,
            "region": list(asked.region),
            "image_size": list(asked.size),
        }
    return found


def session_folders(folder: Path) -> Sequence[Path]:
    """The folders that hold rows and pictures."""
    kinds = [folder / kind for kind in (SINGLE_TURN, MULTI_TURN)]
    return [*kinds, images_folder(kinds[0])]
