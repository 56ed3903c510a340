"""Shards: the files that hold vectors, and reading them.

    <root>/<encoder>-<fingerprint>/
        manifest.json          the encoder, its prompts, and versions of libraries
        shard-<hash>.npy       vectors, float32, shape (rows, d)
        shard-<hash>.json.gz   id, version and content hash of each row, the encoder, and the
                               checksum of the vectors; written last, it completes the shard
        queries/shard-*        vectors of queries with an image
        runs/                  finished searches (`dense`)

Encoders that differ only on the query side share a folder of document vectors. A shard is named by
a hash of its ids and versions: one that is written twice, even concurrently, is one shard. Gzip's
checksum protects the index. A damaged shard is set aside as *.damaged.
"""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.log import logger
from vrag_kit.retrieval.encoders.base import (
    Encoder,
    InvalidRows,
    find_invalid_rows,
    library_versions,
)
from vrag_kit.string_index import StringIndex

DAMAGED = "shard-*.damaged"
"""Pattern of the files of damaged shards."""
INDEX = ".json.gz"
_DAMAGE = ValueError, EOFError, zlib.error, FileNotFoundError
_OPEN = 16
"""Shards held open at most: there may be more than a process may hold open."""


def embeddings_folder(encoder: Encoder, root: Path | str) -> Path:
    """Returns the folder below `root` of everything that this encoder alone has made."""
    return Path(root) / f"{encoder.name}-{encoder.fingerprint[:12]}"


def documents_folder(encoder: Encoder, root: Path | str) -> Path:
    """Returns the folder of the encoder's document vectors."""
    return Path(root) / f"{encoder.document_key.name}-{encoder.document_key.fingerprint[:12]}"


def write_manifest(folder: Path, encoder: Encoder) -> None:
    """Writes the manifest of `folder`, unless it exists. A change of the libraries' versions is
    logged once; vectors are reused all the same.
    """
    path = folder / "manifest.json"
    versions = library_versions()
    try:
        before = json.loads(path.read_text(encoding="utf-8"))["versions"]
    except (OSError, ValueError, KeyError):  # missing or damaged
        before = {}
    if before == versions:
        return
    if before:
        changed = sorted(name for name in versions if before.get(name) != versions[name])
        words = [f"{name} {before.get(name)} → {versions[name]}" for name in changed]
        logger.warning(
            f"{folder}: since its first vectors, {', '.join(words)}. They are reused; remove the"
            " folder to embed everything again."
        )
    manifest = {
        "encoder": encoder.name,
        "fingerprint": encoder.fingerprint,
        "normalized": encoder.normalized,
        "dtype": "float32",
        "prompts": dict(encoder.prompts),
        "modalities": asdict(encoder.modalities),
        "documents": encoder.document_key._asdict(),
        "versions": versions,
    }
    write_file(path, json.dumps(manifest, indent=2, ensure_ascii=False))


class ShardIndex(NamedTuple):
    """The rows of a shard."""

    doc_ids: list[str]
    versions: list[str]
    """Versions of the rows' documents, which change whenever the encoded content may have."""
    contents: list[str]
    """Hashes of the encoded content, 32 hexadecimal digits; "" where unknown."""
    dim: int
    """Number of components of a vector."""
    encoder: str
    """Fingerprint of the encoder."""
    crc32: int
    """Checksum of the file of vectors."""


def pack(content: object) -> bytes:
    """Returns `content` as gzipped JSON, the same bytes each time."""
    return zlib.compress(json.dumps(content).encode(), wbits=31)


def unpack(content: bytes) -> Any:
    """Returns what was packed. Raises `ValueError` or `zlib.error` for changed bytes."""
    return json.loads(zlib.decompress(content, wbits=31))


def shard_path(folder: Path, doc_ids: Sequence[str], versions: Sequence[str]) -> Path:
    """Returns the path of the shard of these documents, without a suffix."""
    key = json.dumps([list(doc_ids), list(versions)])
    return folder / f"shard-{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def has_shard(shard: Path) -> bool:
    """Returns whether a shard is complete."""
    return shard.with_suffix(INDEX).is_file()


