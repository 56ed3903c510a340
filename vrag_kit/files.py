"""Files that are whole or not there: written beside, then renamed; folders for one at a time.

Neither a crash nor a full disk nor a second writer leaves half a file. A name out of data
is joined to a folder by `inside` alone.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from vrag_kit.errors import VragError


def leaves(name: str) -> bool:
    """Whether a name out of data leads out of the folder that it is joined to: it is
    absolute or steps up. So may one with a backslash or a NUL, which no data set has.
    """
    # for millions of names: no regular expression, and no split without two dots
    odd = name.startswith("/") or "\\" in name or "\0" in name
    return odd or (".." in name and ".." in name.split("/"))


def inside(folder: Path, name: str, where: str, *, links: bool = True) -> Path:
    """`folder / name`, of a name out of data; raises `VragError`, which begins with
    `where`, for one that `leaves`.

    Links below a folder are those of who made it: a cache of the hub consists of them.
    Where a stranger made it, `links` is false, and one that leads outside is refused too.
    """
    found = ""
    if leaves(name):
        found = "points outside"
    elif not (links or Path(os.path.realpath(folder / name)).is_relative_to(folder.resolve())):
        found = "is a link that points outside"
    if found:
        raise VragError(f"{where}: {name!r} {found} {folder}; expected the name of a file in it.")
    return folder / name


def git_blob(file: Path) -> str:
    """What `git hash-object` prints of a file: the SHA-1 of its length and its bytes."""
    content = file.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


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
