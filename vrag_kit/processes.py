"""Processes: their names, whether one has ended, pools of workers, and usable cores."""

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


def process_name() -> str:
    """Return a unique name of this process, "<machine>/<number>/<start>"."""
    number = os.getpid()
    return f"{_machine()}/{number}/{_start(number)}"


def has_ended(name: str) -> bool:
    """Return whether the process with a name from `process_name` has certainly ended. It is False
    for a process on another machine, or in another container.
    """
    parts = name.split("/")
    if len(parts) != 3 or parts[0] != _machine():
        return False
    return _start(int(parts[1])) != parts[2]


def available_cores() -> int:
    """Return the usable CPU cores, at least 1, by CPU affinity and container quota."""
    from joblib import cpu_count

    return int(cpu_count())


def worker_pool(n: int) -> ProcessPoolExecutor:
    """Create a pool of n spawned processes, which share no state and end with this one."""
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(n, mp_context=spawn, initializer=_end_with_parent)


def _end_with_parent() -> None:
    """End this worker as soon as its parent ends for any reason: it would otherwise wait for work
    forever and keep its memory.
    """
    threading.Thread(target=_end_after_parent, daemon=True).start()


def _end_after_parent() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


@cache
def _machine() -> str:
    """Identify where process numbers are unique: a machine since its start, or a container."""
    parts = [platform.node()]
    namespace = Path("/proc/self/ns/pid")
    if namespace.exists():  # Linux
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        parts += [boot, str(namespace.readlink())]
    return hashlib.sha256("/".join(parts).encode()).hexdigest()[:12]


def _start(number: int) -> str:
    """Return a number that differs between processes of the same number; "" without a process."""
    try:
        process = psutil.Process(number)
        # psutil's hash is that of the number and of the start, which setting the clock leaves
        return "" if process.status() == psutil.STATUS_ZOMBIE else str(hash(process))
    except psutil.NoSuchProcess:
        return ""
