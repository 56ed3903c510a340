"""What random kills cost: `python -m tests.timing.soak [KILLS] [SEED]`.

Two processes embed the small Field Guide and two ask about it, by the kit's own small
models. One of the four after another, drawn by chance, is killed by SIGKILL at a random
moment, and another begins in its place, until all is done; then anew, until there have
been so many kills. Lost is what is not there in the end. Nothing may be asked twice but
the batch that a process was at when it was killed, nothing encoded twice but its shard;
and every table and shard has the bytes of those of a run that nobody disturbed.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.timing.soak_worker import SHARD, start

KINDS = ("embed", "embed", "ask", "ask")
LONGEST = 0.5
"""Seconds between two kills, at most."""


@dataclass
class Count:
    """What came of it, by kinds of work."""

    kills: Counter[str] = field(default_factory=Counter)
    again: Counter[str] = field(default_factory=Counter)  # what was in flight at a kill
    twice: Counter[str] = field(default_factory=Counter)  # what was not
    lost: int = 0  # shards, rows of tables
    wrong: list[str] = field(default_factory=list)  # everything else that should not be

    def __str__(self) -> str:
        lines = [f"{self.kills.total():,} kills"]
        for kind in self.kills:
            kills, again, twice = (each[kind] for each in (self.kills, self.again, self.twice))
            lines.append(f"{kind}: {kills:,} kills, {again:,} done again, {twice:,} without need")
        return "; ".join([*lines, f"lost {self.lost}", f"wrong {len(self.wrong)}"])


def made(place: Path) -> dict[str, bytes]:
    """Shards and tables by their names and bytes."""
    found = {file.name: file.read_bytes() for file in place.glob("kept/*/shard-*")}
    tables = {file.read_bytes() for file in place.glob("table-*.csv")}
    found.update({f"table {number}": table for number, table in enumerate(sorted(tables))})
    return found


def told(place: Path) -> str:
    """What processes said of errors."""
    logs = [file.read_text(encoding="utf-8") for file in sorted(place.glob("log-*"))]
    return "\n".join(log for log in logs if log.strip())


def storm(place: Path, kills: int, rng: random.Random, count: Count) -> set[str]:
    """Let all be done in spite of as many kills; returns the notes of who was killed."""
    (place / "notes").mkdir(parents=True)
    killed: set[str] = set()
    at_work: list[tuple[str, BaseProcess]] = [(kind, start(kind, place)) for kind in KINDS]
    while at_work:
        time.sleep(rng.uniform(0, LONGEST))
        for kind, process in list(at_work):
            if process.exitcode is not None:
                at_work.remove((kind, process))
                if process.exitcode:
                    count.wrong.append(f"{kind} ended with {process.exitcode}: {told(place)}")
        if at_work and len(killed) < kills:
            kind, process = at_work.pop(rng.randrange(len(at_work)))
            process.kill()
            process.join()
            if process.exitcode:  # it was not faster
                killed.add(f"{kind}-{process.pid}")
                count.kills[kind] += 1
                at_work.append((kind, start(kind, place)))
    return killed


def in_flight(note: Path) -> set[str]:
    """What a process that was killed may leave to be done again: its last batch of
    prompts, or the documents of its last shard.
    """
    lines = [line.split() for line in note.read_text(encoding="ascii").splitlines()]
    if note.name.startswith("ask"):
        return set(lines[-1])
    last = int(lines[-1][0]) // SHARD
    return {str(number) for number in range(last * SHARD, (last + 1) * SHARD)}


def judge(place: Path, killed: set[str], right: dict[str, bytes], count: Count) -> None:
    """Count what was done again, and what is not as in an undisturbed run."""
    done: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    excused: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for note in (place / "notes").iterdir():
        kind = note.name.partition("-")[0]
        names = note.read_text(encoding="ascii").split()
        done[kind].update(names)
        if note.name in killed:
            excused[kind].update(in_flight(note) & set(names))
    for kind, counts in done.items():
        for name, times in counts.items():
            needless = max(0, times - 1 - excused[kind][name])
            count.twice[kind] += needless
            count.again[kind] += times - 1 - needless
    found = made(place)
    for name in right.keys() | found.keys():
        if name not in found:
            count.lost += 1
        elif found[name] != right.get(name):
            count.wrong.append(f"{place.name}: {name} is not as in an undisturbed run")


def main() -> None:
    """Storms until there were so many kills, after a run that nobody disturbs."""
    kills = int(sys.argv[1]) if sys.argv[1:] else 1000
    seed = int(sys.argv[2]) if sys.argv[2:] else 0
    rng, count = random.Random(seed), Count()
    with tempfile.TemporaryDirectory() as folder:
        calm = Path(folder, "calm")
        storm(calm, 0, rng, count)
        right = made(calm)
        judge(calm, set(), right, count)
        while count.kills.total() < kills:
            place = Path(folder, str(count.kills.total()))
            killed = storm(place, kills - count.kills.total(), rng, count)
            judge(place, killed, right, count)
            print(count, flush=True)
    print(*count.wrong, sep="\n")
    sys.exit(bool(count.lost or count.twice.total() or count.wrong))


if __name__ == "__main__":
    main()
