"""Planted faults: `python tests/faults.py [numbers]` plants the faults of `faults.md`, one at
a time, in a clone of the last commit, and says which test catches each.

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
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", "-rfE"]
LONGEST = 600
"""Seconds after which tests count as hanging."""
ENTRY = re.compile(
    r"(\d+)\. (.+?)\n.*^Tests: (.+?)\n^Caught by: `(.+?)`\n.*^```diff\n(\S+)\n(.+?)\n```",
    re.MULTILINE | re.DOTALL,
)
"""Number, words, files of tests, the test that is known, file of the patch, patch."""


class FaultError(Exception):
    """Why a fault cannot be planted, or is not caught."""


def planted(file: str, source: str, patch: str) -> str:
    """The source with a fault; raises `FaultError` where the patch does not fit."""
    lines = patch.split("\n")
    before = "\n" + "".join(f"{line[1:]}\n" for line in lines if line[:1] != "+")
    after = "\n" + "".join(f"{line[1:]}\n" for line in lines if line[:1] != "-")
    if (found := f"\n{source}".count(before)) != 1:
        raise FaultError(f"the patch fits {found} places of {file}; expected 1")
    result = f"\n{source}".replace(before, after)[1:]
    if file.endswith(".py"):
        compile(result, file, "exec")
    return result


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


def catch(copy: Path, file: str, patch: str, *places: Sequence[str]) -> str:
    """The test at the first of these places that catches a fault; raises `FaultError` where none
    does.
    """
    sound = (copy / file).read_text(encoding="utf-8")
    try:
        (copy / file).write_text(planted(file, sound, patch), encoding="utf-8")
        for tests in places:
            if found := failing(copy, tests, "-x"):
                return found[0]
        raise FaultError(f"not caught by {', '.join(places[-1])}")
    finally:
        (copy / file).write_text(sound, encoding="utf-8")


def main(numbers: Sequence[str]) -> int:
    """Plant the faults with these numbers, or all; returns the exit status."""
    parts = re.split(r"^### ", (ROOT / "tests/faults.md").read_text(encoding="utf-8"), flags=re.M)
    wanted = [part for part in parts[1:] if not numbers or part.partition(".")[0] in numbers]
    caught: dict[str, str] = {}
    bad = 0
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        subprocess.run(["git", "clone", "-q", ROOT, folder], check=True)
        for part in wanted:
            began, entry = time.monotonic(), ENTRY.match(part)
            assert entry, f"no title, Tests, Caught by or patch in: {part[:60]!r}"
            number, words, files, known, file, patch = entry.groups()
            try:
                test = catch(Path(folder), file, patch, [known], re.findall(r"`(.+?)`", files))
                told = "" if test == known else f", the list says {known}"
                words += f": caught by {test}{told}"
                caught[test] = number
            except (FaultError, SyntaxError) as error:
                bad += 1
                words += f": FAULT STANDS: {error}"
            print(f"{number}. {words} ({time.monotonic() - began:.0f} s)", flush=True)
        alone = failing(Path(folder), list(caught)) if caught else []
    for test in alone:
        print(f"{caught[test]}. not caught: {test} fails without the fault, too")
    bad += len(alone)
    print(f"{len(wanted) - bad} of {len(wanted)} faults are caught")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
