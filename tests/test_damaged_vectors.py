"""Vectors that were damaged on disk are found, set aside and embedded again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import WEIGHTS
from test_known_again import copied
from test_retrieval import ColorEncoder, ask, pictures

from vrag_kit.errors import VragError
from vrag_kit.retrieval import embed_documents, search_one
from vrag_kit.retrieval.dense import dense_run
from vrag_kit.retrieval.shards import open_vectors, read_index, unpack, write_shard
from vrag_kit.types import Benchmark

RETRIEVER = str(WEIGHTS / "field-guide-clip-32")
Damage = Callable[[Path], None]


def random_bytes(vectors: Path) -> None:
    """4 KB, as of a bad sector."""
    content = bytearray(vectors.read_bytes())
    content[20_000:24_096] = np.random.default_rng(0).bytes(4096)
    vectors.write_bytes(content)


def edited(change: Callable[[np.ndarray], object]) -> Damage:
    """Vectors changed in their file, whose columns stay."""

    def damage(vectors: Path) -> None:
        rows = np.load(vectors)
        change(rows)
        np.save(vectors, rows)

    return damage


def set_rows(rows: slice, value: float) -> Damage:
    return edited(lambda vectors: vectors.__setitem__(rows, value))


def turned_round(vectors: np.ndarray) -> None:
    vectors[:] = vectors[::-1].copy()


def flipped_bytes(vectors: Path) -> None:
    """In the ids and what stands beside them."""
    index = vectors.with_suffix(".json.gz")
    content = bytearray(index.read_bytes())
    for place in range(len(content) // 3, len(content) // 3 + 8):
        content[place] ^= 0xFF
    index.write_bytes(content)


DAMAGES: dict[str, Damage] = {
    "random bytes": random_bytes,
    "a row of NaN": set_rows(slice(3, 4), np.nan),
    "every second row zero": set_rows(slice(None, None, 2), 0),
    "rows turned round": edited(turned_round),
    "flipped bytes beside": flipped_bytes,
}


@pytest.fixture(scope="module")
def few(guide: Benchmark) -> Benchmark:
    """The small guide's questions over 48 of its images."""
    corpus = dict(list(guide.corpus.items())[:48])
    return replace(guide, corpus=corpus, qrels={}, pools=None, left_out={})


@pytest.fixture(scope="module")
def kept(few: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pd.DataFrame]:
    """The embeddings of few images, and a run."""
    root = tmp_path_factory.mktemp("embeddings")
    return root, search_one(few, RETRIEVER, k=10, cache_dir=root)


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_shard_is_found_and_embedded_again(
    damage: Damage,
    kept: tuple[Path, pd.DataFrame],
    few: Benchmark,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = Path(shutil.copytree(kept[0], tmp_path / "embeddings"))
    (vectors,) = root.glob("*/shard-*.npy")
    shutil.rmtree(vectors.parent / "runs")  # no finished search is read back
    damage(vectors)
    run = search_one(few, RETRIEVER, k=10, cache_dir=root)
    said = capsys.readouterr().out
    assert f"{vectors}: damaged shard" in said
    assert said.count("damaged shard") == 1
    assert "0 from disk, 48 new" in said
    pd.testing.assert_frame_equal(run, kept[1])
    assert vectors.with_name(f"{vectors.name}.damaged").is_file()
    shutil.rmtree(vectors.parent / "runs")
    search_one(few, RETRIEVER, k=10, cache_dir=root)
    assert "48 from disk, 0 new" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".npy", ".json.gz"])
