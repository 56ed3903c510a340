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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import compress, islice
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from filelock import FileLock, Timeout

from vrag_kit.config import Entry
from vrag_kit.dry_run import current_dry_run
from vrag_kit.errors import VragError
from vrag_kit.log import logger, progress
from vrag_kit.processes import available_cores
from vrag_kit.retrieval import shards
from vrag_kit.retrieval.encoders.base import DocumentKey, Encoder, Prepared, validate_embeddings
from vrag_kit.retrieval.encoders.custom import CustomEncoder
from vrag_kit.retrieval.shards import Embeddings, documents_folder, embeddings_folder
from vrag_kit.string_index import StringIndex
from vrag_kit.types import Document, Query

SHARD, QUERY_SHARD = 2048, 128
"""Documents and queries per shard, which is the most that an interruption can lose."""
BATCH = 64
"""Documents that are encoded at once."""
_PREFETCHED = 3
"""Batches in progress at most, including the one in use."""
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
    encoder: Encoder, documents: Iterable[Document], root: Path | str, *, shard_size: int = 0
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
    _embed(encoder, documents, keys, root, WHOLE, shard_size or SHARD)
    stored = _read_stored(folder)
    found = _Lookup(stored.keys).find(keys.keys)
    if len(missing := np.flatnonzero(found < 0)):
        raise VragError(
            f"{len(missing):,} documents changed before they could be embedded, the first is"
            f" {keys.ids.take(missing[:1])[0]!r}. Search again."
        )
    return Embeddings(
        folder, keys.ids, stored.shards, stored.shard[found], stored.row[found], stored.dim
    )


def embed_part(
    encoder: Encoder, documents: Collection[Document], root: Path | str, part: ShardPart
) -> None:
    """Embed the documents of one part that are not on disk yet.

    Parts may overlap, run concurrently, fail and be repeated: a shard that is made twice is one
    shard. Raises as `embed_documents` does.
    """
    _embed(encoder, documents, document_keys(encoder, documents), root, part, SHARD)


def query_vectors(encoder: Encoder, queries: Sequence[Query], folder: Path) -> np.ndarray:
    """Returns query vectors, float32, shape (n, d), in the order of `queries`, at least one.

    If the encoder encodes query images, they are cached in `folder`, the encoder's own
    (`embeddings_folder`), and computed again when the image or its question changes. Raises
    `VragError` as `validate_embeddings` does, naming a query.
    """
    if encoder.modalities.query == "text":
        vectors = encoder.encode_queries(queries)
        validate_embeddings(vectors, [query.query_id for query in queries], encoder)
        return vectors
    side = _QuerySide(encoder, {query.query_id: query for query in queries})
    documents = []
    for query in queries:
        text, image = encoder.modalities.of_query(query, encoder.name)
        documents.append(Document(doc_id=query.query_id, text=text, image=image))
    found = embed_documents(side, documents, folder, shard_size=QUERY_SHARD)
    return found.rows(np.arange(len(queries)))


class _QuerySide:
    """The query side of an encoder, as an encoder of documents."""

    def __init__(self, encoder: Encoder, queries: Mapping[str, Query]) -> None:
        self._queries = queries
        self.encode_queries = encoder.encode_queries
        self.name = f"{encoder.name}, queries"
        self.fingerprint = encoder.fingerprint
        self.document_key = DocumentKey("queries", encoder.fingerprint)
        self.normalized = encoder.normalized
        self.prompts = encoder.prompts
        self.modalities = replace(encoder.modalities, document=encoder.modalities.query)

    def prepare(self, document: Document) -> Query:
        return self._queries[document.doc_id]

    def encode_documents(self, prepared: Sequence[Prepared]) -> np.ndarray:
        return self.encode_queries(prepared)


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
    """The vectors of a folder, in 40 bytes for each."""

    shards: list[str]
    shard: np.ndarray
    row: np.ndarray
    dim: int
    keys: np.ndarray
    contents: np.ndarray
    """Hashes of the encoded content, 16 bytes, shape (n,); zero where unknown."""


def _read_stored(folder: Path) -> _Stored:
    """Read the index of a folder's vectors; damaged shards are set aside."""
    names: list[str] = []
    counts: list[int] = []
    keys = bytearray()
    contents = bytearray()
    dim = 0
    for path in shards.list_shards(folder):
        if (index := shards.read_index(path)) is not None:
            names.append(path.name)
            counts.append(len(index.doc_ids))
            keys += b"".join(map(_key, index.doc_ids, index.versions))
            contents += bytes.fromhex("".join(content or "0" * 32 for content in index.contents))
            dim = index.dim
    shard = np.repeat(np.arange(len(names), dtype=np.int32), counts)
    row = np.concatenate([np.empty(0, np.int32), *(np.arange(n, dtype=np.int32) for n in counts)])
    return _Stored(
        names, shard, row, dim, np.frombuffer(keys, "S16"), np.frombuffer(contents, "S16")
    )


def _read_verified(encoder: Encoder, folder: Path, keys: np.ndarray | None = None) -> _Stored:
    """Read the index of a folder's vectors, and verify its shards, or those that hold some keys,
    by their checksums.
    """
    while True:
        stored = _read_stored(folder)
        used = np.arange(len(stored.shards))
        if keys is not None:
            found = _Lookup(stored.keys).find(keys)
            used = np.unique(stored.shard[found[found >= 0]])
        paths = [folder / stored.shards[number] for number in used]
        if sum(shards.is_intact(path, encoder) for path in paths) == len(paths):
            return stored


