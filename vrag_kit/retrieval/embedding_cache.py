"""Embeds a corpus once: a document is encoded only when its vector is not on disk.

A document has a vector if a shard in the encoder's folder holds its id and version (of an image its
file's size and time, of a text its hash). A changed document is embedded again, and another
encoder, or another option of one, has another folder. A finished search is read back before that
(`dense`).

Missing documents are embedded shard by shard; a killed process loses the shard that it was at. A
process waits while another one embeds the same part of a corpus.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import compress, islice
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import pandas as pd
from joblib import cpu_count
from tqdm import tqdm

from vrag_kit.config import Entry
from vrag_kit.errors import VragError
from vrag_kit.files import lock_folder
from vrag_kit.log import logger, progress
from vrag_kit.retrieval import shards
from vrag_kit.retrieval.encoders.base import Encoder, Prepared, validate_embeddings
from vrag_kit.retrieval.encoders.custom import CustomEncoder
from vrag_kit.retrieval.shards import Embeddings, documents_folder, embeddings_folder
from vrag_kit.types import Document

SHARD = 2048
"""Documents per shard, which is the most that an interruption can lose."""
BATCH = 64
"""Documents that are encoded at once."""
_AHEAD = 2
"""Batches that are prepared while one is encoded."""
Item = TypeVar("Item")


class ShardPart(NamedTuple):
    """Part `number` of `of` parts, counted from 1: one shard out of every `of`."""

    number: int
    of: int


WHOLE = ShardPart(1, 1)


class PlannedEmbedding(NamedTuple):
    """Documents to embed, and the retriever that would embed them."""

    entry: Entry | CustomEncoder
    documents: Collection[Document]
    root: Path | str
    """The folder of cached embeddings."""
    device: str


def embed_documents(
    encoder: Encoder, documents: Iterable[Document], root: Path | str
) -> Embeddings:
    """Embed the documents that are not on disk yet; return the vectors of all `documents`.

    Threads decode images ahead of the encoder. Only ids and vector locations are in memory. Raises
    `VragError` when there are no documents, two have one id, one changes meanwhile, an image is
    damaged, a vector is NaN, zero or (for a normalized encoder) not of unit length, a file cannot
    be opened, or the disk is full. Finished shards are kept in every case, but damaged ones are
    removed.
    """
    documents = documents if isinstance(documents, Collection) else list(documents)
    ids, keys = document_keys(encoder, documents)
    if len(repeated := ids[ids.duplicated()]):
        raise VragError(f"found two documents {repeated[0]!r}; expected each `doc_id` once.")
    paths, stored = _embed(encoder, documents, keys, root, WHOLE)
    rows = _positions(stored, keys)
    if len(missing := np.flatnonzero(rows < 0)):
        name = ids[missing[0]]
        raise VragError(
            f"{len(missing):,} documents changed meanwhile, such as {name!r}. Search again."
        )
    return Embeddings(ids, rows, paths)


def embed_part(
    encoder: Encoder, documents: Collection[Document], root: Path | str, part: ShardPart
) -> None:
    """Embed the documents of one part that are not on disk yet.

    Parts may overlap, run concurrently, fail and be repeated: a shard that is made twice is one
    shard. Raises as `embed_documents` does.
    """
    _, keys = document_keys(encoder, documents)
    _embed(encoder, documents, keys, root, part)


def document_keys(encoder: Encoder, documents: Collection[Document]) -> tuple[pd.Index, np.ndarray]:
    """Returns the ids of documents, and the keys under which their vectors are stored: a hash of
    each id and version, 16 bytes, shape (n,).
    """
    keys = bytearray()

    def ids() -> Iterator[str]:
        for document in documents:
            keys.extend(_key(document.doc_id, encoder.modalities.stamp(document)))
            yield document.doc_id

    return pd.Index(np.fromiter(ids(), object), dtype=object), np.frombuffer(keys, "S16")


def _key(doc_id: str, version: str) -> bytes:
    both = f"{doc_id}\0{version}".encode(errors="surrogatepass")
    return hashlib.blake2b(both, digest_size=16).digest()


def _positions(hashes: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Returns the position of each wanted hash, int64, shape (m,); −1 for a missing one."""
    if not len(hashes):
        return np.full(len(wanted), -1)
    order = np.argsort(hashes, kind="stable")
    at = np.searchsorted(hashes, wanted, side="right", sorter=order) - 1
    return np.where(hashes[order[at]] == wanted, order[at], -1)


