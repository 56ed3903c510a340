"""Work prepared by threads while earlier work is used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Thing = TypeVar("Thing")
Made = TypeVar("Made")
DEPTH = 3
"""Batches that are begun at most, the one in use among them."""


def cut(things: Iterable[Thing], size: int) -> Iterator[list[Thing]]:
    """Things in lists of `size`, the last one shorter."""
    left = iter(things)
    while batch := list(islice(left, size)):
        yield batch


def ahead(
    prepare: Callable[[Thing], Made], batches: Iterable[Sequence[Thing]], workers: int
) -> Iterator[tuple[Sequence[Thing], list[Made]]]:
    """Batches with what `prepare` made of each thing, in order."""
    with ThreadPoolExecutor(workers) as pool:
        pending: deque[tuple[Sequence[Thing], list[Future[Made]]]] = deque()
        left = iter(batches)
        try:
            while True:
                pending.extend(
                    (batch, [pool.submit(prepare, thing) for thing in batch])
                    for batch in islice(left, DEPTH - len(pending))
                )
                if not pending:
                    return
                batch, futures = pending.popleft()
                yield batch, [future.result() for future in futures]
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
