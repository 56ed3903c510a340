"""Progress in plain lines, the same in JupyterLab, under papermill and in a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def track(items: Iterable[Item], label: str, total: int, unit: str, *, size: int | Callable[[Item], int] = 1) -> Iterator[Item]:
    """Pass `items` on, and say now and then how far they are: after 2 seconds, then ever more rarely, at least twice a minute.

    `total` counts units; each item stands for `size` of them (a number, or a function of the item; the last for what is left).
    """
    began = last = time.monotonic()
    pause, done = 2.0, 0
    for item in items:
        yield item
        done, now = min(total, done + (size if isinstance(size, int) else size(item))), time.monotonic()
        if now - last >= pause and done < total:
            rate = done / (now - began)
            print(f"{label}: {done:,} of {total:,} {unit}, {rate:,.0f}/s, about {(total - done) / rate:,.0f} s left", flush=True)
            last, pause = now, min(30.0, 1.5 * pause)
    print(f"{label}: {total:,} {unit} in {time.monotonic() - began:.1f} s", flush=True)
