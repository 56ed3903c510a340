"""Files that are whole or not there: written beside, then renamed; folders for one at a time.

Neither a crash nor a full disk nor a second writer leaves half a file.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout


def write_file(path: Path, content: str | bytes | Iterable[str]) -> None:
    """Put `content` (text as UTF-8, or pieces of text) at `path`; the folder is made.

    An older file is replaced only once the new one is on the disk. Of several writers at
    once, threads, processes or machines that share the folder, one wins, whole. Raises
    `OSError`, which names `path`, with nothing left beside it, when it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # a process' number is the same in its threads, and in containers that share a disk
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with part.open("xb") as file:
            for piece in [content] if isinstance(content, str | bytes) else content:
                file.write(piece if isinstance(piece, bytes) else piece.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        error.filename = str(path)  # of a full disk Python names no file
        raise
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def one_at_a_time(folder: Path, work: str) -> Iterator[None]:
    """Hold `folder`, which is made; while another holds it, say so, and wait.

    `work` is what the other one does ("waiting: another process is drawing in …").
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
