"""What a vision tower sees in the pictures of the `stock`, computed once and kept."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from vrag_kit.fieldguide.training.exercises import Exercise
from vrag_kit.fieldguide.training.stock import SHARD, first_pictures, shard_file
from vrag_kit.fieldguide.training.tower import seen_by
from vrag_kit.files import write_file


def see(tower: torch.nn.Module, shards: int, folder: Path) -> None:
    """Write what the tower sees in each file of the stock: float16, shape (pictures, 9,
    256).
    """
    for shard in range(shards):
        file = seen_file(folder, shard)
        if file.is_file():
            continue
        pixels = np.load(shard_file(folder, shard))
        content = io.BytesIO()
        np.save(content, seen_by(tower, pixels, at_once=128))
        write_file(file, content.getvalue())


def seen_file(folder: Path, shard: int) -> Path:
    """Where what the tower sees in a file of the stock lies."""
    return folder / f"seen-{shard:04d}.npy"


class Seen:
    """What the tower sees in the pictures of a stock's topics."""

    def __init__(self, seed: str, shards: int, folder: Path) -> None:
        self.files = [np.load(seen_file(folder, shard), mmap_mode="r") for shard in range(shards)]
        self.firsts = [first_pictures(seed, shard) for shard in range(shards)]

    def of(self, batch: Sequence[Exercise]) -> torch.Tensor | None:
        """float32, shape (pictures of all exercises, 9, 256); None without any."""
        rows = []
        for each in batch:
            shard, place = divmod(each.subject, SHARD)
            first = self.firsts[shard][place]
            if each.pictures:
                rows.append(self.files[shard][[first + i for i in each.pictures]])
        return torch.from_numpy(np.concatenate(rows)).float() if rows else None
