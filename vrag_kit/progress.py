"""Progress in plain lines, the same in JupyterLab, under papermill and in a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def track(
    items: Iterable[Item],
    label: str,
    total: int,
    unit: str,
    *,
    size: int | Callable[[Item], int] = 1,
    start: int = 0,
    note: Callable[[], str] | None = None,
) -> Iterator[Item]:
    """Pass `items` on, and say now and then how far they are: after 2 seconds, then
    ever more rarely, at least twice a minute.

    `total` counts units; each item stands for `size` of them (a number, or a function
    of the item; the last for what is left), and `start` were done before. What `note`
    returns is added to each line.
    """
    began = last = time.monotonic()
    pause, done = 2.0, start
    for item in items:
        yield item
        done, now = (
            min(total, done + (size if isinstance(size, int) else size(item))),
            time.monotonic(),
        )
        if now - last >= pause and done < total:
            rate = (done - start) / (now - began)
            left = f", about {_duration((total - done) / rate)} left" if rate else ""
            print(
                f"{label}: {done:,} of {total:,} {unit},"
                f" {rate:,.{int(rate < 10)}f}/s{left}{f'; {note()}' if note else ''}",
                flush=True,
            )
            last, pause = now, min(30.0, 1.5 * pause)
    print(f"{label}: {total:,} {unit} in {time.monotonic() - began:.1f} s", flush=True)


def _duration(seconds: float) -> str:
    """Seconds, from ten minutes on minutes, from an hour on hours and minutes."""
    minutes = round(seconds / 60)
    return (
        f"{seconds:,.0f} s"
        if seconds < 600
        else f"{minutes} min"
        if minutes < 60
        else f"{minutes // 60:,} h {minutes % 60} min"
    )
