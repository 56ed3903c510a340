"""Numbered files, each made once and kept: the pictures of a stock, which several processes
draw, and what a tower sees in them.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from torch import nn

from vrag_kit.fieldguide.training.tower import seen_by
from vrag_kit.files import write_file
from vrag_kit.processes import end_with_parent

WORKERS = 2
"""Processes that draw."""


def draw_shards(draw: Callable[[int], object], shards: int) -> None:
    """Have the first `shards` files drawn; `draw` leaves those that are there."""
    with ProcessPoolExecutor(WORKERS, initializer=end_with_parent) as pool:
        for done, _ in enumerate(pool.map(draw, range(shards)), start=1):
            if done % 10 == 0 or done == shards:
                print(f"drawn: {done} of {shards} files", flush=True)


def write_array(array: np.ndarray, file: Path) -> None:
    """Write an array as numpy stores it."""
    content = io.BytesIO()
    np.save(content, array)
    write_file(file, content.getvalue())


def seen_file(folder: Path, shard: int) -> Path:
    """Where what the tower sees in a file of the stock lies."""
    return folder / f"seen-{shard:04d}.npy"


def see_shards(
    tower: nn.Module, pixels: Callable[[int], np.ndarray], shards: int, folder: Path
) -> None:
    """Write what the tower sees in each file of a stock, unless it is there: float16,
    shape (pictures, places, 256). `pixels` reads a file's pictures: uint8, shape
    (pictures, height, width, 3).
    """
    for shard in range(shards):
        file = seen_file(folder, shard)
        if not file.is_file():
            write_array(seen_by(tower, pixels(shard)), file)
