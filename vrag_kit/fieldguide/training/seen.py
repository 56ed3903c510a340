"""What a vision tower sees in the pictures of the `stock`, computed once and kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from vrag_kit.fieldguide.training.exercises import Exercise
from vrag_kit.fieldguide.training.shards import seen_file
from vrag_kit.fieldguide.training.stock import SHARD, first_pictures


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
