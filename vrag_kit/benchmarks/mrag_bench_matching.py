"""Match each image of a row to a file of the corpus, by its bytes or else by its pixels.
Unmatched images are written to separate files; the matching is cached.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from vrag_kit.benchmarks.images import decode, list_images, open_image, pixel_hash
from vrag_kit.benchmarks.mrag_bench_rows import MragRow, parse_row, read_shard_rows
from vrag_kit.errors import VragError
from vrag_kit.files import lock_folder, write_file
from vrag_kit.log import logger, track
from vrag_kit.types import Json

_ROWS = "rows.json"
_RULE = 1
"""Counts the ways in which this module, or what it writes, has changed."""


@dataclass(frozen=True, slots=True)
class MatchedRow:
    """A row whose images are names of files, in the corpus or in `MatchedRows.written`."""

    where: str
    texts: dict[str, str]
    image: str
    gt_images: tuple[str, ...]
    retrieved_images: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MatchedRows:
    """All rows, with counts of how their images were matched to the corpus."""

    rows: tuple[MatchedRow, ...]
    by_bytes: int  # different pictures of the rows that are a file of the corpus
    by_pixels: int  # … that are so after decoding only
    written: tuple[str, ...]  # files written for those that are in no file of the corpus
    copies: tuple[str, ...]  # files of the corpus with the bytes of an earlier one

    def __str__(self) -> str:
        return (
            f"{self.by_bytes:,} pictures of the rows are files of the corpus, {self.by_pixels:,}"
            f" by their pixels, {len(self.written):,} are not in it"
        )


def all_rows(shards: Iterable[Path]) -> Iterator[MragRow]:
    """Yield the rows of all shards with their images, only a few in memory at a time.

    Raises `VragError` at the first unusable row, and for a duplicate id.
    """
    seen: dict[str, str] = {}
    for path in shards:
        for where, values in read_shard_rows(path):
            row = parse_row(values, where)
            if row.id in seen:
                raise VragError(
                    f"{row.where}: id {row.id!r} came before, in {seen[row.id]}; expected each"
                    " once. Is a shard there twice? `vrag check` lists all."
                )
            seen[row.id] = where
            yield row


def match_cache_dir(shards: Sequence[Path], corpus: Path | None, cache_dir: Path) -> Path:
    """Return the cache folder for the matching of these files, which differs if one of them
    changes.
    """
    digest = hashlib.sha256(f"{_RULE} {corpus and corpus.absolute()}".encode())
    for path in [*shards, *(list_images(corpus) if corpus else [])]:
        stat = path.stat()
        digest.update(f"{path.name}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
    return cache_dir / digest.hexdigest()[:32]


def match_rows(shards: Sequence[Path], corpus: Path | None, place: Path) -> MatchedRows:
    """Run `match` over all rows and cache its result in `place`, a `match_cache_dir`."""
    found = _read(place)
    if found is not None:
        return found
    with lock_folder(place, "matching MRAG-Bench's pictures"):
        found = match(all_rows(shards), corpus, place)
        write_file(place / _ROWS, json.dumps(asdict(found)))
    logger.info(f"MRAG-Bench: {found}")
    return found


def match(rows: Iterable[MragRow], corpus: Path | None, store: Path) -> MatchedRows:
    """Match the images of `rows` to the corpus, and write the unmatched ones to `store`;
    without a corpus, all.

    Raises `VragError`, naming the row, for an image that cannot be decoded.
    """
    pictures = _Pictures(corpus, store)
    matched = []
    for row in rows:
        gt_images = tuple(pictures.name(data, row.where) for data in row.gt_images)
        retrieved = tuple(pictures.name(data, row.where) for data in row.retrieved_images)
        image = pictures.name(row.image, row.where)
        matched.append(MatchedRow(row.where, dict(row.texts), image, gt_images, retrieved))
    shown = pictures.by_pixels()
    renamed = [_renamed(row, shown) for row in matched]
    written = tuple(name for name in pictures.loose if name not in shown)
    return MatchedRows(
        tuple(renamed), pictures.by_bytes, len(shown), written, tuple(pictures.copies)
    )


def _renamed(row: MatchedRow, names: dict[str, str]) -> MatchedRow:
    gt_images = tuple(names.get(name, name) for name in row.gt_images)
    retrieved = tuple(names.get(name, name) for name in row.retrieved_images)
    image = names.get(row.image, row.image)
    return MatchedRow(row.where, row.texts, image, gt_images, retrieved)


class _Pictures:
    """The pictures of rows, each looked for once; a corpus' files are hashed only where
    their size is that of a row's picture.
    """

    def __init__(self, corpus: Path | None, store: Path) -> None:
        self.loose: dict[str, tuple[int, int]] = {}  # file in the store → size, pixels
        self._shown: dict[str, str] = {}  # hash of pixels → file in the store
        self.copies: list[str] = []
        self.by_bytes = 0
        self._store = store
        self._files = list_images(corpus) if corpus else []
        self._named: dict[str, str] = {}  # digest of a row's picture → file
        self._hashed: dict[int, dict[str, str]] = {}  # size → digest → file
        self._of_size: dict[int, list[Path]] = defaultdict(list)
        for path in self._files:
            self._of_size[path.stat().st_size].append(path)

    def name(self, data: bytes, where: str) -> str:
        """The file of these bytes: one of the corpus, else one in the store."""
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self._named:
            if found := self._same_bytes(len(data)).get(digest):
                self.by_bytes += 1
                self._named[digest] = found
            else:
                self._named[digest] = self._write(data, digest, where)
        return self._named[digest]

    def by_pixels(self) -> dict[str, str]:
        """File in the store → the first file of the corpus that shows the same; these
        are removed from the store.
        """
        if not self._files or not self.loose:
            return {}
        sizes = set(self.loose.values())
        sizes |= {(height, width) for width, height in sizes}  # turned by EXIF
        shown: dict[str, str] = {}
        for path in track(self._files, "comparing pixels", len(self._files), "pictures"):
            data = path.read_bytes()
            if _size(data) in sizes and (digest := _pixels(data, path)):
                shown.setdefault(digest, path.name)
        found = {}
        for digest, name in self._shown.items():
            if digest in shown:
                found[name] = shown[digest]
                (self._store / name).unlink()
        return found

    def _same_bytes(self, size: int) -> dict[str, str]:
        """Digest → the first file of the corpus, for those of this size."""
        if size not in self._hashed:
            known: dict[str, str] = {}
            for path in self._of_size.get(size, ()):
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                if digest in known:
                    self.copies.append(path.name)
                known.setdefault(digest, path.name)
            self._hashed[size] = known
        return self._hashed[size]

    def _write(self, data: bytes, digest: str, where: str) -> str:
        picture = decode(data, where)
        pixels = pixel_hash(picture)
        if pixels in self._shown:
            return self._shown[pixels]
        with open_image(data, where) as header:
            kind = (header.format or "png").lower().replace("jpeg", "jpg").replace("mpo", "jpg")
        name = f"row-{digest[:16]}.{kind}"
        self.loose[name] = picture.size
        self._shown[pixels] = name
        write_file(self._store / name, data)
        return name


def _size(data: bytes) -> tuple[int, int] | None:
    try:
        with open_image(data, "") as header:
            return header.size
    except Exception:  # decoders raise what they like (see `decode`); `vrag check` names the file
        return None


def _pixels(data: bytes, path: Path) -> str:
    """Hash of a picture's pixels; "" for one that is damaged, which is nobody's match."""
    try:
        return pixel_hash(decode(data, str(path)))
    except VragError:
        return ""


def _stored(row: Json) -> MatchedRow:
    gt_images, retrieved = tuple(row["gt_images"]), tuple(row["retrieved_images"])
    return MatchedRow(row["where"], row["texts"], row["image"], gt_images, retrieved)


def _read(place: Path) -> MatchedRows | None:
    """What was matched before; None when there is nothing, or files of it are gone."""
    try:
        stated = json.loads((place / _ROWS).read_text(encoding="utf-8"))
        rows = tuple(_stored(row) for row in stated["rows"])
        counts = stated["by_bytes"], stated["by_pixels"]
        found = MatchedRows(rows, *counts, tuple(stated["written"]), tuple(stated["copies"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return found if all((place / name).is_file() for name in found.written) else None
