"""Prefetching: threads prepare the next batches while earlier ones are used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Thing = TypeVar("Thing")
_Result = TypeVar("_Result")
DEPTH = 3
"""Maximum number of batches in progress, including the one in use."""


def batched(things: Iterable[Thing], size: int) -> Iterator[list[Thing]]:
    """Yields items in lists of `size`; the last one may be shorter."""
    left = iter(things)
    while batch := list(islice(left, size)):
        yield batch


def prefetch(
    prepare: Callable[[Thing], _Result], batches: Iterable[Sequence[Thing]], workers: int
) -> Iterator[tuple[Sequence[Thing], list[_Result]]]:
    """Yields batches in order, with the result of `prepare` for each item."""
    with ThreadPoolExecutor(workers) as pool:
        pending: deque[tuple[Sequence[Thing], list[Future[_Result]]]] = deque()
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
