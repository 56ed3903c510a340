"""What is there of a corpus' embeddings, and what else lies beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vrag_kit.retrieval.keeping import Columns
from vrag_kit.retrieval.kept import read_kept, read_whole
from vrag_kit.retrieval.shards import DAMAGED, VectorSpace, list_shards


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Vectors in one folder."""

    folder: Path
    wanted: int
    """Documents that are wanted …"""
    there: int
    """… and of how many of them there is a vector, by their stamps."""
    stale: int
    """Vectors of wanted documents as they were, or were elsewhere."""
    others: int
    """Vectors of other documents."""
    bytes: int
    """Of all vectors."""

    def __str__(self) -> str:
        fingerprint = self.folder.name.rpartition("-")[2]
        name = self.folder.name.removesuffix(f"-{fingerprint}")
        there = f"{self.others:,} vectors"
        if self.wanted:
            there = f"{self.there:,} of {self.wanted:,} documents"
            there += f"; {self.stale:,} stale, {self.others:,} of other documents"
        size = f"{self.bytes / 2**20:,.1f} MB in {self.folder}"
        return f"{name}, fingerprint {fingerprint}: {there}; {size}"


def stored_of(folder: Path, corpora: Sequence[Columns], space: VectorSpace | None = None) -> Stored:
    """What `folder` holds of some corpora, which may share documents; with `space`, the
    vectors of these are held against their checksums, and damaged shards are set aside.
    """
    none = np.empty((0, 2), np.uint64)
    pairs = [np.column_stack([each.doc_ids, each.stamps]) for each in corpora]
    wanted = np.unique(np.concatenate([none, *pairs]), axis=0)
    doc_ids, stamps = wanted.T
    kept = read_whole(folder, doc_ids, stamps, space) if space else read_kept(folder)
    found = kept.find(doc_ids, stamps)
    rest = np.ones(len(kept.doc_ids), bool)
    rest[found[found >= 0]] = False
    old = rest & np.isin(kept.doc_ids, doc_ids)
    return Stored(
        folder=folder,
        wanted=len(wanted),
        there=int((found >= 0).sum()),
        stale=int(old.sum()),
        others=int((rest & ~old).sum()),
        bytes=len(kept.doc_ids) * kept.dim * 4,
    )


def damaged_below(root: Path) -> str:
    """How many damaged shards were set aside, in words; "" for none."""
    files = list(root.rglob(DAMAGED))
    shards = {file.with_name(file.name.partition(".")[0]) for file in files}
    size = sum(file.stat().st_size for file in files) / 2**20
    if not files:
        return ""
    return (
        f"{len(shards):,} damaged shards were set aside as *.damaged in {root}, {size:,.1f} MB:"
        f" remove them (find {root} -name '{DAMAGED}' -delete)"
    )


def folders_below(root: Path) -> list[Path]:
    """The folders that hold vectors of documents."""
    return [folder for folder in sorted(root.glob("*/")) if list_shards(folder)]
