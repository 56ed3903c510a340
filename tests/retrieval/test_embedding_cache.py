"""A document is encoded once, also by several processes; an interrupted run goes on, damage is
found and encoded again, and a bad vector is an error.
"""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from PIL import Image
from retrieval_data import COUNT, SHARD, ColorEncoder, ask, encoded, moved, pictures, refused, work

from vrag_kit.retrieval import embed_documents, embedding_cache
from vrag_kit.retrieval.dense import dense_run
from vrag_kit.retrieval.embedding_cache import ShardPart
from vrag_kit.types import Document


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A folder for embeddings in shards of four documents."""
    monkeypatch.setattr(embedding_cache, "SHARD", SHARD)
    monkeypatch.setattr(embedding_cache, "BATCH", SHARD // 2)
    return tmp_path / "store"


def embed(
    documents: Sequence[Document], store: Path, encoder: ColorEncoder | None = None
) -> tuple[int, np.ndarray]:
    """The number of documents that were encoded, and all vectors."""
    encoder = encoder or ColorEncoder()
    found = embed_documents(encoder, documents, store)
    return encoder.encoded, found.rows(np.arange(len(found)))


def redraw(path: Path) -> None:
    """Another image, whose vector is 256, 1, 1."""
    Image.new("RGB", (5, 5), (255, 0, 0)).save(path)


def test_only_new_and_changed_documents_are_encoded(tmp_path, store):
    documents = pictures(tmp_path / "x", 6)
    (n, vectors), (again, same) = embed(documents, store), embed(documents, store)
    elsewhere = moved(documents, tmp_path / "moved")
    assert (n, again, embed(elsewhere, store)[0]) == (6, 0, 0)
    np.testing.assert_array_equal(vectors, same)
    redraw(tmp_path / "moved" / "002.png")
    n, vectors = embed([*elsewhere, *pictures(tmp_path / "y", 1)], store)
    assert n == 2
    np.testing.assert_allclose(vectors[2], [256, 1, 1])


def test_what_changes_while_it_is_encoded_is_encoded_again(tmp_path, store):
    class Late(ColorEncoder):
        def prepare(self, document: Document) -> Any:
            made = super().prepare(document)
            if document.doc_id == "x/002.png":
                redraw(tmp_path / "x" / "002.png")
            return made

    documents = pictures(tmp_path / "x", 6)
    embed(documents, store, Late())
    n, vectors = embed(documents, store)
    assert n == 1
    np.testing.assert_allclose(vectors[2], [256, 1, 1])


def test_a_damaged_image_stops_and_finished_shards_stay(tmp_path, store):
    documents = pictures(tmp_path / "x", 12)
    (tmp_path / "x" / "010.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    refused(lambda: embed(documents, store), "010.png", "not a readable picture")
    assert embed(documents[:8], store)[0] == 0


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 0.0, 2.0])
def test_a_vector_without_a_direction_names_its_document(tmp_path, bad):
    class Bad(ColorEncoder):
        normalized = bad == 2.0

        def encode_documents(self, prepared: Sequence[Any]) -> np.ndarray:
            rows = super().encode_documents(prepared)
            rows[0] = bad
            return rows

    documents = pictures(tmp_path / "x", 3)
    refused(lambda: embed(documents, tmp_path / "store", Bad()), "'x/000.png' has length")


def test_empty_corpora_repeated_ids_and_a_file_as_store_are_refused(tmp_path):
    (first,) = pictures(tmp_path / "x", 1)
    refused(lambda: embed([first, first], tmp_path / "store"), f"two documents '{first.doc_id}'")
    refused(lambda: embed([], tmp_path / "store"), "corpus is empty")
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    refused(lambda: embed([first], tmp_path / "file"), "cannot be stored")


def test_a_full_disk_leaves_nothing_half_written(tmp_path, store):
    class Wide(ColorEncoder):
        def encode_documents(self, prepared: Sequence[Any]) -> np.ndarray:
            rows = super().encode_documents(prepared)
            return np.tile(rows, (1, 40_000 if self.encoded > SHARD else 400))

    documents, limits = pictures(tmp_path / "x", 8), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        refused(lambda: embed(documents, store, Wide()), "stored or read (File too large)")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert embed(documents[:SHARD], store)[0] == 0
    assert not list(store.rglob("*.part"))


def test_a_file_that_cannot_be_opened_is_no_damage(tmp_path, store):
    documents = pictures(tmp_path / "x", 3)
    embed(documents, store)
    (shard,) = store.glob("*/*.npy")
    kept = shard.rename(shard.with_name("elsewhere"))
    shard.symlink_to(shard)  # a ring of links
    refused(lambda: embed(documents, store), shard.name, "cannot be stored or read")
    kept.replace(shard)
    assert embed(documents, store)[0] == 0


# damage on the disk


def changed(suffix: str, change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    """Changes the bytes of a shard's file."""

    def damage(vectors: Path) -> None:
        file = vectors.with_suffix(suffix)
        file.write_bytes(change(file.read_bytes()))

    return damage


