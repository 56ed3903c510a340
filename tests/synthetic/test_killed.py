"""A drawing that is killed leaves no process, and what it drew is gone on with."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress

import psutil
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="needs POSIX sessions"),
]


def session(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """All that is alive of the session that a process began."""
    alive = []
    for each in psutil.process_iter():
        with suppress(OSError, psutil.Error):
            if os.getsid(each.pid) == process.pid and each.status() != psutil.STATUS_ZOMBIE:
                alive.append(each)
    return alive


def kill(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """What is left of the session when its first process was killed, and some seconds
    have passed.
    """
    process.kill()
    process.wait()
    deadline = time.monotonic() + 20
    while (left := session(process)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for each in left:
        each.kill()
    return left


def test_workers_that_never_got_work_of_ours_end_too() -> None:
    program = (
        "import time; from vrag_kit.synthetic.editions import worker_pool; pool = worker_pool(2);"
        " list(pool.map(time.sleep, [600] * 9))"
    )
    process = subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
    while len(session(process)) < 4:  # the tracker of multiprocessing is one
        assert process.poll() is None
        time.sleep(0.02)
    assert kill(process) == []
