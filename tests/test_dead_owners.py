"""Questions that a process has reserved are free the moment it is dead, where that can be
told, and not before.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from vrag_kit.generation import AnswerStore
from vrag_kit.processes import has_ended, process_name

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")

CLAIMING = """import sys, time
from vrag_kit.generation import AnswerStore
store = AnswerStore(sys.argv[1], lease=600)
print(*store.claim(["x", "y"]), flush=True)
time.sleep(600)"""


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has reserved x and y for ten minutes."""
    command = [sys.executable, "-c", CLAIMING, str(tmp_path / "a.sqlite")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "x y\n"
        yield process
        process.kill()


@pytest.mark.slow
def test_what_a_killed_process_was_asking_is_free_at_once(
    asking: subprocess.Popen[str], tmp_path: Path
) -> None:
    with AnswerStore(tmp_path / "a.sqlite") as store:
        assert store.free(["x", "y", "z"]) == ["z"]
        os.kill(asking.pid, signal.SIGSTOP)  # it stands still, and is alive
        assert store.free(["x", "y", "z"]) == ["z"]
        os.kill(asking.pid, signal.SIGKILL)
        os.waitid(os.P_PID, asking.pid, os.WEXITED | os.WNOWAIT)  # dead, and not yet buried
        assert store.claim(["x", "y", "z"]) == ["x", "y", "z"]


def test_who_has_the_number_of_a_dead_process_is_not_that_process() -> None:
    machine, number, start = process_name().split("/")
    assert not has_ended(f"{machine}/{number}/{start}")
    assert has_ended(f"{machine}/{number}/{start}1")


@pytest.mark.slow
def test_of_another_machine_or_an_older_kit_only_the_lease_tells(
    asking: subprocess.Popen[str], tmp_path: Path
) -> None:
    for owner in ("another/1/1 5f", "0123456789abcdef", "", "x/y/z"):
        with closing(sqlite3.connect(tmp_path / "a.sqlite")) as db, db:
            db.execute("UPDATE claims SET owner = ?", (owner,))
        with AnswerStore(tmp_path / "a.sqlite") as store:
            assert store.free(["x", "y", "z"]) == ["z"]
