"""What one process at a time writes: a run's folder, a notebook's copy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from vrag_kit.errors import VragError


@contextmanager
def alone(lock: Path, what: str) -> Iterator[None]:
    """No other process holds `lock` while the block lasts; raises `VragError` where one
    does, and where the lock's folder cannot be written.
    """
    with refusing_full(lock.parent):
        lock.parent.mkdir(parents=True, exist_ok=True)
        held = FileLock(lock, timeout=0)
        try:
            held.acquire()
        except Timeout as error:
            raise VragError(
                f"{lock.parent}: another `{what}` is at work there. Wait for it, or stop it."
            ) from error
    try:
        yield
    finally:
        held.release()


@contextmanager
def refusing_full(folder: Path) -> Iterator[None]:
    """An error of the disk in the block is one that says which folder it is about."""
    try:
        yield
    except OSError as error:
        raise VragError(
            f"{folder}: cannot be written ({error.strerror}). Free space, or run in a folder"
            " with write access."
        ) from error