def turned_round(vectors: Path) -> None:
    np.save(vectors, np.load(vectors)[::-1])


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no vectors": Path.unlink,
    "empty vectors": changed(".npy", lambda content: b""),
    "a flipped bit": changed(".npy", lambda content: content[:-1] + bytes([content[-1] ^ 1])),
    "rows turned round": turned_round,
    "no columns": changed(".json.gz", lambda content: b"[]"),
    "half an index": changed(".json.gz", lambda content: content[: len(content) // 2]),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_only_a_damaged_shard_is_removed_and_encoded_again(damage, tmp_path, store, capsys):
    documents = pictures(tmp_path / "x", 8)
    _, expected = embed(documents, store)
    vectors = min(store.glob("*/*.npy"))
    damage(vectors)
    n, rows = embed(documents, store)
    assert n == SHARD
    np.testing.assert_array_equal(rows, expected)
    assert capsys.readouterr().out.count(f"{vectors}: damaged shard") == 1
    assert embed(documents, store)[0] == 0


def test_damage_after_the_check_stops_the_search_and_what_cannot_be_removed_is_named(
    tmp_path, store, monkeypatch
):
    documents, encoder = pictures(tmp_path / "x", 3), ColorEncoder()
    embeddings = embed_documents(encoder, documents, store)
    (vectors,) = store.glob("*/*.npy")
    turned_round(vectors)
    search = partial(dense_run, encoder, embeddings, [ask([1, 2, 3])], 3)
    refused(search, vectors.name, "checksum differs", "Search again")

    def refuse(self: Path, *, missing_ok: bool) -> None:
        raise OSError(30, "Read-only file system", str(self))

    monkeypatch.setattr(Path, "unlink", refuse)
    refused(lambda: embed(documents, store), "shard-", "Read-only file system")


# several processes

WORKER = f"""
import os, signal, sys, time
from pathlib import Path
sys.path.insert(0, {str(ROOT / "tests")!r})
from retrieval_data import BATCH, SHARD, ColorEncoder, work
from vrag_kit.retrieval import embedding_cache, shards

place = Path(sys.argv[1])
embedding_cache.SHARD, embedding_cache.BATCH = SHARD, BATCH
"""


@pytest.fixture
def place(tmp_path, store):
    pictures(tmp_path / "x", COUNT)
    return tmp_path


def start(place: Path, script: str = "work(place)") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORKER + script, str(place)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def status(worker: subprocess.Popen[str]) -> int:
    worker.communicate(timeout=120)
    return worker.returncode


def saying(worker: subprocess.Popen[str], word: str) -> None:
    """Wait until it says this."""
    while word not in worker.stdout.readline():
        pass


def left_to_embed(place: Path) -> int:
    """How many documents one more run encodes; it finds the right vector of each."""
    documents = pictures(place / "x", COUNT)
    n, vectors = embed(documents, place / "store")
    np.testing.assert_array_equal(vectors, [ColorEncoder().prepare(each) for each in documents])
    return n


def test_parts_that_overlap_and_repeat_in_any_order_are_the_whole(place):
    for number, of in ((2, 3), (3, 3), (1, 2), (3, 3), (2, 2), (1, 3)):
        work(place, ShardPart(number, of))
    assert encoded(place) == COUNT
    assert left_to_embed(place) == 0
    work(place, store="other")
    ours, others = (
        {path.name: path.read_bytes() for path in place.glob(f"{name}/*/shard-*")}
        for name in ("store", "other")
    )
    assert ours == others


@pytest.mark.slow
def test_a_worker_killed_while_it_writes_costs_one_shard(place):
    script = """
write, count = shards.write_file, 0
def write_and_die(path, content):
    global count
    count += path.suffix == ".gz"
    if count == 3:
        (path.parent / f".{path.name}.part").write_bytes(content[:50])
        os.kill(os.getpid(), signal.SIGKILL)
    write(path, content)
shards.write_file = write_and_die
work(place)
"""
    assert status(start(place, script)) == -signal.SIGKILL
    work(place)
    assert encoded(place) - COUNT <= SHARD + SHARD // 2  # and a batch that was begun
    assert left_to_embed(place) == 0


@pytest.mark.slow
def test_a_process_waits_for_another_and_goes_on_where_it_died(place):
    script = """
encode = ColorEncoder.encode_documents
def stuck(encoder, prepared):
    if encoder.encoded == 2 * SHARD:
        print("holding", flush=True)
        time.sleep(600)
    return encode(encoder, prepared)
ColorEncoder.encode_documents = stuck
work(place)
"""
    waits = 'print("waiting", flush=True)\nwork(place)\n'
    workers = [start(place, script)]
    saying(workers[0], "holding")
    for _ in range(2):
        workers.append(start(place, waits))
        saying(workers[-1], "waiting")
    time.sleep(1)
    workers[0].kill()
    assert [status(each) for each in workers] == [-signal.SIGKILL, 0, 0]
    assert encoded(place) == COUNT
    assert left_to_embed(place) == 0
