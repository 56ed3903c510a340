"""Embeds a corpus once: a document is encoded only when its vector is not on disk.

Why nothing was embedded again: a shard in the encoder's folder has the document's id and version
(of an image its file's size and time, of a text its hash) or, where these differ, the hash of its
content. So a copied or touched image is not embedded again, a changed one is, and another encoder,
or another option of one, has another folder. A finished search is read back before that (`dense`).

Missing documents are embedded shard by shard, each under a lock. Several processes, also on several
machines, share the work; a killed one loses the shard that it was at.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import compress, islice
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from filelock import FileLock, Timeout
from tqdm import tqdm

from vrag_kit.config import Entry
from vrag_kit.errors import VragError
from vrag_kit.log import logger, progress
from vrag_kit.processes import available_cores
from vrag_kit.retrieval import shards
from vrag_kit.retrieval.encoders.base import Encoder, Prepared, validate_embeddings
from vrag_kit.retrieval.encoders.custom import CustomEncoder
from vrag_kit.retrieval.shards import Embeddings, documents_folder, embeddings_folder
from vrag_kit.string_index import StringIndex
from vrag_kit.types import Document

SHARD = 2048
"""Documents per shard, which is the most that an interruption can lose."""
BATCH = 64
"""Documents that are encoded at once."""
_AHEAD = 2
"""Batches that are prepared while one is encoded."""
Item = TypeVar("Item")
Result = TypeVar("Result")


class ShardPart(NamedTuple):
    """Part `number` of `of` parts, counted from 1: one shard out of every `of`."""

    number: int
    of: int

    def __str__(self) -> str:
        return f", part {self.number}/{self.of}" if self.of > 1 else ""


WHOLE = ShardPart(1, 1)


class DocumentKeys(NamedTuple):
    """Ids of documents, and the keys of their vectors."""

    ids: StringIndex
    keys: np.ndarray
    """A hash of each id and version, 16 bytes, shape (n,)."""


def embed_documents(
    encoder: Encoder, documents: Iterable[Document], root: Path | str
) -> Embeddings:
    """Embed the documents that are not on disk yet; return the vectors of all `documents`.

    Threads decode images ahead of the encoder. A document that changes while it is embedded is
    reported, and embedded again next time. Only ids and vector locations are in memory. Raises
    `VragError` when there are no documents, two have one id, an image is damaged, a vector is NaN,
    zero or (for a normalized encoder) not of unit length, a file cannot be opened, or the disk is
    full. Finished shards are kept in every case, but damaged ones are set aside.
    """
    documents = documents if isinstance(documents, Collection) else list(documents)
    keys, folder = document_keys(encoder, documents), documents_folder(encoder, root)
    repeated = np.flatnonzero(keys.ids.first_positions() != np.arange(len(keys.ids)))
    if len(repeated):
        name = keys.ids.take(repeated[:1])[0]
        raise VragError(f"found two documents {name!r}; expected each `doc_id` once.")
    _embed(encoder, documents, keys, root, WHOLE)
    stored = _read_stored(folder, encoder)
    rows = _Lookup(stored.keys).find(keys.keys)
    if len(missing := np.flatnonzero(rows < 0)):
        name = keys.ids.take(missing[:1])[0]
        raise VragError(
            f"{len(missing):,} documents changed meanwhile, such as {name!r}. Search again."
        )
    return Embeddings(keys.ids, rows, stored.shards, stored.counts, stored.dim)


def embed_part(
    encoder: Encoder, documents: Collection[Document], root: Path | str, part: ShardPart
) -> None:
    """Embed the documents of one part that are not on disk yet.

    Parts may overlap, run concurrently, fail and be repeated: a shard that is made twice is one
    shard. Raises as `embed_documents` does.
    """
    _embed(encoder, documents, document_keys(encoder, documents), root, part)


def document_keys(encoder: Encoder, documents: Collection[Document]) -> DocumentKeys:
    """Returns the keys under which document vectors are stored."""
    keys = bytearray()

    def ids() -> Iterator[str]:
        for document in documents:
            keys.extend(_key(document.doc_id, encoder.modalities.stamp(document)))
            yield document.doc_id

    return DocumentKeys(StringIndex(ids()), np.frombuffer(keys, "S16"))


def _key(doc_id: str, version: str) -> bytes:
    both = f"{doc_id}\0{version}".encode(errors="surrogatepass")
    return hashlib.blake2b(both, digest_size=16).digest()


class _Lookup:
    """Finds hashes of 16 bytes among others."""

    def __init__(self, hashes: np.ndarray) -> None:
        self._order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._order]

    def find(self, wanted: np.ndarray) -> np.ndarray:
        """Returns the position of each hash, int64, shape (m,); −1 for a missing one."""
        if not len(self._hashes):
            return np.full(len(wanted), -1)
        at = np.searchsorted(self._hashes, wanted, side="right") - 1
        return np.where(self._hashes[at] == wanted, self._order[at], -1)


class _Stored(NamedTuple):
    """The index of a folder's vectors, whose rows are counted through all shards."""

    shards: list[Path]
    counts: list[int]
    dim: int
    keys: np.ndarray
    """Keys of the rows, 16 bytes, shape (n,)."""
    contents: np.ndarray
    """Hashes of the encoded content, 16 bytes, shape (n,); zero where unknown."""


