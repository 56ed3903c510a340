"""What a second worker of a cluster is worth: `python -m tests.timing.workers [NOTEBOOKS]`.

A parameter file's notebooks are run by one worker of Dask and by two, from nothing: those
that sleep, whose time is nobody's, and those that count, which share the machine's cores;
and documents are embedded by an encoder that sleeps. The time is that of the work, from
the beginning of the first notebook or batch to the end of the last. The aim is 1.8 where
they sleep.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.own_project import notebook
from tests.sleeping_encoder import P, searching
from vrag_kit.processes import available_cores
from vrag_kit.runner.embed import embed_on_cluster
from vrag_kit.runner.run import run_notebooks

BEGINS = "import time\nopen(f'times/{name}', 'w').write(f'{time.time()}\\n')\n"
ENDS = "\nopen(f'times/{name}', 'a').write(f'{time.time()}\\n')"
CELLS = {
    "sleeping notebooks": "time.sleep(8)",
    "counting notebooks": "end = time.process_time() + 8\nwhile time.process_time() < end: pass",
}
PAUSE = 0.25
"""Seconds that a batch of 64 documents takes."""


def run(cell: str, notebooks: int, workers: int) -> float:
    """How long notebooks take."""
    for folder in ("notebooks/guide", "params/guide", "times"):
        Path(folder).mkdir(parents=True)
    for number in range(notebooks):
        path = Path(f"notebooks/guide/{number:02d}_one.ipynb")
        notebook(path, f"name = '{number}'", BEGINS + cell + ENDS)
    Path(P).write_text("{}", encoding="utf-8")
    outcomes = run_notebooks([Path(P)], cluster=f"local:{workers}")
    assert {each.status for each in outcomes} == {"done"}, outcomes
    told: list[float] = []
    for each in Path("times").iterdir():
        told += map(float, each.read_text(encoding="utf-8").split())
    return max(told) - min(told)


def embed(workers: int) -> float:
    """How long workers embed; two of the three shards are of equal size."""
    os.environ["PAUSE"] = str(PAUSE)
    searching(Path.cwd(), notebook)
    embed_on_cluster(Path(P), f"local:{workers}")
    lines = Path("encoded.txt").read_text(encoding="utf-8").splitlines()
    batches = [line.split() for line in lines]  # who, how many, when
    mine = str(os.getpid())  # this process only tries a document
    ended = [float(when) for who, _, when in batches if who != mine]
    return max(ended) - min(ended) + PAUSE


def compare(kind: str, work: Callable[[int], float]) -> None:
    """Print the ratio of one worker's time to two workers'."""
    took = []
    for workers in (1, 2):
        silent = contextlib.redirect_stdout(io.StringIO())
        with tempfile.TemporaryDirectory() as place, contextlib.chdir(place), silent:
            took.append(work(workers))
    one, two = took
    aim = " (aim at least 1.8)" if kind.startswith("sleeping") else ""
    print(f"{kind}: one worker {one:.1f} s, two {two:.1f} s: {one / two:.2f} times as fast{aim}")


def main() -> None:
    """Notebooks that sleep and that count, and an encoder that sleeps."""
    notebooks = int(sys.argv[1]) if sys.argv[1:] else 4
    print(
        f"{notebooks} notebooks of 8 s, {available_cores()} cores, {os.getloadavg()[0]:.1f} at"
        " work before"
    )
    for kind, cell in CELLS.items():
        compare(kind, lambda workers, cell=cell: run(cell, notebooks, workers))
    compare("sleeping encoder", embed)


if __name__ == "__main__":
    main()