def _embed(
    encoder: Encoder,
    documents: Collection[Document],
    keys: DocumentKeys,
    root: Path | str,
    part: ShardPart,
    size: int,
) -> None:
    """Embed the documents of a part that have no vector, in shards of `size`."""
    if not documents:
        raise VragError("the corpus is empty: nothing to embed. Check annotations and images.")
    folder = documents_folder(encoder, root)
    mine = np.arange(len(documents)) // size % part.of == part.number - 1
    with _catch_disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        shards.write_manifest(embeddings_folder(encoder, root), encoder)
        stored = _read_verified(encoder, folder, keys.keys[mine])
        missing = mine & (_Lookup(stored.keys).find(keys.keys) < 0)
        new, changed = 0, list[str]()
        if missing.any():
            job = _Job(encoder, folder, int(missing.sum()))
            job.embed(compress(documents, missing), size)
            new, changed = job.new, job.changed
    count = -(-len(documents) // size)
    only = f" (there are {count:,} shards)" if part.number > count else ""
    reused = int(mine.sum()) - new
    logger.info(f"embeddings of {encoder.name}{part}: {reused:,} from disk, {new:,} new{only}")
    if changed:
        logger.warning(
            f"{len(changed):,} documents changed while they were embedded, the first is"
            f" {changed[0]!r}. Search again, which embeds them again."
        )


@contextmanager
def _catch_disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise VragError(
            f"{folder}: embeddings cannot be stored ({error.strerror or error}). Free space or"
            " choose another `cache_dir`; finished shards are kept."
        ) from error


class _Ready(NamedTuple):
    """A document that can be encoded, or the stored vector of the same content."""

    content: str
    vector: np.ndarray | None
    prepared: Prepared


class _Job:
    """Embeds documents into shards of a folder."""

    def __init__(self, encoder: Encoder, folder: Path, total: int) -> None:
        self._encoder = encoder
        self._folder = folder
        stored = _read_verified(encoder, folder)
        self._contents = _Lookup(stored.contents)
        self._vectors = Embeddings(folder, StringIndex(()), *stored[:4])
        self._bar = progress(f"embedding with {encoder.name}", total, "documents")
        self.new = 0
        """Number of documents that were encoded."""
        self.changed: list[str] = []
        """Documents that changed meanwhile: their vectors may be of either version."""

    def embed(self, documents: Iterable[Document], size: int) -> None:
        """Make every shard, or wait until another process has made it."""
        with self._bar:
            shards_of = batched(documents, size)
            waiting = [some for some in shards_of if not self._make_shard(some, timeout=0)]
            for some in waiting:
                logger.info(f"waiting: another process is embedding in {self._folder}")
                self._make_shard(some, timeout=-1)

    def _make_shard(self, documents: Sequence[Document], timeout: int) -> bool:
        """Make a shard unless it exists; returns false if another process holds its lock."""
        ids = [document.doc_id for document in documents]
        versions = [self._encoder.modalities.stamp(document) for document in documents]
        shard = shards.shard_path(self._folder, ids, versions)
        lock = FileLock(self._folder / f".{shard.name}.lock")
        try:
            lock.acquire(timeout=timeout)
        except Timeout:
            return False
        try:
            if not shards.has_shard(shard):
                self._embed(documents, ids, versions)
        finally:
            Path(lock.lock_file).unlink(missing_ok=True)
            lock.release()
        return True

    def _embed(
        self, documents: Sequence[Document], ids: Sequence[str], versions: Sequence[str]
    ) -> None:
        contents: list[str] = []
        vectors: list[np.ndarray] = []
        for batch in prefetch(self._prepare, batched(documents, BATCH), available_cores()):
            new = [
                number for number, each in enumerate(batch, len(contents)) if each.vector is None
            ]
            contents += [each.content for each in batch]
            if new:
                encoded = self._encoder.encode_documents(
                    [each.prepared for each in batch if each.vector is None]
                )
                validate_embeddings(encoded, [ids[number] for number in new], self._encoder)
                rows = iter(encoded)
            vectors += [next(rows) if each.vector is None else each.vector for each in batch]
            self.new += len(new)
            self._bar.update(len(batch))
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
            return _Ready(content, self._vectors.rows(found)[0].copy(), None)
        return _Ready(content, None, self._encoder.prepare(document))


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yields items in lists of `size`; the last one may be shorter."""
    left = iter(items)
    while batch := list(islice(left, size)):
        yield batch


def prefetch(
    prepare: Callable[[Item], Result], batches: Iterable[Sequence[Item]], workers: int
) -> Iterator[list[Result]]:
    """Yields the results of `prepare` batch by batch; threads prepare the next batches."""
    pending: deque[list[Future[Result]]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for batch in batches:
                pending.append([pool.submit(prepare, item) for item in batch])
                if len(pending) == _PREFETCHED:
                    yield [future.result() for future in pending.popleft()]
            while pending:
                yield [future.result() for future in pending.popleft()]
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
    if encoder is not None:
        _read_verified(encoder, folder, wanted)
    found = np.zeros(len(wanted), bool)
    stale = others = 0
    size = 0
    for index in filter(None, map(shards.read_index, shards.list_shards(folder))):
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
    count = len({file.with_name(file.name.partition(".")[0]) for file in files})
    size = sum(file.stat().st_size for file in files) / 2**20
    if not files:
        return ""
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


def note_planned_embedding(
    entry: Entry | CustomEncoder,
    documents: Collection[Document],
    root: Path | str,
    *,
    device: str,
) -> None:
    """Record a planned embedding in the current dry run, if there is one."""
    if (dry_run := current_dry_run()) is not None:
        dry_run.corpora.append(PlannedEmbedding(entry, documents, root, device))
