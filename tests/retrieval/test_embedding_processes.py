"""Processes that embed one corpus share it, and a death of one harms no other."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT
from retrieval_data import BATCH, COUNT, SHARD, ColorEncoder, encoded, pictures, work

from vrag_kit.retrieval import embed_documents, embedding_cache
from vrag_kit.retrieval.embedding_cache import ShardPart
from vrag_kit.retrieval.shards import list_shards, open_vectors

pytestmark = pytest.mark.slow
WORKER = f"""
import contextlib, os, signal, sys, time
from pathlib import Path
sys.path.insert(0, {str(ROOT / "tests")!r})
from retrieval_data import BATCH, SHARD, ColorEncoder, work
from vrag_kit.retrieval import embedding_cache, shards

place = Path(sys.argv[1])
embedding_cache.SHARD, embedding_cache.BATCH = SHARD, BATCH
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(embedding_cache, "SHARD", SHARD)
    monkeypatch.setattr(embedding_cache, "BATCH", BATCH)
    pictures(tmp_path / "x", COUNT)
    return tmp_path


def start(place: Path, script: str = "work(place)") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORKER + script, str(place)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def status(worker: subprocess.Popen[str]) -> int:
    worker.communicate(timeout=120)
    return worker.returncode


def left_to_embed(place: Path) -> int:
    """How many documents one more run encodes; it finds the right vector of each."""
    encoder, documents = ColorEncoder(), pictures(place / "x", COUNT)
    found = embed_documents(encoder, documents, place / "store")
    expected = np.stack([encoder.prepare(document) for document in documents])
    np.testing.assert_array_equal(found.vectors(found.doc_ids), expected)
    assert not list((place / "store").rglob("*.part"))
    return encoder.encoded


def shards_in(store: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in store.glob("*/shard-*")}


def test_two_processes_share_a_corpus_and_encode_nothing_twice(place: Path) -> None:
    workers = [start(place) for _ in range(2)]
    assert [status(worker) for worker in workers] == [0, 0]
    assert encoded(place) == COUNT
    assert left_to_embed(place) == 0
    assert not list((place / "store").rglob(".shard-*"))  # nor is a lock left


def test_parts_that_overlap_and_repeat_in_any_order_are_the_whole(place: Path) -> None:
    for number, of in ((2, 3), (3, 3), (1, 2), (3, 3), (2, 2), (1, 3)):
        work(place, ShardPart(number, of))
    assert encoded(place) == COUNT
    assert left_to_embed(place) == 0
    work(place, store="other")
    assert shards_in(place / "store") == shards_in(place / "other")


@pytest.mark.parametrize("moment", [".npy", ".gz", "after"])
def test_a_worker_killed_while_it_writes_its_third_shard_costs_that_shard_at_most(
    place: Path, moment: str
) -> None:
    script = f"""
write, count, after = shards.write_file, 0, {moment!r} == "after"
def write_and_die(path, content):
    global count
    count += path.suffix == (".gz" if after else {moment!r})
    if after:
        write(path, content)
    if count == 3:
        (path.parent / f".{{path.name}}.part").write_bytes(content[:50])
        os.kill(os.getpid(), signal.SIGKILL)
    if not after:
        write(path, content)
shards.write_file = write_and_die
work(place)
"""
    assert status(start(place, script)) == -signal.SIGKILL
    work(place)
    whole = 2 + (moment == "after")
    assert encoded(place) - COUNT <= (3 - whole) * SHARD + BATCH  # and a batch that was begun
    for part in (place / "store").rglob("*.part"):
        part.unlink()
    assert left_to_embed(place) == 0


def test_without_locks_two_that_make_the_same_shards_leave_each_whole(place: Path) -> None:
    """Each makes every shard, four times over, and a third one reads meanwhile."""
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
    folder, reads = place / "store" / f"color-{'0' * 12}", 0
    while any(worker.poll() is None for worker in workers):
        for shard in list_shards(folder):
            assert (open_vectors(shard) >= 1).all()
            reads += 1
    assert [status(worker) for worker in workers] == [0, 0]
    assert reads
    assert encoded(place) == 2 * 4 * COUNT
    assert left_to_embed(place) == 0
    assert not list(folder.glob("*.damaged"))


def test_the_shard_of_a_process_that_died_is_made_by_the_one_that_waits(place: Path) -> None:
    script = """
def stuck(encoder, prepared):
    print("holding", flush=True)
    time.sleep(600)
ColorEncoder.encode_documents = stuck
work(place)
"""
    holder = start(place, script)
    assert holder.stdout is not None
    while "holding" not in holder.stdout.readline():
        pass
    waiting = start(place)
    assert waiting.stdout is not None
    while "waiting: another process is embedding" not in waiting.stdout.readline():
        pass
    holder.kill()
    holder.wait()
    assert status(waiting) == 0
    assert encoded(place) == COUNT
    assert left_to_embed(place) == 0
