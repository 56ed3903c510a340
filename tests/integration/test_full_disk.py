"""A disk that is full is named, with the file; nothing is half there, and once there is
room the next run goes on.
"""

from __future__ import annotations

import re
import subprocess

import pytest
from commands import P, said
from own_project import notebook


def mount(*options: str) -> bool:
    return subprocess.run(["mount", *options], capture_output=True, check=False).returncode == 0


@pytest.fixture
def disk(project):
    """`runs` of the project as a disk of 64 kB."""
    folder = project / "runs"
    folder.mkdir()
    if not mount("-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)):
        pytest.skip("needs to mount a disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.slow
def test_a_full_disk_fails_notebooks_and_not_the_run(here, disk):
    """What one prints is in its log and its copy; what one shows in its copy alone."""
    books = here / "notebooks" / "guide"
    notebook(books / "01_one.ipynb", "k = 1", "print('x' * 90_000)")
    shows = "from IPython.display import HTML\nHTML('x' * 90_000)"
    notebook(books / "02_two.ipynb", "source = ''", shows)
    status, told = said("run", P, "--jobs", "1")
    assert status == 1, told
    for name, line in zip(("01_one", "02_two"), told.splitlines()[-2:], strict=True):
        assert f"guide/{name}  failed" in line, told
        assert re.search(rf"{name}\.(log|parameters\.yaml|ipynb): No space left on device", line)
        assert "Free space, and run the same command again" in line
    assert mount("-o", "remount,size=9m", str(disk))
    status, told = said("run", P, "--jobs", "1")
    assert (status, told.count("] done in")) == (0, 2), told
    assert not list(disk.rglob("*.part"))