def _read_stored(folder: Path, encoder: Encoder) -> _Stored:
    """Read the index of a folder's vectors, which are verified; damaged shards are set aside."""
    paths: list[Path] = []
    counts: list[int] = []
    keys = bytearray()
    contents = bytearray()
    dim = 0
    for path in shards.list_shards(folder):
        if (index := shards.read_index(path, encoder)) is not None:
            paths.append(path)
            counts.append(len(index.doc_ids))
            keys += b"".join(map(_key, index.doc_ids, index.versions))
            contents += bytes.fromhex("".join(content or "0" * 32 for content in index.contents))
            dim = index.dim
    return _Stored(paths, counts, dim, np.frombuffer(keys, "S16"), np.frombuffer(contents, "S16"))


def _embed(
    encoder: Encoder,
    documents: Collection[Document],
    keys: DocumentKeys,
    root: Path | str,
    part: ShardPart,
) -> None:
    """Embed the documents of a part that have no vector."""
    if not documents:
        raise VragError("the corpus is empty: nothing to embed. Check annotations and images.")
    folder = documents_folder(encoder, root)
    mine = np.arange(len(documents)) // SHARD % part.of == part.number - 1
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shards.write_manifest(embeddings_folder(encoder, root), encoder)
        stored = _read_stored(folder, encoder)
        missing = mine & (_Lookup(stored.keys).find(keys.keys) < 0)
        job = _Job(encoder, folder, stored)
        if missing.any():
            job.embed(compress(documents, missing), int(missing.sum()))
    except OSError as error:
        raise VragError(
            f"{folder}: embeddings cannot be stored ({error.strerror or error}). Free space or"
            " choose another `cache_dir`; finished shards are kept."
        ) from error
    count = -(-len(documents) // SHARD)
    only = f" (there are {count:,} shards)" if part.number > count else ""
    reused = int(mine.sum()) - job.new
    logger.info(f"embeddings of {encoder.name}{part}: {reused:,} from disk, {job.new:,} new{only}")
    if job.changed:
        logger.warning(
            f"{len(job.changed):,} documents changed while they were embedded, the first is"
            f" {job.changed[0]!r}. Search again, which embeds them again."
        )


class _Ready(NamedTuple):
    """A document that can be encoded, or the stored vector of the same content."""

    doc_id: str
    content: str
    vector: np.ndarray | None
    prepared: Prepared


class _Job:
    """Embeds documents into shards of a folder."""

    def __init__(self, encoder: Encoder, folder: Path, stored: _Stored) -> None:
        self._encoder = encoder
        self._folder = folder
        self._contents = _Lookup(stored.contents)
        rows = np.arange(sum(stored.counts))
        self._stored = Embeddings(StringIndex(()), rows, *stored[:3])
        self.new = 0
        """Number of documents that were encoded."""
        self.changed: list[str] = []
        """Documents that changed meanwhile: their vectors may be of either version."""

    def embed(self, documents: Iterable[Document], total: int) -> None:
        """Make every shard, or wait until another process has made it."""
        with progress(f"embedding with {self._encoder.name}", total, "documents") as bar:
            shards_of = batched(documents, SHARD)
            waiting = [some for some in shards_of if not self._make_shard(some, bar, timeout=0)]
            for some in waiting:
                logger.info(f"waiting: another process is embedding in {self._folder}")
                self._make_shard(some, bar, timeout=-1)

    def _make_shard(self, documents: Sequence[Document], bar: tqdm, timeout: int) -> bool:
        """Make a shard unless it exists; returns false if another process holds its lock."""
        ids = [document.doc_id for document in documents]
        versions = [self._encoder.modalities.stamp(document) for document in documents]
        shard = shards.shard_path(self._folder, ids, versions)
        lock = FileLock(self._folder / f".{shard.name}.lock")
        try:
            with lock.acquire(timeout=timeout):
                if not shards.has_shard(shard):
                    self._write_shard(documents, ids, versions, bar)
                Path(lock.lock_file).unlink(missing_ok=True)
        except Timeout:
            return False
        return True

    def _write_shard(
        self, documents: Sequence[Document], ids: list[str], versions: list[str], bar: tqdm
    ) -> None:
        contents: list[str] = []
        vectors: list[np.ndarray] = []
        ready = prefetch(self._prepare, documents, available_cores(), ahead=_AHEAD * BATCH)
        for batch in batched(ready, BATCH):
            if new := [each for each in batch if each.vector is None]:
                encoded = self._encoder.encode_documents([each.prepared for each in new])
                validate_embeddings(encoded, [each.doc_id for each in new], self._encoder)
                rows = iter(encoded)
            contents += [each.content for each in batch]
            vectors += [next(rows) if each.vector is None else each.vector for each in batch]
            self.new += len(new)
            bar.update(len(batch))
        for number, document in enumerate(documents):
            if self._encoder.modalities.stamp(document) != versions[number]:
                contents[number] = ""
                self.changed.append(document.doc_id)
        fingerprint = self._encoder.document_key.fingerprint
        shards.write_shard(self._folder, ids, versions, np.stack(vectors), fingerprint, contents)

    def _prepare(self, document: Document) -> _Ready:
        content = self._encoder.modalities.content(document, self._encoder.name)
        found = self._contents.find(np.array([bytes.fromhex(content)]))
        if found[0] >= 0:
            vector = self._stored.rows(found)[0].copy()
            return _Ready(document.doc_id, content, vector, None)
        return _Ready(document.doc_id, content, None, self._encoder.prepare(document))


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yields items in lists of `size`; the last one may be shorter."""
    left = iter(items)
    while batch := list(islice(left, size)):
        yield batch


def prefetch(
    prepare: Callable[[Item], Result], items: Iterable[Item], workers: int, ahead: int
) -> Iterator[Result]:
    """Yields `prepare(item)` of each item in order; threads are up to `ahead` items ahead."""
    pending: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for item in items:
                pending.append(pool.submit(prepare, item))
                if len(pending) > ahead:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def folder_status(
    folder: Path, corpora: Sequence[DocumentKeys], encoder: Encoder | None = None
) -> tuple[str, int]:
    """Returns a line on the vectors in `folder`, and how many documents of some corpora have none.

    Corpora may share documents. Stale vectors are of another version of a document. With `encoder`,
    vectors are verified by checksum, and damaged shards are set aside.
    """
    wanted = np.unique(np.concatenate([np.empty(0, "S16"), *(corpus.keys for corpus in corpora)]))
    found = np.zeros(len(wanted), bool)
    stale = others = 0
    size = 0
    for path in shards.list_shards(folder):
        if (index := shards.read_index(path, encoder)) is None:
            continue
        keys = np.array(list(map(_key, index.doc_ids, index.versions)), "S16")
        found |= np.isin(wanted, keys)
        rest = list(compress(index.doc_ids, ~np.isin(keys, wanted)))
        old = np.any([corpus.ids.get_indexer(rest) >= 0 for corpus in corpora], axis=0).sum()
        stale += old
        others += len(rest) - old
        size += len(keys) * index.dim * 4
    fingerprint = folder.name.rpartition("-")[2]
    name = folder.name.removesuffix(f"-{fingerprint}")
    vectors = f"{others:,} vectors"
    if corpora:
        vectors = f"{found.sum():,} of {len(wanted):,} documents; {stale:,} stale, {others:,} of"
        vectors += " other documents"
    line = f"{name}, fingerprint {fingerprint}: {vectors}; {size / 2**20:,.1f} MB in {folder}"
    return line, int((~found).sum())


def describe_damaged_shards(root: Path) -> str:
    """Returns a message on the damaged shards that were set aside; "" for none."""
    files = list(root.rglob(shards.DAMAGED))
    if not files:
        return ""
    count = len({file.with_name(file.name.partition(".")[0]) for file in files})
    size = sum(file.stat().st_size for file in files) / 2**20
    return (
        f"{count:,} damaged shards were set aside as *.damaged in {root}, {size:,.1f} MB:"
        f" remove them (find {root} -name '{shards.DAMAGED}' -delete)"
    )


class PlannedEmbedding(NamedTuple):
    """Documents to embed, and the retriever that would embed them."""

    entry: Entry | CustomEncoder
    documents: Collection[Document]
    root: Path | str
    """The folder of cached embeddings."""
    device: str
