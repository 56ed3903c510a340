"""Locks for what one process at a time writes: a run's folder, a notebook's copy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from vrag_kit.errors import VragError


@contextmanager
def run_lock(lock: Path, what: str) -> Iterator[None]:
    """Hold `lock` exclusively within the block. Raises `VragError` if another process holds it, or
    its folder cannot be written.
    """
    with report_disk_full(lock.parent):
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
def report_disk_full(folder: Path) -> Iterator[None]:
    """Convert an `OSError` in the block to a `VragError` that names the folder."""
    try:
        yield
    except OSError as error:
        raise VragError(
            f"{folder}: cannot be written ({error.strerror}). Free space, or run in a folder"
            " with write access."
        ) from error
