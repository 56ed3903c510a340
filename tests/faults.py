"""Planted faults: `python tests/faults.py [numbers]` plants the faults of `faults.md`, one at
a time, in a copy of the checkout, and says which test catches each.

A fault is caught by a test that fails with it and passes without it. Exit status 1: a fault
is not caught, or its patch no longer fits.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tests" / "faults.md"
LEFT_OUT = ("data", "runs", "figures")
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", "-rfE"]
LONGEST = 600
"""Seconds after which tests count as hanging."""


class FaultError(Exception):
    """Why a fault cannot be planted, or is not caught."""


@dataclass(frozen=True)
class Fault:
    """A fault of the list."""

    number: int
    words: str
    tests: list[str]
    caught_by: str
    file: str
    lines: list[str]
    """Of the patch, each with its first character: "-", "+" or " "."""

    def plant(self, copy: Path) -> None:
        """Change the file in `copy`; raises `FaultError` where the patch does not fit."""
        sound = (ROOT / self.file).read_text(encoding="utf-8")
        before = "\n" + "".join(f"{line[1:]}\n" for line in self.lines if line[:1] != "+")
        after = "\n" + "".join(f"{line[1:]}\n" for line in self.lines if line[:1] != "-")
        if (found := f"\n{sound}".count(before)) != 1:
            raise FaultError(f"the patch fits {found} places of {self.file}; expected 1")
        planted = f"\n{sound}".replace(before, after)[1:]
        if self.file.endswith(".py"):
            compile(planted, self.file, "exec")
        (copy / self.file).write_text(planted, encoding="utf-8")

    def heal(self, copy: Path) -> None:
        """Put the sound file back."""
        (copy / self.file).write_bytes((ROOT / self.file).read_bytes())


def left_out(folder: str, names: Sequence[str]) -> list[str]:
    """What of a folder is not copied: what can be made again."""
    top = [name for name in names if name in LEFT_OUT or name.startswith(".")]
    return top if Path(folder) == ROOT else ["__pycache__"]


def read_list(text: str) -> list[Fault]:
    """The faults of `faults.md`; raises `FaultError` for one that cannot be read."""
    faults = []
    for part in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        head = re.match(r"(\d+)\. (.+)", part)
        tests = re.search(r"^Tests: (.+)", part, re.MULTILINE)
        caught = re.search(r"^Caught by: `(.+)`", part, re.MULTILINE)
        patch = re.search(r"^```diff\n(\S+)\n(.+?)\n```", part, re.MULTILINE | re.DOTALL)
        if not (head and tests and caught and patch):
            raise FaultError(f"no title, Tests, Caught by or patch in: {part[:60]!r}")
        files = re.findall(r"`(.+?)`", tests[1])
        where, lines = patch[1], patch[2].split("\n")
        faults.append(Fault(int(head[1]), head[2], files, caught[1], where, lines))
    return faults


def failing(copy: Path, tests: Sequence[str], *options: str) -> list[str]:
    """The tests that fail in `copy`, none where there are none of that name; raises
    `FaultError` where they do not run to an end.
    """
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [*PYTEST, *options, *tests]
    try:
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, timeout=LONGEST
        )
    except subprocess.TimeoutExpired as error:
        raise FaultError(f"no end after {LONGEST} seconds") from error
    if done.returncode not in (0, 1, 4):  # 4: no such test
        raise FaultError(f"the tests did not run: {(done.stdout + done.stderr)[-800:]}")
    return re.findall(r"^(?:FAILED|ERROR) (\S+::[^\[\s]+)", done.stdout, re.MULTILINE)


def catch(fault: Fault, copy: Path) -> str:
    """The test that catches a fault; raises `FaultError` where none does."""
    try:
        fault.plant(copy)
        for tests in ([fault.caught_by], fault.tests):  # the one that is known, to be quick
            if found := failing(copy, tests, "-x"):
                return found[0]
        raise FaultError(f"not caught by {', '.join(fault.tests)}")
    finally:
        fault.heal(copy)


def main(numbers: Sequence[str]) -> int:
    """Plant the faults with these numbers, or all; returns the exit status."""
    faults = read_list(LIST.read_text(encoding="utf-8"))
    wanted = [fault for fault in faults if not numbers or str(fault.number) in numbers]
    caught: dict[str, int] = {}
    bad = 0
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        copy = Path(folder, "copy")
        copytree(ROOT, copy, ignore=left_out, symlinks=True)
        for fault in wanted:
            began = time.monotonic()
            try:
                test = catch(fault, copy)
                told = "" if test == fault.caught_by else f", the list says {fault.caught_by}"
                words = f"caught by {test}{told}"
                caught[test] = fault.number
            except (FaultError, SyntaxError) as error:
                words, bad = f"FAULT STANDS: {error}", bad + 1
            seconds = time.monotonic() - began
            print(f"{fault.number}. {fault.words}: {words} ({seconds:.0f} s)", flush=True)
        for test in failing(copy, list(caught)) if caught else []:
            print(f"{caught[test]}. not caught: {test} fails without the fault, too")
            bad += 1
    print(f"{len(wanted) - bad} of {len(wanted)} faults are caught")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