def list_shards(folder: Path) -> list[Path]:
    """Returns the paths of a folder's shards, without suffixes, sorted by name."""
    return sorted(path.with_suffix("").with_suffix("") for path in folder.glob(f"shard-*{INDEX}"))


def write_shard(
    folder: Path,
    doc_ids: Sequence[str],
    versions: Sequence[str],
    vectors: np.ndarray,
    encoder: str,
    contents: Sequence[str] | None = None,
) -> Path:
    """Writes vectors, float32, shape (n, d), as a shard of `folder`; returns its path without a
    suffix. `versions` are `encoder.modalities.stamp(document)`, `encoder` is the fingerprint of
    what made the vectors, and `contents` are content hashes, "" where unknown. Raises `OSError`.
    """
    shard = shard_path(folder, doc_ids, versions)
    file = io.BytesIO()
    np.save(file, vectors, allow_pickle=False)
    crc32 = zlib.crc32(file.getbuffer())
    contents = [""] * len(doc_ids) if contents is None else contents
    index = ShardIndex(
        list(doc_ids), list(versions), list(contents), vectors.shape[1], encoder, crc32
    )
    write_file(shard.with_suffix(".npy"), file.getvalue())
    write_file(shard.with_suffix(INDEX), pack(index._asdict()))
    return shard


def read_index(shard: Path) -> ShardIndex | None:
    """Returns the rows of a shard; None for a damaged one, which is set aside. The vectors are not
    read: see `is_intact`. Raises `VragError` for a file that exists but cannot be opened.
    """
    with _setting_aside(shard):
        return _read_index(shard)
    return None


def is_intact(shard: Path, encoder: Encoder) -> bool:
    """Returns whether a shard's vectors match their checksum; damaged ones are set aside. Each
    version of a file is read once.

    Raises `VragError` for document vectors of another encoder, for those that are NaN, zero or (of
    a normalized encoder) not of unit length, and as `read_index` does.
    """
    with _setting_aside(shard):
        expected, found = encoder.document_key.fingerprint, _verify(shard, _file_versions(shard))
        if found != expected:
            raise VragError(
                f"{shard}.npy: the encoder of these vectors is {found[:12]}; expected"
                f" {expected[:12]}. Move the shard to the folder of its encoder."
            )
        wrong = _find_invalid(shard, _file_versions(shard), encoder.normalized)
        if wrong is not None:
            doc_id = _read_index(shard).doc_ids[wrong.row]
            raise VragError(
                f"{shard}.npy: the embedding of {doc_id!r} has {wrong}. Remove this shard, then"
                " search again."
            )
        return True
    return False


def open_vectors(shard: Path) -> np.ndarray:
    """Returns a shard's vectors as a memory map, float32, shape (rows, d). The file is open as long
    as the array lives. Raises `ValueError` where the checksum differs.
    """
    _verify(shard, _file_versions(shard))
    vectors: np.ndarray = np.load(shard.with_suffix(".npy"), mmap_mode="r", allow_pickle=False)
    return vectors.view(np.ndarray)


def _read_index(shard: Path) -> ShardIndex:
    return ShardIndex(**unpack(shard.with_suffix(INDEX).read_bytes()))


def _file_versions(shard: Path) -> tuple[tuple[int, int, int], ...]:
    """Size, modification time and inode of both files, the same until one is written."""
    stats = (shard.with_suffix(suffix).stat() for suffix in (".npy", INDEX))
    return tuple((stat.st_size, stat.st_mtime_ns, stat.st_ino) for stat in stats)


@cache
def _verify(shard: Path, file_versions: object) -> str:
    """Returns the fingerprint of a shard's encoder; raises `ValueError` for damaged vectors."""
    index = _read_index(shard)
    found = 0
    with shard.with_suffix(".npy").open("rb") as file:  # a bad sector of a map would be a signal
        while block := file.read(1 << 22):
            found = zlib.crc32(block, found)
    if found != index.crc32:
        raise ValueError("its vectors are not those that were written: the checksum differs")
    return index.encoder


@cache
def _find_invalid(shard: Path, file_versions: object, normalized: bool) -> InvalidRows | None:
    return find_invalid_rows(open_vectors(shard), normalized)