def _read_stored(folder: Path) -> tuple[list[Path], np.ndarray]:
    """Returns a folder's shards, and the keys of their rows, 16 bytes, shape (n,). Vectors are
    verified; damaged shards are removed.
    """
    paths: list[Path] = []
    keys = bytearray()
    for path in shards.list_shards(folder):
        if (index := shards.read_index(path)) is not None:
            paths.append(path)
            keys += b"".join(map(_key, index["doc_ids"], index["versions"]))
    return paths, np.frombuffer(keys, "S16")


def _embed(
    encoder: Encoder,
    documents: Collection[Document],
    keys: np.ndarray,
    root: Path | str,
    part: ShardPart,
) -> tuple[list[Path], np.ndarray]:
    """Embed the documents of a part that have no vector; returns what is stored then, as
    `_read_stored`.
    """
    if not documents:
        raise VragError("the corpus is empty: nothing to embed. Check annotations and images.")
    folder = documents_folder(encoder, root)
    mine = np.arange(len(documents)) // SHARD % part.of == part.number - 1
    new = 0
    try:
        shards.write_manifest(embeddings_folder(encoder, root), encoder)
        stored = _read_stored(folder)
        if (mine & (_positions(stored[1], keys) < 0)).any():
            name = f".{part.number}-of-{part.of}.lock"
            with lock_folder(folder, name=name):
                missing = mine & (_positions(_read_stored(folder)[1], keys) < 0)
                new = int(missing.sum())
                with progress(None, f"embedding with {encoder.name}", new, "documents") as bar:
                    for some in batched(compress(documents, missing), SHARD):
                        _write_shard(encoder, some, folder, bar)
            stored = _read_stored(folder)
    except OSError as error:
        raise VragError(
            f"{error.filename or folder}: embeddings cannot be stored or read"
            f" ({error.strerror or error}). Finished shards are kept."
        ) from error
    reused = int(mine.sum()) - new
    logger.info(f"embeddings of {encoder.name}: {reused:,} from disk, {new:,} new")
    return stored


def _write_shard(encoder: Encoder, documents: Sequence[Document], folder: Path, bar: tqdm) -> None:
    ids = [document.doc_id for document in documents]
    versions = [encoder.modalities.stamp(document) for document in documents]
    vectors = []
    for number, prepared in enumerate(batched(_prepare_ahead(encoder, documents), BATCH)):
        vectors.append(encoder.encode_documents(prepared))
        validate_embeddings(vectors[-1], ids[number * BATCH :], encoder)
        bar.update(len(prepared))
    shards.write_shard(folder, ids, versions, np.concatenate(vectors))


def _prepare_ahead(encoder: Encoder, documents: Sequence[Document]) -> Iterator[Prepared]:
    """Yields each prepared document in order; threads are up to `_AHEAD` batches ahead."""
    with ThreadPoolExecutor(cpu_count()) as pool:
        submit = (pool.submit(encoder.prepare, document) for document in documents)
        pending = deque(islice(submit, _AHEAD * BATCH))
        try:
            while pending:
                yield pending.popleft().result()
                pending.extend(islice(submit, 1))
        finally:
            pool.shutdown(cancel_futures=True)


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yields items in lists of `size`; the last one may be shorter."""
    left = iter(items)
    while batch := list(islice(left, size)):
        yield batch
