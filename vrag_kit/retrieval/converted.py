"""Exact search in an index converted by `chroma.py`: published vectors, queries encoded here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from vrag_kit.dry_run import current_dry_run
from vrag_kit.errors import VragError
from vrag_kit.files import safe_join
from vrag_kit.names import StringIndex
from vrag_kit.options import Entry, read_entry
from vrag_kit.plain import Json
from vrag_kit.retrieval.dense import FlatRetriever
from vrag_kit.retrieval.encoders.loading import OPTIONS, open_encoder
from vrag_kit.retrieval.services import Index, IndexService, page_of_chunk, with_query_modality
from vrag_kit.retrieval.shards import Embeddings, embeddings_folder
from vrag_kit.types import DocId, Document


def chroma_service(
    folder: Path | str,
    documents: Mapping[DocId, Document],
    entry: Entry,
    cache_dir: Path | str,
    *,
    device: str = "cpu",
) -> IndexService:
    """Returns a search over the converted index in `folder`, by a query's image or text.
    `documents` were read from the same folder; text search is over chunks, as in `text_service`.

    `entry` is the retriever (`load_encoder`) that made the vectors; vectors of query images are
    cached in `cache_dir`. The score is the cosine. Raises `VragError` for a folder without vectors
    or with damaged ones, and for an index of another encoder or of other documents.
    """
    index = _read(Path(folder).expanduser())
    _check(index, documents, entry)
    encoder = open_encoder(with_query_modality(index.by, entry), device=device)

    def make_index() -> Index:
        known = _embeddings(index)
        own = embeddings_folder(encoder, cache_dir)
        return FlatRetriever(encoder, known, lambda query_id: None, query_folder=own).search

    told = json.dumps([encoder.fingerprint, index.told])
    return IndexService(
        name=encoder.name,
        fingerprint=hashlib.sha256(told.encode()).hexdigest(),
        reads=index.by,
        corpus=documents,
        make_index=make_index,
        document_of=index.document_of,
    )


@dataclass(frozen=True, slots=True)
class _Converted:
    """The contents of a manifest."""

    folder: Path
    by: str
    encoder: str
    dim: int
    documents: Path
    """The file of documents, in the parent folder; `sha256` is its hash."""
    sha256: str
    shards: dict[Path, int]
    """Number of rows of each file."""
    checksums: dict[str, str]
    """SHA-256 of each file, and of the ids where it is known."""
    told: str

    def pieces(self) -> list[str]:
        """Returns the id of each vector."""
        path = self.folder / "pieces.txt"
        try:
            self.hold(path)
            return path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise _damaged(path, str(error)) from error

    def hold(self, path: Path) -> None:
        """Raise `VragError` for a file that fails its checksum, or cannot be read."""
        stated = self.checksums.get(path.name)
        try:
            whole = stated is None or hashlib.sha256(path.read_bytes()).hexdigest() == stated
        except OSError as error:
            raise _damaged(path, str(error)) from error
        if not whole:
            raise _damaged(path, "its SHA-256 is not that in manifest.json")

    def document_of(self, piece: str) -> DocId:
        """Returns the document that a vector belongs to."""
        return page_of_chunk(piece) if self.by == "text" else piece


def _read(folder: Path) -> _Converted:
    path = folder / "vectors" / "manifest.json"
    try:
        text = path.read_text(encoding="utf-8")
        told = json.loads(text)
        if told["format"] != 1 or told["by"] not in ("image", "text"):
            raise ValueError(f"format {told['format']}, searched by {told['by']}")
        return _Converted(
            folder=path.parent,
            by=told["by"],
            encoder=str(told["encoder"]),
            dim=int(told["dim"]),
            documents=safe_join(folder, str(told["documents"]["file"]), str(path)),
            sha256=str(told["documents"]["sha256"]),
            shards=dict(_shard(path, each) for each in told["shards"]),
            checksums={
                Path(each["file"]).name: str(each["sha256"])
                for each in [*told["shards"], *told.get("pieces", [])]
            },
            told=text,
        )
    except FileNotFoundError as error:
        raise VragError(
            f"{path}: not there, so that {folder} holds no converted index. Write one by"
            " vrag_kit/retrieval/chroma.py, whose first lines say how."
        ) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(path, str(error)) from error


def _shard(manifest: Path, entry: Json) -> tuple[Path, int]:
    return safe_join(manifest.parent, str(entry["file"]), str(manifest)), int(entry["rows"])


def _check(index: _Converted, documents: Mapping[DocId, Document], entry: Entry) -> None:
    """Raise `VragError` when vectors, documents and encoder do not belong together."""
    spec = read_entry(entry, OPTIONS, "retriever")[0]
    another = PurePosixPath(spec).name != PurePosixPath(index.encoder).name
    if another and not current_dry_run():  # there, another may stand in for one not here
        raise VragError(
            f"{index.folder}: {index.encoder} made these vectors, but the retriever is {spec!r}."
            " Name that one (a folder of its name will do)."
        )
    path = index.documents
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise _damaged(path, str(error)) from error
    if found != index.sha256:
        raise VragError(
            f"{path}: not the file that was written with the vectors beside it: of another split,"
            " or edited. Convert the index again."
        )
    strange = {index.document_of(piece) for piece in index.pieces()} ^ documents.keys()
    if strange:
        raise VragError(
            f"{index.folder}: {len(strange):,} documents, such as {min(strange)!r}, are in the"
            f" index or were given, but not both. Read the documents from {path}."
        )


def _embeddings(index: _Converted) -> Embeddings:
    """Returns the vector of each piece."""
    pieces = index.pieces()
    for path, count in index.shards.items():
        try:
            shape = np.load(path, mmap_mode="r", allow_pickle=False).shape
        except (OSError, ValueError, EOFError) as error:
            raise _damaged(path, str(error)) from error
        if shape != (count, index.dim):
            raise _damaged(path, f"shape {shape}, expected {(count, index.dim)}")
        index.hold(path)
    counts = list(index.shards.values())
    if sum(counts) != len(set(pieces)):
        raise _damaged(index.folder, f"{sum(counts)} vectors for {len(set(pieces))} ids")
    row = [np.arange(count) for count in counts]
    return Embeddings(
        index.folder,
        StringIndex(pieces),
        [path.stem for path in index.shards],
        np.repeat(np.arange(len(counts)), counts),
        np.concatenate(row),
        index.dim,
    )


def _damaged(path: Path, found: str) -> VragError:
    return VragError(f"{path}: cannot be used ({found}). Convert the index again.")
