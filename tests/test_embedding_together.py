"""Processes that embed one corpus share it, and what befalls one of them harms no other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from slow_encoder import BATCH, COUNT, SHARD, Slow, encoded, pictures, work

from vrag_kit.retrieval import embed_documents, embedding_cache
from vrag_kit.retrieval.embedding_cache import ShardPart
from vrag_kit.retrieval.shards import list_shards, open_vectors

pytestmark = pytest.mark.slow
WORKER = f"""
import contextlib, os, resource, signal, sys, time
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
import slow_encoder
from slow_encoder import BATCH, COUNT, SHARD, Slow, work
from vrag_kit.retrieval import embedding_cache, shards
from vrag_kit.retrieval.embedding_cache import ShardPart

place = Path(sys.argv[1])
embedding_cache.SHARD = SHARD
embedding_cache.BATCH = BATCH
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(embedding_cache, "SHARD", SHARD)
    monkeypatch.setattr(embedding_cache, "BATCH", BATCH)
    pictures(tmp_path)
    return tmp_path


def start(place: Path, script: str) -> subprocess.Popen[str]:
    """A worker of its own; `work(place)` embeds, `work(place, ShardPart(i, n))` a part."""
    return subprocess.Popen(
        [sys.executable, "-c", WORKER + script, str(place)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def done(worker: subprocess.Popen[str]) -> tuple[int, str]:
    """(how it ended, all that it printed)."""
    out, error = worker.communicate(timeout=120)
    return worker.returncode, out + error


def left_to_embed(place: Path) -> int:
    """How many documents one more run has to encode; it finds the right vector of each."""
    before = encoded(place)
    encoder = Slow(place)
    found = embed_documents(encoder, pictures(place), place / "store")
    expected = np.stack([encoder.prepare(document) for document in pictures(place)])
    np.testing.assert_array_equal(found.vectors(found.doc_ids), expected)
    assert not list((place / "store").rglob("*.part"))
    return encoded(place) - before


@pytest.mark.slow
def test_two_processes_share_a_corpus_and_encode_nothing_twice(place: Path) -> None:
    workers = [start(place, "work(place)") for _ in range(2)]
    assert [done(worker)[0] for worker in workers] == [0, 0]
    assert encoded(place) == COUNT
    assert left_to_embed(place) == 0
    assert not list((place / "store").rglob(".shard-*"))  # no lock is left either


@pytest.mark.slow
def test_parts_in_any_order_that_overlap_and_are_repeated_are_the_whole(place: Path) -> None:
    for part in (
        ShardPart(2, 3),
        ShardPart(3, 3),
        ShardPart(1, 2),
        ShardPart(3, 3),
        ShardPart(2, 2),
        ShardPart(1, 3),
    ):
        work(place, part)
    assert encoded(place) == COUNT
    assert left_to_embed(place) == 0
    work(place, store="other")
    here, there = (shards_in(place / name) for name in ("store", "other"))
    assert here == there  # the same shards, whoever made them


def shards_in(store: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in store.glob("*/shard-*")}


@pytest.mark.slow
@pytest.mark.parametrize("moment", [".npy", ".gz", "after"])
def test_a_worker_killed_while_it_writes_a_shard_costs_that_shard_at_most(
    place: Path, moment: str
) -> None:
    """It is killed with SIGKILL when it is about to write its third shard's vectors, or
    the columns beside them, or just after these.
    """
    killed = start(
        place,
        f"""
write, count = shards.write_file, 0
def write_and_die(path, content):
    global count
    count += path.suffix == ".gz" if {moment!r} == "after" else path.suffix == {moment!r}
    if {moment!r} == "after":
        write(path, content)
    if count == 3:
        (path.parent / f".{{path.name}}.part").write_bytes(content[:50])
        os.kill(os.getpid(), signal.SIGKILL)
    if {moment!r} != "after":
        write(path, content)
shards.write_file = write_and_die
work(place)
""",
    )
    assert done(killed)[0] == -signal.SIGKILL
    work(place)
    kept = 2 + (moment == "after")
    assert encoded(place) - COUNT <= (3 - kept) * SHARD + 2  # and a batch that was begun
    for part in (place / "store").rglob("*.part"):
        part.unlink()
    assert left_to_embed(place) == 0


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX resource limits")
def test_a_full_disk_of_one_worker_stops_that_one_and_its_part_can_be_repeated(
    place: Path,
) -> None:
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
    full = start(
        place, f"{limit}signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nwork(place, ShardPart(1, 2))"
    )
    other = start(place, "work(place, ShardPart(2, 2))")
    code, said = done(full)
    assert code == 1
    assert "embeddings cannot be stored (File too large)" in said
    assert done(other)[0] == 0
    work(place, ShardPart(1, 2))
    assert left_to_embed(place) == 0


@pytest.mark.slow
def test_two_that_make_the_same_shards_at_once_leave_each_whole(place: Path) -> None:
    """As where locks are no use: each believes that everything is its own, many times
    over, and a third one reads meanwhile.
    """
    script = """
shards.has_shard = lambda shard: False
class NoLock:
    def __init__(self, path):
        self.lock_file = path
    def acquire(self, timeout):
        return contextlib.nullcontext()
embedding_cache.FileLock = NoLock
shards.list_shards = lambda folder: []
for _ in range(4):
    work(place)
"""
    workers = [start(place, script) for _ in range(2)]
    reads = 0
    while any(worker.poll() is None for worker in workers):
        reads += look(place / "store")
    assert [done(worker)[0] for worker in workers] == [0, 0]
    assert reads
    assert encoded(place) == 2 * 4 * COUNT
    assert left_to_embed(place) == 0
    assert len(shards_in(place / "store")) == 2 * COUNT // SHARD


def look(store: Path) -> int:
    """Read whatever is there; returns how many whole shards were."""
    folder = store / f"color-{'0' * 12}"
    shards = list_shards(folder)
    for shard in shards:
        assert (open_vectors(shard) >= 1).all()
    assert not list(folder.glob("*.damaged"))
    return len(shards)


@pytest.mark.slow
def test_who_waits_for_a_dead_one_makes_its_shard(place: Path) -> None:
    """It is killed while it holds the lock of a shard that another one waits for."""
    holder = start(
        place,
        """
class Stuck(Slow):
    def encode_documents(self, prepared):
        print("holding", flush=True)
        time.sleep(600)
slow_encoder.Slow = Stuck
work(place)
""",
    )
    assert holder.stdout is not None
    while "holding" not in holder.stdout.readline():
        pass
    waiting = start(place, "work(place)")
    assert waiting.stdout is not None
    said = ""
    while "waiting: another process is embedding" not in said:
        said = waiting.stdout.readline()
    holder.kill()
    holder.wait()
    assert done(waiting)[0] == 0
    assert encoded(place) == COUNT
    assert left_to_embed(place) == 0
