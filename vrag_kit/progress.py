"""Progress bars for JupyterLab, papermill and terminals alike."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

Item = TypeVar("Item")
PAUSE = 10.0
"""Seconds before the first line, and between lines."""


def progress(label: str, total: int, unit: str, *, start: int = 0) -> tqdm:
    """Create a progress bar of `total` units, `start` of them already done; close it at the end.

    It prints to standard output at intervals: a log gets few lines, and none for work that ends
    quickly.
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
    """Yield `items` with a progress bar.

    `total` counts units; each item stands for `size` of them (a number, or a function of the item).
    The bar never exceeds `total`.
    """
    with progress(label, total, unit) as bar:
        for item in items:
            yield item
            done = size if isinstance(size, int) else size(item)
            bar.update(min(done, total - bar.n))


def format_duration(seconds: float) -> str:
    """Format seconds as seconds, from ten minutes as minutes, from an hour as hours and minutes."""
    if seconds < 600:
        return f"{seconds:,.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60:,} h {minutes % 60} min"
