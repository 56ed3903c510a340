"""CRAG-MM's pictures as files: those that lie in rows, written once, and those that have
an address, which `vrag fetch crag-mm` fetches.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import cast
from urllib.parse import urlsplit

from PIL import Image

from vrag_kit.benchmarks.crag_mm_rows import (
    CragSession,
    CragTurn,
    names_in,
    parse_session,
    picture_in,
    read_rows,
)
from vrag_kit.benchmarks.images import SUFFIXES
from vrag_kit.errors import VragError
from vrag_kit.files import one_at_a_time, write_file
from vrag_kit.plain import Json
from vrag_kit.types import LazyImage

_SESSIONS = Path(__file__).with_name("crag_mm_sessions.json")
_ROWS = "rows/"
_RULE = 1
"""Counts the ways in which this module, or what it writes, has changed."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A conversation, and the file of its picture."""

    session: CragSession
    picture: str  # below the folder of pictures; "" where the row tells of none


@dataclass(frozen=True, slots=True)
class Squeezed:
    """A picture brought to one size, whatever its shape; implements `LazyImage`."""

    image: LazyImage
    size: tuple[int, int]  # width and height in pixels

    @property
    def where(self) -> str:
        """Names the other picture."""
        return self.image.where

    @property
    def stamp(self) -> str:
        """Changes with the other picture's, and the size."""
        return f"{self.image.stamp}-{self.size[0]}x{self.size[1]}"

    def data(self) -> bytes:
        """The picture as a PNG file."""
        file = io.BytesIO()
        self.open().save(file, "PNG")
        return file.getvalue()

    def open(self) -> Image.Image:
        """The picture of that size, RGB (bicubic)."""
        return self.image.open().resize(self.size, Image.Resampling.BICUBIC)


@cache
def authors_choices() -> tuple[frozenset[str], dict[str, str]]:
    """(sessions that the authors drop, session → where they take its picture from)."""
    told = json.loads(_SESSIONS.read_text(encoding="utf-8"))
    return frozenset(told["dropped"]), dict(told["fetched_elsewhere"])


def picture_url(session: CragSession) -> str:
    """Where a session's picture is fetched: its address, but for the one session whose
    picture the authors take from an archive; "" for a picture that lies in the row.
    """
    elsewhere = authors_choices()[1].get(session.session_id)
    if elsewhere and session.image_url:
        return elsewhere.format(url=session.image_url)
    return session.image_url


def url_file(url: str) -> str:
    """The file of a picture below the folder of pictures: "url/" and a hash of the whole
    address, for addresses that differ only in what follows a "?" give different
    pictures.
    """
    return f"url/{hashlib.sha256(url.encode()).hexdigest()[:40]}{_suffix(urlsplit(url).path)}"


def images_folder(rows: Path | str) -> Path:
    """The folder "images" beside that of the rows: single- and multi-turn data share it."""
    return Path(rows).expanduser().absolute().parent / "images"


def all_sessions(shards: Sequence[Path], images: Path) -> list[Kept]:
    """The conversations of all shards, in order; pictures that lie in rows are written to
    `images`/rows once, and what was read is kept in `images`/.read.

    Raises `VragError` at the first row that cannot be used, for a session or an
    interaction that came before, and for a folder that cannot be written.
    """
    note = images / ".read" / f"{_digest(shards)}.json"
    if note.is_file():
        kept = [_from_json(each) for each in json.loads(note.read_text(encoding="utf-8"))]
        written = [images / each.picture for each in kept if each.picture.startswith(_ROWS)]
        if all(path.is_file() for path in written):
            return kept
    try:
        with one_at_a_time(images, "reading CRAG-MM"):
            kept = _read(shards, images)
            write_file(note, json.dumps([asdict(each) for each in kept], ensure_ascii=False))
    except OSError as error:
        raise VragError(
            f"{images}: cannot be written ({error.strerror}); the pictures that lie in rows are"
            " kept there. Name another folder by `images`."
        ) from error
    return kept


class Once:
    """Notices a session or an interaction that came before."""

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}

    def check(self, session: CragSession) -> None:
        """Raises `VragError`, naming both places."""
        names = [f"session {session.session_id}"]
        names += [f"interaction {turn.interaction_id}" for turn in session.turns]
        for name in names:
            before = self._seen.setdefault(name, session.where)
            if before != session.where:
                raise VragError(
                    f"{session.where}: {name} came before, in {before}; expected each once. Is a"
                    " shard there twice? `vrag check` lists all."
                )


def _read(shards: Sequence[Path], images: Path) -> list[Kept]:
    once = Once()
    kept = []
    for shard in shards:
        names = names_in(shard)
        for where, row in read_rows(shard):
            try:
                session = parse_session(row, where, names)
            except VragError:
                if row.get("session_id") in authors_choices()[0]:
                    continue  # nobody misses it
                raise
            once.check(session)
            kept.append(Kept(session, _picture(row, session, images)))
    return kept


def _picture(row: Json, session: CragSession, images: Path) -> str:
    """The file of a row's picture, which is written where it lies in the row."""
    data = picture_in(row)
    if not data:
        url = picture_url(session)
        return url_file(url) if url else ""
    suffix = _suffix(str(row["image"].get("path") or ""))
    name = f"{_ROWS}{hashlib.sha256(data).hexdigest()[:40]}{suffix}"
    path = images / name
    if not path.is_file() or path.stat().st_size != len(data):
        write_file(path, data)
    return name


def _suffix(name: str) -> str:
    suffix = PurePosixPath(name).suffix.lower()
    return suffix if suffix in SUFFIXES else ".jpg"


def _digest(shards: Sequence[Path]) -> str:
    """Changes as soon as one of the files does."""
    digest = hashlib.sha256(f"{_RULE}".encode())
    digest.update(_SESSIONS.read_bytes())
    for path in shards:
        stat = path.stat()
        digest.update(f"{path.absolute()} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:20]


def _from_json(kept: Json) -> Kept:
    session = kept["session"]
    turns = tuple(CragTurn(**turn) for turn in session["turns"])
    return Kept(CragSession(**{**session, "turns": turns}), cast(str, kept["picture"]))
