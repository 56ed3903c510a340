"""A disk that is full is named, with the file; nothing is half there, and once there is
room the next run goes on.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_runner import notebook, project, vrag

__all__ = ["project"]
P = "params/guide/p.yaml"


def mount(*options: str) -> bool:
    return subprocess.run(["mount", *options], capture_output=True, check=False).returncode == 0


@pytest.fixture
def disk(project: Path) -> Iterator[Path]:
    """`runs` of the project as a disk of 64 kB."""
    folder = project / "runs"
    folder.mkdir()
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("needs to mount a disk")
    if not mount("-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)):
        pytest.skip("needs to mount a disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize(
    "cell", ["print('x' * 90_000)", "from IPython.display import HTML\nHTML('x' * 90_000)"]
)
def test_a_full_disk_fails_a_notebook_and_not_the_run(cell: str, project: Path, disk: Path) -> None:
    """What it prints is in its log and its copy; what it shows in its copy alone."""
    notebook(project / "notebooks/guide/01_one.ipynb", "k = 1", cell)
    done = vrag(project, "run", P, "--jobs", "1")
    assert done.returncode == 1, done.stdout + done.stderr
    first, second = done.stdout.splitlines()[-2:]
    assert "guide/01_one  failed" in first, done.stdout
    assert "No space left on device" in first, done.stdout
    assert "Free space, and run the same command again" in first
    assert "guide/02_two" in second
    assert mount("-o", "remount,size=9m", str(disk))
    again = vrag(project, "run", P, "--jobs", "1")
    assert again.returncode == 0, again.stdout
    assert not list(disk.rglob("*.part"))
    third = vrag(project, "run", P, "--jobs", "1")
    assert third.stdout.count("unchanged since its last run") == 2