def test_no_flipped_bit_changes_a_row_or_ends_the_process(tmp_path: Path, ending: str) -> None:
    vectors = np.eye(4, dtype=np.float32)
    ids, versions = ["a", "b", "c", "d"], ["1", "2", "3", "4"]
    encoder = ColorEncoder()
    shard = write_shard(tmp_path, ids, versions, vectors, encoder.fingerprint, ["e" * 32] * 4)
    damaged = shard.with_suffix(ending)
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for place in range(len(files[damaged])):
        for path, content in files.items():
            path.write_bytes(content)
        content = bytearray(files[damaged])
        content[place] ^= 1
        damaged.write_bytes(content)
        index = read_index(shard, encoder)
        if index is not None:
            assert (index.doc_ids, index.versions) == (ids, versions)
            np.testing.assert_array_equal(open_vectors(shard), vectors)
            assert ending == ".json.gz", place  # whose first bytes have no meaning


IN_A_NEW_PROCESS = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_retrieval as t
place, encoder = Path(sys.argv[1]), t.ColorEncoder()
t.embed_documents(encoder, t.pictures_there(place / "x", 6), place / "store")
print("encoded", encoder.encoded)
"""


@pytest.mark.slow
def test_a_flipped_bit_is_found_by_the_next_process_though_no_time_changed(tmp_path: Path) -> None:
    documents = pictures(tmp_path / "x", 6)
    folder = embed_documents(ColorEncoder(), documents, tmp_path / "store").folder
    (vectors,) = folder.glob("*.npy")
    status = vectors.stat()
    content = bytearray(vectors.read_bytes())
    content[-1] ^= 1
    with vectors.open("r+b") as file:  # the same inode
        file.write(content)
    os.utime(vectors, ns=(status.st_atime_ns, status.st_mtime_ns))
    command = [sys.executable, "-c", IN_A_NEW_PROCESS, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"{vectors}: damaged shard" in done.stdout
    assert "encoded 6" in done.stdout


def test_vectors_that_are_damaged_after_they_were_looked_at_stop_the_search(
    tmp_path: Path,
) -> None:
    encoder = ColorEncoder()
    embeddings = embed_documents(encoder, pictures(tmp_path / "x", 6), tmp_path / "store")
    (vectors,) = embeddings.folder.glob("*.npy")
    edited(turned_round)(vectors)
    with pytest.raises(VragError, match=rf"{vectors.name}: .*checksum differs\). Search again"):
        dense_run(encoder, embeddings, [ask([1, 2, 3])], 3)


def test_only_the_damaged_one_of_several_shards_is_embedded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vrag_kit.retrieval.embedding_cache.SHARD", 4)
    documents = pictures(tmp_path / "x", 12)
    before = embed_documents(ColorEncoder(), documents, tmp_path / "store")
    first, second, _ = sorted(before.folder.glob("*.npy"))
    expected = before.vectors(before.doc_ids).copy()
    first.write_bytes(first.read_bytes()[:-1] + b"?")
    encoder = ColorEncoder()
    after = embed_documents(encoder, documents, tmp_path / "store")
    assert encoder.encoded == 4
    np.testing.assert_array_equal(after.vectors(after.doc_ids), expected)
    content, other = (path.read_bytes() for path in (first, second))  # of one size
    first.write_bytes(other)
    second.write_bytes(content)
    encoder = ColorEncoder()
    after = embed_documents(encoder, documents, tmp_path / "store")
    assert encoder.encoded == 8
    np.testing.assert_array_equal(after.vectors(after.doc_ids), expected)


def test_damaged_vectors_are_not_taken_for_a_document_that_shows_the_same(tmp_path: Path) -> None:
    documents = pictures(tmp_path / "x", 6)
    before = embed_documents(ColorEncoder(), documents, tmp_path / "store")
    expected = before.vectors(before.doc_ids).copy()
    (vectors,) = before.folder.glob("*.npy")
    edited(turned_round)(vectors)
    encoder = ColorEncoder()
    there = copied(documents, tmp_path / "x", tmp_path / "copy")
    after = embed_documents(encoder, there, tmp_path / "store")
    assert encoder.encoded == 6
    np.testing.assert_array_equal(after.vectors(after.doc_ids), expected)


@pytest.mark.parametrize(("value", "length"), [(np.nan, "nan"), (0, "0"), (np.inf, "inf")])
def test_a_row_that_was_written_as_no_direction_is_an_error_that_names_shard_and_document(
    tmp_path: Path, value: float, length: str
) -> None:
    documents = pictures(tmp_path / "x", 3)
    folder = embed_documents(ColorEncoder(), documents, tmp_path / "store").folder
    rewritten(folder, lambda vectors: vectors.__setitem__(1, value))
    with pytest.raises(VragError, match=rf"shard-\w+\.npy: .* 'x/001\.png' has length {length}"):
        embed_documents(ColorEncoder(), documents, tmp_path / "store")


def test_vectors_of_any_length_are_right_unless_their_encoder_says_otherwise(
    tmp_path: Path,
) -> None:
    documents = pictures(tmp_path / "x", 3)
    folder = embed_documents(ColorEncoder(), documents, tmp_path / "store").folder
    rewritten(folder, lambda vectors: vectors.__imul__(1000))
    encoder = ColorEncoder()
    embed_documents(encoder, documents, tmp_path / "store")
    assert encoder.encoded == 0
    encoder.normalized = True
    with pytest.raises(VragError, match=r"shard-\w+\.npy: .*'x/000\.png' .*expected 1 \(3 such"):
        embed_documents(encoder, documents, tmp_path / "store")


def rewritten(folder: Path, change: Callable[[np.ndarray], object]) -> None:
    """The same shard, written with other vectors."""
    (path,) = folder.glob("*.json.gz")
    index = unpack(path.read_bytes())
    vectors = np.load(next(folder.glob("*.npy")))
    change(vectors)
    write_shard(folder, index["doc_ids"], index["versions"], vectors, ColorEncoder.fingerprint)


def test_a_shard_of_another_encoder_is_named_and_nothing_is_changed(tmp_path: Path) -> None:
    class Other(ColorEncoder):
        name, fingerprint = "other", "1" * 64

    documents = pictures(tmp_path / "x", 3)
    ours, theirs = (
        embed_documents(encoder, documents, tmp_path / "store").folder
        for encoder in (ColorEncoder(), Other())
    )
    for file in theirs.glob("shard-*"):
        shutil.copy(file, ours)
    with pytest.raises(VragError, match=r"color-0+/shard-\w+\.npy: .* 1{12}; expected 0{12}\."):
        embed_documents(ColorEncoder(), documents, tmp_path / "store")
    assert not list(ours.glob("*.damaged"))


def test_a_damaged_shard_that_cannot_be_set_aside_is_an_error_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = pictures(tmp_path / "x", 3)
    folder = embed_documents(ColorEncoder(), documents, tmp_path / "store").folder
    (vectors,) = folder.glob("*.npy")
    edited(turned_round)(vectors)

    def refuse(self: Path, target: Path) -> Path:
        raise OSError(30, "Read-only file system", str(self))

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(VragError, match=rf"{vectors.name}: damaged .*\(Read-only file system\)"):
        embed_documents(ColorEncoder(), documents, tmp_path / "store")
    assert not list(folder.glob("*.damaged"))


@pytest.mark.slow
def test_vectors_of_questions_pictures_are_held_against_their_checksum(
    few: Benchmark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {
        query.query_id: replace(query, image=document.image)
        for query, document in zip(few.queries.values(), few.corpus.values(), strict=False)
    }
    benchmark = replace(few, queries=asked)
    entry = {"model": RETRIEVER, "query": "image"}
    before = search_one(benchmark, entry, k=5, cache_dir=tmp_path)
    (vectors,) = tmp_path.glob("*/queries-*/shard-*.npy")
    shutil.rmtree(vectors.parents[1] / "runs")
    edited(turned_round)(vectors)
    after = search_one(benchmark, entry, k=5, cache_dir=tmp_path)
    assert f"{vectors}: damaged shard" in capsys.readouterr().out
    assert after.equals(before)
