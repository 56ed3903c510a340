"""Progress in plain lines, the same in JupyterLab, under papermill and in a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
FIRST_PAUSE = 2.0
"""Seconds before the first line …"""
LONGEST_PAUSE = 30.0
"""… and between two lines, at most; each pause is half as long again as the one before."""


class Progress:
    """Says now and then how far a piece of work is, and how much time is left."""

    def __init__(self, label: str, total: int, unit: str, *, start: int = 0) -> None:
        """`total` counts units, of which `start` were done before."""
        self.label = label
        self.total = total
        self.unit = unit
        self._start = start
        self._began = time.monotonic()
        self._said = self._began
        self._pause = FIRST_PAUSE

    def reached(self, done: int, note: str = "") -> None:
        """`done` units are done, those before the start included; a line when it is time
        for one, with `note` at its end.
        """
        now = time.monotonic()
        if now - self._said < self._pause or done >= self.total:
            return
        rate = (done - self._start) / (now - self._began)
        parts = [f"{done:,} of {self.total:,} {self.unit}", f"{rate:,.{int(rate < 10)}f}/s"]
        if rate:
            parts.append(f"about {duration((self.total - done) / rate)} left")
        end = f"; {note}" if note else ""
        print(f"{self.label}: {', '.join(parts)}{end}", flush=True)
        self._said = now
        self._pause = min(LONGEST_PAUSE, 1.5 * self._pause)

    def end(self) -> None:
        """All is done: the last line."""
        seconds = time.monotonic() - self._began
        print(f"{self.label}: {self.total:,} {self.unit} in {seconds:.1f} s", flush=True)


def track(
    items: Iterable[Item],
    label: str,
    total: int,
    unit: str,
    *,
    size: int | Callable[[Item], int] = 1,
) -> Iterator[Item]:
    """Pass `items` on, saying now and then how far they are, as `Progress` does.

    `total` counts units; each item stands for `size` of them (a number, or a function
    of the item; the last for what is left).
    """
    progress = Progress(label, total, unit)
    done = 0
    for item in items:
        yield item
        done += size if isinstance(size, int) else size(item)
        progress.reached(done)
    progress.end()


def duration(seconds: float) -> str:
    """Seconds, from ten minutes on minutes, from an hour on hours and minutes."""
    if seconds < 600:
        return f"{seconds:,.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60:,} h {minutes % 60} min"
