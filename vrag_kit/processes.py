"""Names of processes, a check whether one has ended, and worker pools that end with their parent
process.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import platform
import threading
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import psutil

_PROC = Path("/proc")
_DEAD_STATES = ("Z", "X", "x")
"""Of Linux: ended, and not yet or just being forgotten."""


def process_name() -> str:
    """Return a unique name of this process, "<machine>/<number>/<start>"."""
    number = os.getpid()
    return f"{_machine()}/{number}/{_start(number)}"


def has_ended(name: str) -> bool:
    """Return whether the process with a name from `process_name` has certainly ended. It is False
    for a process on another machine, or in another container.
    """
    parts = name.split("/")
    if len(parts) != 3 or parts[0] != _machine() or not parts[1].isdecimal():
        return False
    return _start(int(parts[1])) != parts[2]


def worker_pool(n: int) -> ProcessPoolExecutor:
    """Create a pool of n spawned processes, which share no state and end with this one."""
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(n, mp_context=spawn, initializer=end_with_parent)


def end_with_parent() -> None:
    """End this process, started by `multiprocessing`, as soon as its parent ends for any reason. In
    any other process nothing happens.

    A worker of a killed process would otherwise wait for work forever and keep its memory. Call
    this first, because a worker may never get any work.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    os._exit(1)


@cache
def _machine() -> str:
    """Differs where the number of a process means another one: on another machine, after
    a restart of it, and in another container.
    """
    told = [platform.node()]
    if (_PROC / "self" / "ns" / "pid").exists():  # Linux
        told.append((_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii"))
        told.append(str((_PROC / "self" / "ns" / "pid").readlink()))
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:12]


def _start(number: int) -> str:
    """When a process began, "" when there is none that has not ended."""
    if (_PROC / "self" / "stat").exists():  # Linux: in ticks, which setting the clock leaves
        try:
            stat = (_PROC / str(number) / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        fields = stat.rpartition(")")[2].split()  # its name may hold anything
        return "" if fields[0] in _DEAD_STATES else fields[19]
    try:
        process = psutil.Process(number)
        ended = process.status() == psutil.STATUS_ZOMBIE
        return "" if ended else str(process.create_time())
    except psutil.Error:
        return ""
