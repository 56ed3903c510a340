"""Embeddings on disk: each document is embedded once, an interrupted run goes on, and
nothing wrong is kept.

<root>/<encoder>-<fingerprint>/manifest.json       encoder, fingerprint, normalized, number type, prompts
<root>/<encoder>-<fingerprint>/<shard>.npy         float32, shape (rows, d), memory-mapped when read
<root>/<encoder>-<fingerprint>/<shard>.json        doc_id and stamp of each row; written last, it makes the shard count
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from vrag_kit.errors import VragError
from vrag_kit.files import one_at_a_time, write_file
from vrag_kit.progress import track
from vrag_kit.retrieval.encoders import Encoder
from vrag_kit.types import Evidence

SHARD = 2048
"""Documents a shard: what an interruption can cost at most."""

Place = tuple[str, int]  # shard, row


@dataclass(frozen=True, slots=True, repr=False)
class Embeddings:
    """Vectors of a corpus, read from disk row by row."""

    folder: Path
    places: dict[str, Place]  # doc_id → where its vector is, in corpus order
    shards: dict[str, np.ndarray]  # memory-mapped

    @property
    def doc_ids(self) -> tuple[str, ...]:
        """All documents."""
        return tuple(self.places)

    def vectors(self, doc_ids: Sequence[str]) -> np.ndarray:
        """float32, shape (n, d), in the order of `doc_ids`; raises `VragError` for a
        document that was not embedded.
        """
        if missing := [doc_id for doc_id in doc_ids if doc_id not in self.places]:
            raise VragError(
                f"{len(missing)} documents were not embedded, the first is {missing[0]!r}. Embed"
                " the whole corpus first."
            )
        width = next(iter(self.shards.values())).shape[1]
        rows = np.empty((len(doc_ids), width), np.float32)
        for i, doc_id in enumerate(doc_ids):
            shard, row = self.places[doc_id]
            rows[i] = self.shards[shard][row]
        return rows

    def __repr__(self) -> str:
        return f"Embeddings({len(self.places):,} documents in {self.folder.name})"


def embed_documents(
    encoder: Encoder,
    documents: Iterable[Evidence],
    root: Path | str,
    *,
    batch_size: int = 64,
    workers: int | None = None,
) -> Embeddings:
    """Embed what is not on disk yet, and return the vectors of all `documents`.

    Pictures are decoded by `workers` threads (default: one a core) ahead of the
    encoder. A document is embedded again when its stamp changes. Raises `VragError`
    when there are no documents, a picture is damaged, a vector is NaN, zero or (for a
    normalized encoder) not of unit length, or the disk is full; finished shards are
    kept in every case.
    """
    documents = list(documents)
    if not documents:
        raise VragError(
            "the corpus is empty: there is nothing to embed. Check the annotations and the image"
            " folder."
        )
    folder = Path(root) / f"{encoder.name}-{encoder.fingerprint[:12]}"
    try:
        with one_at_a_time(folder, "embedding"):
            shards, known = _open_shards(folder)
            keys = [(document.doc_id, _stamp(document)) for document in documents]
            todo = [
                document for document, key in zip(documents, keys, strict=True) if key not in known
            ]
            if todo:
                manifest = {
                    "encoder": encoder.name,
                    "fingerprint": encoder.fingerprint,
                    "normalized": encoder.normalized,
                    "dtype": "float32",
                    "prompts": dict(encoder.prompts),
                }
                write_file(
                    folder / "manifest.json", json.dumps(manifest, indent=2, ensure_ascii=False)
                )
                _embed(encoder, todo, folder, batch_size, workers or os.cpu_count() or 1)
                shards, known = _open_shards(folder)
            print(
                f"embeddings of {encoder.name}: {len(documents) - len(todo):,} from disk,"
                f" {len(todo):,} new",
                flush=True,
            )
    except OSError as error:
        raise VragError(
            f"{folder}: embeddings cannot be stored ({error.strerror or error}). Free space or"
            " choose another `cache_dir`; finished shards are kept."
        ) from error
    return Embeddings(folder, {doc_id: known[doc_id, stamp] for doc_id, stamp in keys}, shards)


def _embed(
    encoder: Encoder, todo: list[Evidence], folder: Path, batch_size: int, workers: int
) -> None:
    batches = ahead(encoder.prepare, todo, batch_size, workers)
    done: list[Evidence] = []
    rows: list[np.ndarray] = []
    for documents, prepared in track(
        batches, f"embedding with {encoder.name}", len(todo), "documents", size=batch_size
    ):
        vectors = encoder.encode_documents(prepared)
        check_vectors(vectors, [document.doc_id for document in documents], encoder)
        done.extend(documents)
        rows.append(vectors)
        if len(done) >= SHARD or len(done) + batch_size > SHARD:
            _write_shard(folder, done, rows)
            done, rows = [], []
    if done:
        _write_shard(folder, done, rows)


def ahead(
    prepare: Callable[[Evidence], Any], documents: Sequence[Evidence], batch_size: int, workers: int
) -> Iterator[tuple[list[Evidence], list[Any]]]:
    """Batches of documents with what `prepare` made of them, prepared by threads while
    earlier batches are used.
    """
    with ThreadPoolExecutor(workers) as pool:
        pending: deque[tuple[list[Evidence], list[Future[Any]]]] = deque()
        batches = (
            list(documents[start : start + batch_size])
            for start in range(0, len(documents), batch_size)
        )
        try:
            while True:
                pending.extend(
                    (batch, [pool.submit(prepare, document) for document in batch])
                    for batch in islice(batches, 3 - len(pending))
                )
                if not pending:
                    return
                batch, futures = pending.popleft()
                yield batch, [future.result() for future in futures]
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def check_vectors(vectors: np.ndarray, names: Sequence[str], encoder: Encoder) -> None:
    """Raise `VragError` naming the first document or query whose vector is NaN,
    infinite, zero, or not of unit length where it should be.
    """
    if vectors.shape[0] != len(names) or vectors.dtype != np.float32:
        raise VragError(
            f"{encoder.name} returned {vectors.shape} {vectors.dtype} for {len(names)} inputs;"
            " expected float32 with one row each."
        )
    lengths = np.linalg.norm(vectors, axis=1)
    wrong = (
        ~np.isfinite(lengths) | (lengths == 0) | (encoder.normalized & (np.abs(lengths - 1) > 1e-3))
    )
    if wrong.any():
        first = int(np.argmax(wrong))
        raise VragError(
            f"{encoder.name}: the embedding of {names[first]!r} has length {lengths[first]:.4g},"
            f" expected {'1' if encoder.normalized else 'a finite number above 0'}"
            f" ({int(wrong.sum())} such rows in this batch). Half precision can overflow: try"
            " float32; else look at the picture or text."
        )


def _stamp(document: Evidence) -> str:
    return (
        document.image.stamp
        if document.image is not None
        else hashlib.sha256((document.text or "").encode()).hexdigest()
    )


def _open_shards(folder: Path) -> tuple[dict[str, np.ndarray], dict[tuple[str, str], Place]]:
    shards: dict[str, np.ndarray] = {}
    known: dict[tuple[str, str], Place] = {}
    for index in sorted(folder.glob("shard-*.json")):
        try:
            rows = json.loads(index.read_text(encoding="utf-8"))["rows"]
            vectors = np.load(index.with_suffix(".npy"), mmap_mode="r", allow_pickle=False)
            if len(vectors) != len(rows):
                raise ValueError(f"{len(vectors)} vectors for {len(rows)} documents")
        except (OSError, ValueError, KeyError) as error:
            print(
                f"{index.with_suffix('.npy')}: damaged shard ({error}), removed; its documents are"
                " embedded again",
                flush=True,
            )
            index.unlink()
            index.with_suffix(".npy").unlink(missing_ok=True)
            continue
        shards[index.stem] = vectors
        known.update(
            {(doc_id, stamp): (index.stem, row) for row, (doc_id, stamp) in enumerate(rows)}
        )
    return shards, known


def _write_shard(folder: Path, documents: Sequence[Evidence], rows: Sequence[np.ndarray]) -> None:
    shard = folder / f"shard-{secrets.token_hex(6)}"
    vectors = io.BytesIO()
    np.save(vectors, np.concatenate(rows), allow_pickle=False)
    write_file(shard.with_suffix(".npy"), vectors.getvalue())
    write_file(
        shard.with_suffix(".json"),
        json.dumps({"rows": [(document.doc_id, _stamp(document)) for document in documents]}),
    )
