"""Progress of long work, the same in JupyterLab, under papermill and in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

Item = TypeVar("Item")
PAUSE = 10.0
"""Seconds before the first line, and between two."""


def progress(label: str, total: int, unit: str, *, start: int = 0) -> tqdm:
    """A bar of `total` units, of which `start` were done before, to be closed at the end.

    It is drawn now and then, to standard output: a log gets few lines, and none of work
    that is done at once.
    """
    return tqdm(
        desc=label,
        total=total,
        unit=f" {unit}",
        initial=start,
        mininterval=PAUSE,
        delay=PAUSE,
        file=sys.stdout,
    )


def track(
    items: Iterable[Item],
    label: str,
    total: int,
    unit: str,
    *,
    size: int | Callable[[Item], int] = 1,
) -> Iterator[Item]:
    """Pass `items` on behind a bar.

    `total` counts units; each item stands for `size` of them (a number, or a function
    of the item; the last for what is left).
    """
    with progress(label, total, unit) as bar:
        for item in items:
            yield item
            done = size if isinstance(size, int) else size(item)
            bar.update(min(done, total - bar.n))


def duration(seconds: float) -> str:
    """Seconds, from ten minutes on minutes, from an hour on hours and minutes."""
    if seconds < 600:
        return f"{seconds:,.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60:,} h {minutes % 60} min"
