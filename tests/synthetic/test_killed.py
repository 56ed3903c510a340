"""A drawing that is killed leaves no process, and what it drew is gone on with."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from factories import directory_digest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="needs POSIX sessions"),
]


def drawing(edition: str, folder: Path) -> subprocess.Popen[bytes]:
    """`vrag draw`, in a session of its own."""
    command = [sys.executable, "-m", "vrag_kit.runner.cli", "draw", edition, str(folder)]
    return subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)


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


def test_a_killed_drawing_leaves_no_worker_and_the_next_one_ends_with_the_same_bytes(
    tmp_path: Path, guide_folder: Path
) -> None:
    process = drawing("field-guide-small", tmp_path / "guide")
    while not list(tmp_path.glob("guide/images/0*")):
        assert process.poll() is None
        time.sleep(0.02)
    assert len(session(process)) > 2  # its workers are at it
    assert kill(process) == []
    assert drawing("field-guide-small", tmp_path / "guide").wait(300) == 0
    assert directory_digest(tmp_path / "guide") == directory_digest(guide_folder)


def test_workers_that_never_got_work_of_ours_end_too() -> None:
    program = (
        "import time; from vrag_kit.processes import worker_pool; pool = worker_pool(2);"
        " list(pool.map(time.sleep, [600] * 9))"
    )
    process = subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
    while len(session(process)) < 4:  # the tracker of multiprocessing is one
        assert process.poll() is None
        time.sleep(0.02)
    assert kill(process) == []
