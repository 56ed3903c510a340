"""Write files so that a crash, a full disk or a second process never leaves half of
one; wait for one another aloud.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout


def write_file(path: Path, content: str | bytes) -> None:
    """Put `content` (text as UTF-8) at `path`, replacing an older file only once the
    new one is complete; makes the folder.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def one_at_a_time(folder: Path, work: str) -> Iterator[None]:
    """Hold `folder` for this process; when another one has it, say so ("waiting:
    another process is …") and wait.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=0.5)
    except Timeout:
        print(f"waiting: another process is {work} in {folder}", flush=True)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
