"""Embeddings on disk: each document is embedded once, and nothing wrong is kept.

    <root>/<encoder>-<fingerprint>/
        manifest.json    encoder, fingerprint, normalized, number type, prompts, what is
                         shown, what documents are known by, and the recipes of entries
                         that lead here
        queries/         shards of questions asked by their picture (`query_vectors`)
    <root>/<name>-<fingerprint of `Encoder.documents`>/
        <shard>.npy      float32, shape (rows, d)
        <shard>.json     doc_id and stamp of each row; written last, it makes the shard
                         count

The second is the first for an encoder that is asked as usual, and where the first has
shards, as all had once. Others that differ in questions alone share it with that one.

An interrupted run goes on from its last shard. A damaged shard is set aside as
<shard>.npy.damaged and <shard>.json.damaged, and its documents are embedded again.
"""

from __future__ import annotations

import io
import json
import secrets
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from vrag_kit.cores import cores
from vrag_kit.errors import VragError
from vrag_kit.files import one_at_a_time, write_file
from vrag_kit.progress import track
from vrag_kit.retrieval.encoders import Encoder, Prepared
from vrag_kit.types import Evidence

SHARD = 2048
"""Documents a shard: what an interruption can cost at most."""

Place = tuple[str, int]  # shard, row
Key = tuple[str, str]  # doc_id, stamp


