"""What is there of a corpus' embeddings, and what else lies beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vrag_kit.retrieval.keeping import Columns
from vrag_kit.retrieval.kept import read_kept
from vrag_kit.retrieval.shards import list_shards


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


def stored_of(folder: Path, corpora: Sequence[Columns]) -> Stored:
    """What `folder` holds of some corpora, which may share documents."""
    kept = read_kept(folder)
    none = np.empty((0, 2), np.uint64)
    pairs = [np.column_stack([each.doc_ids, each.stamps]) for each in corpora]
    wanted = np.unique(np.concatenate([none, *pairs]), axis=0)
    found = kept.find(wanted[:, 0], wanted[:, 1])
    rest = np.ones(len(kept.doc_ids), bool)
    rest[found[found >= 0]] = False
    old = rest & np.isin(kept.doc_ids, wanted[:, 0])
    return Stored(
        folder=folder,
        wanted=len(wanted),
        there=int((found >= 0).sum()),
        stale=int(old.sum()),
        others=int((rest & ~old).sum()),
        bytes=len(kept.doc_ids) * kept.dim * 4,
    )


def folders_below(root: Path) -> list[Path]:
    """The folders that hold vectors of documents."""
    return [folder for folder in sorted(root.glob("*/")) if list_shards(folder)]
