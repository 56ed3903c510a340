"""Status of stored embeddings: vectors of a corpus, stale ones, and those of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vrag_kit.retrieval.keeping import ItemKeys
from vrag_kit.retrieval.kept import read_stored_vectors, read_verified_vectors
from vrag_kit.retrieval.shards import DAMAGED, VectorSpace, list_shards


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingStatus:
    """Status of the vectors in one folder."""

    folder: Path
    wanted: int
    """Number of documents of the corpora."""
    there: int
    """Number of these documents that have a vector, by their stamps."""
    stale: int
    """Vectors of these documents with another stamp: changed, or moved."""
    others: int
    """Vectors of other documents."""
    bytes: int
    """Size of all vectors."""

    def __str__(self) -> str:
        fingerprint = self.folder.name.rpartition("-")[2]
        name = self.folder.name.removesuffix(f"-{fingerprint}")
        there = f"{self.others:,} vectors"
        if self.wanted:
            there = f"{self.there:,} of {self.wanted:,} documents"
            there += f"; {self.stale:,} stale, {self.others:,} of other documents"
        size = f"{self.bytes / 2**20:,.1f} MB in {self.folder}"
        return f"{name}, fingerprint {fingerprint}: {there}; {size}"


def folder_status(
    folder: Path, corpora: Sequence[ItemKeys], space: VectorSpace | None = None
) -> EmbeddingStatus:
    """Returns how many documents of some corpora have vectors in `folder`. Corpora may share
    documents. With `space`, vectors are verified by checksum, and damaged shards are set aside.
    """
    none = np.empty((0, 2), np.uint64)
    pairs = [np.column_stack([each.doc_ids, each.stamps]) for each in corpora]
    wanted = np.unique(np.concatenate([none, *pairs]), axis=0)
    doc_ids, stamps = wanted.T
    kept = (
        read_verified_vectors(folder, doc_ids, stamps, space)
        if space
        else read_stored_vectors(folder)
    )
    found = kept.find(doc_ids, stamps)
    rest = np.ones(len(kept.doc_ids), bool)
    rest[found[found >= 0]] = False
    old = rest & np.isin(kept.doc_ids, doc_ids)
    return EmbeddingStatus(
        folder=folder,
        wanted=len(wanted),
        there=int((found >= 0).sum()),
        stale=int(old.sum()),
        others=int((rest & ~old).sum()),
        bytes=len(kept.doc_ids) * kept.dim * 4,
    )


def describe_damaged_shards(root: Path) -> str:
    """Returns a message on the damaged shards that were set aside; "" for none."""
    files = list(root.rglob(DAMAGED))
    shards = {file.with_name(file.name.partition(".")[0]) for file in files}
    size = sum(file.stat().st_size for file in files) / 2**20
    if not files:
        return ""
    return (
        f"{len(shards):,} damaged shards were set aside as *.damaged in {root}, {size:,.1f} MB:"
        f" remove them (find {root} -name '{DAMAGED}' -delete)"
    )


def embedding_folders(root: Path) -> list[Path]:
    """Returns the folders below `root` that hold document vectors."""
    return [folder for folder in sorted(root.glob("*/")) if list_shards(folder)]