@dataclass(frozen=True, slots=True, repr=False)
class Embeddings:
    """Vectors of a corpus, read from disk when they are asked for.

    Shards are opened one after another and closed again, so that there may be more of
    them than a process may hold open.
    """

    folder: Path
    places: dict[str, Place]
    """Where each document's vector is, in the order of the corpus."""
    dim: int
    """Number of components of a vector."""

    @property
    def doc_ids(self) -> tuple[str, ...]:
        """All documents."""
        return tuple(self.places)

    def vectors(self, doc_ids: Sequence[str]) -> np.ndarray:
        """float32, shape (n, d), in the order of `doc_ids`.

        Raises `VragError` for a document that was not embedded, and for a file that
        cannot be read.
        """
        if missing := [doc_id for doc_id in doc_ids if doc_id not in self.places]:
            raise VragError(
                f"{len(missing)} documents were not embedded, the first is {missing[0]!r}. Embed"
                " the whole corpus first."
            )
        wanted: dict[str, list[int]] = defaultdict(list)
        for position, doc_id in enumerate(doc_ids):
            wanted[self.places[doc_id][0]].append(position)
        found = np.empty((len(doc_ids), self.dim), np.float32)
        for shard, positions in wanted.items():
            rows = [self.places[doc_ids[position]][1] for position in positions]
            found[positions] = self._open(shard)[rows]
        return found

    def _open(self, shard: str) -> np.ndarray:
        path = self.folder / f"{shard}.npy"
        try:
            return _mapped(path)
        except (OSError, ValueError) as error:
            raise VragError(
                f"{path}: the embeddings cannot be read ({error}). Search again, which looks at"
                " each shard anew."
            ) from error

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
    encoder. A document is embedded again when its stamp changes; one that changed while
    it was embedded is named, and embedded again next time. Raises `VragError`
    when there are no documents, a picture is damaged, a vector is NaN, zero or (for a
    normalized encoder) not of unit length, a file cannot be opened, or the disk is
    full; finished shards are kept in every case.
    """
    documents = list(documents)
    if not documents:
        raise VragError(
            "the corpus is empty: there is nothing to embed. Check the annotations and the image"
            " folder."
        )
    folder = _documents_folder(encoder, root)
    keys = [(document.doc_id, encoder.shown.stamp(document)) for document in documents]
    try:
        with one_at_a_time(folder, "embedding"):
            known, dim = read_shards(folder)
            pairs = zip(documents, keys, strict=True)
            todo = [(document, key) for document, key in pairs if key not in known]
            if todo:
                if folder == embeddings_folder(encoder, root):
                    write_manifest(folder, encoder)
                _embed(encoder, todo, folder, batch_size, workers or cores())
                known, dim = read_shards(folder)
    except OSError as error:
        raise VragError(
            f"{folder}: embeddings cannot be stored ({error.strerror or error}). Free space or"
            " choose another `cache_dir`; finished shards are kept."
        ) from error
    print(
        f"embeddings of {encoder.name}: {len(documents) - len(todo):,} from disk,"
        f" {len(todo):,} new",
        flush=True,
    )
    places = {key[0]: known[key] for key in keys}
    return Embeddings(folder, places, dim)


def embeddings_folder(encoder: Encoder, root: Path | str) -> Path:
    """Where everything lies that `encoder` alone has made below `root`."""
    return Path(root) / f"{encoder.name}-{encoder.fingerprint[:12]}"


def _documents_folder(encoder: Encoder, root: Path | str) -> Path:
    """Where the vectors of its documents lie."""
    own = embeddings_folder(encoder, root)
    if any(own.glob("shard-*.json")):
        return own
    return Path(root) / f"{encoder.documents.name}-{encoder.documents.fingerprint[:12]}"


def write_manifest(folder: Path, encoder: Encoder, *, recipe: str | None = None) -> None:
    """Say in `folder` what made the embeddings there, and which recipes lead to it:
    those that stood there, and `recipe`.
    """
    path = folder / "manifest.json"
    try:
        recipes = set(json.loads(path.read_text(encoding="utf-8"))["recipes"])
    except (OSError, ValueError, KeyError, TypeError):
        recipes = set()
    if recipe is not None:
        recipes.add(recipe)
    manifest = {
        "encoder": encoder.name,
        "fingerprint": encoder.fingerprint,
        "normalized": encoder.normalized,
        "dtype": "float32",
        "prompts": dict(encoder.prompts),
        "shown": asdict(encoder.shown),
        "documents": encoder.documents._asdict(),
        "recipes": sorted(recipes),
    }
    write_file(path, json.dumps(manifest, indent=2, ensure_ascii=False))


def _embed(
    encoder: Encoder,
    todo: Sequence[tuple[Evidence, Key]],
    folder: Path,
    batch_size: int,
    workers: int,
) -> None:
    """Embed documents, each kept under its key, which was taken before it is read."""
    batches = ahead(encoder.prepare, [document for document, _ in todo], batch_size, workers)
    keys = (key for _, key in todo)
    done: list[Key] = []
    rows: list[np.ndarray] = []
    for documents, prepared in track(
        batches, f"embedding with {encoder.name}", len(todo), "documents", size=batch_size
    ):
        vectors = encoder.encode_documents(prepared)
        check_vectors(vectors, [document.doc_id for document in documents], encoder)
        done.extend(islice(keys, len(documents)))
        rows.append(vectors)
        if len(done) >= SHARD or len(done) + batch_size > SHARD:
            write_shard(folder, done, rows)
            done, rows = [], []
    if done:
        write_shard(folder, done, rows)
    _tell_changed(encoder, todo)


def _tell_changed(encoder: Encoder, embedded: Sequence[tuple[Evidence, Key]]) -> None:
    """Name what has another stamp than when it was to be read: its vector may be of
    either version, so that its old stamp stays.
    """
    changed = [key[0] for document, key in embedded if encoder.shown.stamp(document) != key[1]]
    if changed:
        print(
            f"{len(changed):,} documents changed while they were embedded, the first is"
            f" {changed[0]!r}; they are embedded again next time. Search again before you use"
            " these results.",
            flush=True,
        )


def ahead(
    prepare: Callable[[Evidence], Prepared],
    documents: Sequence[Evidence],
    batch_size: int,
    workers: int,
) -> Iterator[tuple[list[Evidence], list[Prepared]]]:
    """Batches of documents with what `prepare` made of them, prepared by threads while
    earlier batches are used.
    """
    with ThreadPoolExecutor(workers) as pool:
        pending: deque[tuple[list[Evidence], list[Future[Prepared]]]] = deque()
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
    wrong = ~np.isfinite(lengths) | (lengths == 0)
    if encoder.normalized:
        wrong |= np.abs(lengths - 1) > 1e-3
    if wrong.any():
        first = int(np.argmax(wrong))
        expected = "1" if encoder.normalized else "a finite number above 0"
        raise VragError(
            f"{encoder.name}: the embedding of {names[first]!r} has length {lengths[first]:.4g},"
            f" expected {expected} ({int(wrong.sum())} such rows in this batch). Half precision can"
            " overflow: try float32; else look at the picture or text."
        )


def read_shards(folder: Path) -> tuple[dict[Key, Place], int]:
    """Where each vector is, and its number of components (0 without any); damaged
    shards are set aside.

    Raises `VragError` for a file that is there but cannot be opened: that says nothing
    about what is in it.
    """
    known: dict[Key, Place] = {}
    dim = 0
    for index in sorted(folder.glob("shard-*.json")):
        try:
            rows, width = _read_index(index)
        except (ValueError, KeyError, TypeError, EOFError, FileNotFoundError) as error:
            _set_aside(index, error)
            continue
        except OSError as error:
            raise VragError(
                f"{error.filename or index}: this shard of embeddings is there, but cannot be"
                f" opened ({error.strerror or error}). Nothing was changed; check its rights, the"
                " disk and the number of files that may be open, then search again."
            ) from error
        dim = width
        known.update({key: (index.stem, row) for row, key in enumerate(rows)})
    return known, dim


def _read_index(index: Path) -> tuple[list[Key], int]:
    """(doc_id, stamp) of each row of a shard, and its width; raises what a damaged file
    raises.
    """
    rows = json.loads(index.read_text(encoding="utf-8"))["rows"]
    count, width = _mapped(index.with_suffix(".npy")).shape
    if count != len(rows):
        raise ValueError(f"{count} vectors for {len(rows)} documents")
    return [(str(doc_id), str(stamp)) for doc_id, stamp in rows], int(width)


def _mapped(path: Path) -> np.ndarray:
    """A shard's vectors; the file is open as long as the array lives."""
    vectors: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    return vectors


def _set_aside(index: Path, error: Exception) -> None:
    vectors = index.with_suffix(".npy")
    for path in (index, vectors):
        if path.exists():
            path.rename(path.with_name(f"{path.name}.damaged"))
    print(
        f"{vectors}: damaged shard ({error}), set aside as *.damaged; its documents are embedded"
        " again",
        flush=True,
    )


def write_shard(folder: Path, keys: Sequence[Key], rows: Sequence[np.ndarray]) -> None:
    """Add rows, each an array of some of them, under their keys."""
    shard = folder / f"shard-{secrets.token_hex(6)}"
    vectors = io.BytesIO()
    np.save(vectors, np.concatenate(rows), allow_pickle=False)
    write_file(shard.with_suffix(".npy"), vectors.getvalue())
    write_file(shard.with_suffix(".json"), json.dumps({"rows": keys}))