@contextmanager
def _setting_aside(shard: Path) -> Iterator[None]:
    """Set aside a shard that turns out to be damaged."""
    try:
        yield
    except _DAMAGE as error:
        files = [file for file in map(shard.with_suffix, (INDEX, ".npy")) if file.exists()]
        try:
            for file in files:
                file.replace(file.with_name(f"{file.name}.damaged"))
        except FileNotFoundError:
            return  # another process was faster
        except OSError as refused:
            raise VragError(
                f"{shard}.npy: damaged shard ({error}), which cannot be set aside"
                f" ({refused.strerror}). Remove it, or make the folder writable."
            ) from error
        logger.info(
            f"{shard}.npy: damaged shard ({error}), set aside as *.damaged; its documents are"
            " embedded again"
        )
    except OSError as error:
        raise VragError(
            f"{error.filename or shard}: this shard of embeddings exists, but cannot be opened"
            f" ({error.strerror or error}). Check its rights, the disk and the number of open"
            " files, then search again."
        ) from error


class Embeddings:
    """Vectors of a corpus, read on demand; only ids and vector locations are in memory."""

    def __init__(
        self,
        folder: Path,
        ids: StringIndex,
        shards: Sequence[str],
        shard: np.ndarray,
        row: np.ndarray,
        dim: int,
    ) -> None:
        """`ids` are in corpus order; the vector of each is a row, int32, of a shard, the int32
        number of a name in `shards`, in `folder`, and has `dim` components.
        """
        self.folder = folder
        self.ids = ids
        self.dim = dim
        self._shards = shards
        self._shard = shard
        self._row = row
        self._open = lru_cache(_OPEN)(self._open_shard)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def doc_ids(self) -> tuple[str, ...]:
        """Ids of all documents, in corpus order."""
        return tuple(self.ids)

    def positions(self, doc_ids: Sequence[str]) -> np.ndarray:
        """Returns the position of each document in the corpus, int64, shape (n,).

        Raises `VragError` for a document that was not embedded.
        """
        found = self.ids.get_indexer(doc_ids)
        if len(missing := np.flatnonzero(found < 0)):
            raise VragError(
                f"{len(missing)} documents were not embedded, the first is"
                f" {doc_ids[missing[0]]!r}. Embed the whole corpus first."
            )
        return found

    def vectors(self, doc_ids: Sequence[str]) -> np.ndarray:
        """Returns the vectors of documents, float32, shape (n, d), in the order of `doc_ids`.

        Raises `VragError` for a document that was not embedded, and for a file that cannot be read.
        """
        return self.rows(self.positions(doc_ids))

    def rows(self, positions: np.ndarray) -> np.ndarray:
        """Returns the vectors at some positions, float32, shape (n, d). Consecutive rows of one
        shard are returned as they are on disk. Raises `VragError` for a file that cannot be read.
        """
        shard = self._shard[positions]
        if len(shard) and (shard == shard[0]).all():
            return self._open(int(shard[0]))[_as_slice(self._row[positions])]
        found = np.empty((len(positions), self.dim), np.float32)
        order = np.argsort(shard, kind="stable")
        for part in np.split(order, np.flatnonzero(np.diff(shard[order])) + 1):
            if len(part):
                rows = self._row[positions[part]]
                found[_as_slice(part)] = self._open(int(shard[part[0]]))[_as_slice(rows)]
        return found

    def in_disk_order(self, positions: np.ndarray) -> np.ndarray:
        """Returns the positions in the order of their vectors on disk."""
        return positions[np.lexsort((self._row[positions], self._shard[positions]))]

    def _open_shard(self, number: int) -> np.ndarray:
        shard = self.folder / self._shards[number]
        try:
            return open_vectors(shard)
        except (OSError, ValueError, zlib.error) as error:
            raise VragError(
                f"{shard}.npy: the embeddings cannot be read ({error}). Search again, which"
                " verifies each shard."
            ) from error


def _as_slice(numbers: np.ndarray) -> slice | np.ndarray:
    """The same as a slice, where the numbers are consecutive."""
    first, last = int(numbers[0]), int(numbers[0]) + len(numbers)
    return slice(first, last) if (numbers == np.arange(first, last)).all() else numbers
