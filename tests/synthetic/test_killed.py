"""A drawing that is killed leaves no process."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import psutil
import pytest

PROGRAM = (
    "import time; from vrag_kit.synthetic.editions import worker_pool; pool = worker_pool(2);"
    " list(pool.map(time.sleep, [600] * 9))"
)


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills as POSIX does")
def test_workers_end_with_a_killed_process():
    process = subprocess.Popen([sys.executable, "-c", PROGRAM])
    workers: list[psutil.Process] = []
    while len(workers) < 3:  # the tracker of multiprocessing is one
        assert process.poll() is None
        workers = psutil.Process(process.pid).children(recursive=True)
        time.sleep(0.02)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 20
    while any(map(is_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = [each for each in workers if is_alive(each)]
    for each in left:
        each.kill()
    assert left == []
