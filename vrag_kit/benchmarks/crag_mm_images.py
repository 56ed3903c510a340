"""Image files of CRAG-MM: images stored in rows, written once, and images with a URL, which
`vrag fetch crag-mm` fetches.
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
    image_bytes,
    parse_session,
    read_label_names,
    read_rows,
)
from vrag_kit.benchmarks.images import SUFFIXES
from vrag_kit.errors import VragError
from vrag_kit.files import lock_folder, write_file
from vrag_kit.types import Json, LazyImage

_SESSIONS = Path(__file__).with_name("crag_mm_sessions.json")
_ROWS = "rows/"
_RULE = 1
"""Counts the ways in which this module, or what it writes, has changed."""


@dataclass(frozen=True, slots=True)
class CachedSession:
    """A conversation and the name of its image file."""

    session: CragSession
    picture: str  # below the folder of pictures; "" where the row tells of none


@dataclass(frozen=True, slots=True)
class ResizedImage:
    """An image resized to fixed dimensions, whatever its shape; implements `LazyImage`."""

    image: LazyImage
    size: tuple[int, int]  # width and height in pixels

    @property
    def where(self) -> str:
        """The `where` of the original image."""
        return self.image.where

    @property
    def stamp(self) -> str:
        """The stamp of the original image, followed by the size."""
        return f"{self.image.stamp}-{self.size[0]}x{self.size[1]}"

    def data(self) -> bytes:
        """Return the resized image as a PNG file."""
        file = io.BytesIO()
        self.open().save(file, "PNG")
        return file.getvalue()

    def open(self) -> Image.Image:
        """Return the resized image, RGB (bicubic)."""
        return self.image.open().resize(self.size, Image.Resampling.BICUBIC)


@cache
def author_overrides() -> tuple[frozenset[str], dict[str, str]]:
    """Return (sessions that the authors drop, session → URL template for its image)."""
    told = json.loads(_SESSIONS.read_text(encoding="utf-8"))
    return frozenset(told["dropped"]), dict(told["fetched_elsewhere"])


def image_url(session: CragSession) -> str:
    """Return the URL of a session's image, which for one session is the web archive's, as in the
    authors' code; "" for an image stored in the row.
    """
    elsewhere = author_overrides()[1].get(session.session_id)
    if elsewhere and session.image_url:
        return elsewhere.format(url=session.image_url)
    return session.image_url


def cached_image_name(url: str) -> str:
    """Return an image's file name below the image folder: "url/" and a hash of the whole URL. URLs
    that differ only after the "?" give different images.
    """
    return f"url/{hashlib.sha256(url.encode()).hexdigest()[:40]}{_suffix(urlsplit(url).path)}"


def images_folder(rows: Path | str) -> Path:
    """Return the folder "images" next to the rows', shared by single- and multi-turn data."""
    return Path(rows).expanduser().absolute().parent / "images"


def all_sessions(shards: Sequence[Path], images: Path) -> list[CachedSession]:
    """Read the conversations of all shards, in order, and cache them in `images`/.read.

    Images stored in rows are written to `images`/rows once. Raises `VragError` at the first
    unusable row, for a duplicate session or interaction, and for an unwritable folder.
    """
    note = images / ".read" / f"{_digest(shards)}.json"
    if note.is_file():
        kept = [_from_json(each) for each in json.loads(note.read_text(encoding="utf-8"))]
        written = [images / each.picture for each in kept if each.picture.startswith(_ROWS)]
        if all(path.is_file() for path in written):
            return kept
    try:
        with lock_folder(images, "reading CRAG-MM"):
            kept = _read(shards, images)
            write_file(note, json.dumps([asdict(each) for each in kept], ensure_ascii=False))
    except OSError as error:
        raise VragError(
            f"{images}: cannot be written ({error.strerror}); the pictures that lie in rows are"
            " kept there. Name another folder by `images`."
        ) from error
    return kept


class DuplicateIds:
    """Detects sessions and interactions that occur more than once."""

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}

    def check(self, session: CragSession) -> None:
        """Raise `VragError`, naming both places, if an id of the session occurred before."""
        names = [f"session {session.session_id}"]
        names += [f"interaction {turn.interaction_id}" for turn in session.turns]
        for name in names:
            before = self._seen.setdefault(name, session.where)
            if before != session.where:
                raise VragError(
                    f"{session.where}: {name} came before, in {before}; expected each once. Is a"
                    " shard there twice? `vrag check` lists all."
                )


def _read(shards: Sequence[Path], images: Path) -> list[CachedSession]:
    once = DuplicateIds()
    kept = []
    for shard in shards:
        names = read_label_names(shard)
        for where, row in read_rows(shard):
            try:
                session = parse_session(row, where, names)
            except VragError:
                if row.get("session_id") in author_overrides()[0]:
                    continue  # nobody misses it
                raise
            once.check(session)
            kept.append(CachedSession(session, _picture(row, session, images)))
    return kept


def _picture(row: Json, session: CragSession, images: Path) -> str:
    """The file of a row's picture, which is written where it lies in the row."""
    data = image_bytes(row)
    if not data:
        url = image_url(session)
        return cached_image_name(url) if url else ""
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


def _from_json(kept: Json) -> CachedSession:
    session = kept["session"]
    turns = tuple(CragTurn(**turn) for turn in session["turns"])
    return CachedSession(CragSession(**{**session, "turns": turns}), cast(str, kept["picture"]))
