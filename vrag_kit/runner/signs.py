"""Who works for whom, in small files on a disk that all machines share: so that work
ends when nobody waits for it any more, whatever ended whoever waited.

runs/visual_rag/demo/.at_work    the runner's word, rewritten every few seconds
runs/visual_rag/demo/visual_rag/02_….worker    the worker's that executes the notebook
"""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from filelock import FileLock, Timeout

from vrag_kit.errors import VragError

_EVERY = 5.0
"""Seconds between two words of a runner."""
_GLANCE = 1.0
"""Seconds between two looks of a worker."""
_SILENCE = 60.0
"""Seconds after which a runner that says nothing is gone."""
_LATE = 60.0
"""Seconds after which a disk has shown every machine what was written to it."""


@contextmanager
def alone(folder: Path, command: str) -> Iterator[None]:
    """No other run of the same command in a folder while the block lasts; raises
    `VragError` where one is at work, and where the folder cannot be written.
    """
    lock = FileLock(folder / ".lock", timeout=0)
    with refusing_full(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except Timeout as error:
            raise VragError(
                f"{folder}: another `{command}` is at work there. Wait for it, or stop it."
            ) from error
    try:
        yield
    finally:
        lock.release()


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


@contextmanager
def at_work(folder: Path) -> Iterator[str]:
    """While the block lasts, the folder's sign says that this process is at work; gives
    the word by which it is known.
    """
    word = uuid4().hex
    sign = folder / ".at_work"
    sign.write_text(_told(word, 0), encoding="ascii")
    over = threading.Event()
    writer = threading.Thread(target=_keep_telling, args=(sign, word, over), daemon=True)
    writer.start()
    try:
        yield word
    finally:
        over.set()
        writer.join()
        sign.unlink(missing_ok=True)


def _told(word: str, count: int) -> str:
    return f"{word} {count:012d}"


def _keep_telling(sign: Path, word: str, over: threading.Event) -> None:
    count = 0
    while not over.wait(_EVERY):
        count += 1
        # in its place, which needs no room; next time, where the disk does not answer
        with suppress(OSError), sign.open("r+", encoding="ascii") as file:
            file.write(_told(word, count))


def is_at_work(folder: Path, word: str) -> bool:
    """Whether the process known by `word` is at work for a folder; where its sign is not
    seen, a while is waited for it, as network disks show some things late.
    """
    if not folder.is_dir():
        return False
    until = time.monotonic() + _LATE
    while not (known := _word_of(folder) == word) and time.monotonic() < until:
        time.sleep(_GLANCE)
    return known


def _word_of(folder: Path) -> str:
    return (_read(folder / ".at_work") or "").partition(" ")[0]


@contextmanager
def working(sign: Path, folder: Path, word: str, stop: Callable[[], None]) -> Iterator[None]:
    """While the block lasts, `sign` says that this process does that work, and `stop` is
    called when nobody waits for it: the process known by `word` says in `folder` that it
    is done, says nothing, or has been replaced; or when another worker took the work.
    """
    mine = f"{platform.node()} {os.getpid()} {uuid4().hex}"
    sign.write_text(mine, encoding="utf-8")
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(sign, mine, folder, word, stop, over))
    watch.start()
    try:
        yield
    finally:
        over.set()
        watch.join()
        if _read(sign) == mine:
            sign.unlink(missing_ok=True)


def _watch(
    sign: Path, mine: str, folder: Path, word: str, stop: Callable[[], None], over: threading.Event
) -> None:
    said, since = _read(folder / ".at_work"), time.monotonic()
    while not over.wait(_GLANCE):
        now = _read(folder / ".at_work")
        if now != said:
            said, since = now, time.monotonic()
        ours = now is None or now.startswith(word)
        if not ours or time.monotonic() - since > _SILENCE or _read(sign) not in (mine, None):
            stop()
            return


def _read(file: Path) -> str | None:
    """What a file says, "" where it is not there; None where that cannot be told now."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    except OSError:
        return None
