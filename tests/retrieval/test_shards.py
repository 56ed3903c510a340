"""Vectors that were damaged on disk are found, set aside and encoded again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from retrieval_data import ColorEncoder, ask, pictures, refused

from vrag_kit.retrieval import embed_documents
from vrag_kit.retrieval.dense import dense_run
from vrag_kit.retrieval.shards import (
    Embeddings,
    open_vectors,
    read_index,
    unpack,
    write_shard,
)

Change = Callable[[np.ndarray], object]
SET_ASIDE = "*.damaged"


def embedded(tmp_path: Path, count: int = 6) -> tuple[Embeddings, Path]:
    """Embeddings, and the file of their vectors."""
    found = embed_documents(ColorEncoder(), pictures(tmp_path / "x", count), tmp_path / "store")
    (vectors,) = found.folder.glob("*.npy")
    return found, vectors


def again(tmp_path: Path, count: int = 6) -> tuple[int, np.ndarray]:
    """The number of documents that were encoded, and all vectors."""
    encoder = ColorEncoder()
    found = embed_documents(encoder, pictures(tmp_path / "x", count), tmp_path / "store")
    return encoder.encoded, found.vectors(found.doc_ids)


def edited(change: Change) -> Callable[[Path], object]:
    """Vectors are changed in their file, and the index stays."""

    def damage(vectors: Path) -> None:
        rows = np.load(vectors)
        change(rows)
        np.save(vectors, rows)

    return damage


def bytes_at(suffix: str, change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    def damage(vectors: Path) -> None:
        file = vectors.with_suffix(suffix)
        file.write_bytes(change(file.read_bytes()))

    return damage


def turned_round(rows: np.ndarray) -> None:
    rows[:] = rows[::-1].copy()


def flipped(content: bytes) -> bytes:
    third = len(content) // 3
    return (
        content[:third]
        + bytes(byte ^ 0xFF for byte in content[third : third + 8])
        + (content[third + 8 :])
    )


def index_of_fewer(vectors: Path) -> None:
    path = vectors.with_suffix(".json.gz")
    index = unpack(path.read_bytes())
    made = write_shard(
        vectors.parents[2], index["doc_ids"][:2], index["versions"][:2], np.load(vectors)[:2], "0"
    )
    path.write_bytes(made.with_suffix(".json.gz").read_bytes())


DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut vectors": bytes_at(".npy", lambda content: content[:-20]),
    "no vectors": Path.unlink,
    "empty vectors": bytes_at(".npy", lambda content: b""),
    "another byte": bytes_at(".npy", lambda content: content[:-1] + b"?"),
    "a row of NaN": edited(lambda rows: rows.__setitem__(1, np.nan)),
    "zero rows": edited(lambda rows: rows.__setitem__(slice(None, None, 2), 0)),
    "rows turned round": edited(turned_round),
    "no columns": bytes_at(".json.gz", lambda content: b"[]"),
    "half an index": bytes_at(".json.gz", lambda content: content[: len(content) // 2]),
    "flipped bytes in the index": bytes_at(".json.gz", flipped),
    "an index of fewer rows": index_of_fewer,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_shard_is_set_aside_and_encoded_again(
    damage: Callable[[Path], object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, vectors = embedded(tmp_path)
    expected = found.vectors(found.doc_ids).copy()
    damage(vectors)
    capsys.readouterr()
    n, rows = again(tmp_path)
    assert n == 6
    np.testing.assert_array_equal(rows, expected)
    assert capsys.readouterr().out.count(f"{vectors}: damaged shard") == 1
    assert list(found.folder.glob(SET_ASIDE))
    assert again(tmp_path)[0] == 0


def test_only_the_damaged_shards_are_encoded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vrag_kit.retrieval.embedding_cache.SHARD", 4)
    _, expected = again(tmp_path, 12)
    first, second, _ = sorted((tmp_path / "store").glob("*/*.npy"))
    first.write_bytes(first.read_bytes()[:-1] + b"?")
    n, rows = again(tmp_path, 12)
    assert n == 4
    np.testing.assert_array_equal(rows, expected)
    content, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(content)
    n, rows = again(tmp_path, 12)
    assert n == 8
    np.testing.assert_array_equal(rows, expected)


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".npy", ".json.gz"])
def test_no_flipped_bit_changes_a_row_or_ends_the_process(tmp_path: Path, ending: str) -> None:
    vectors, encoder = np.eye(4, dtype=np.float32), ColorEncoder()
    ids, versions = ["a", "b", "c", "d"], ["1", "2", "3", "4"]
    shard = write_shard(tmp_path, ids, versions, vectors, encoder.fingerprint, ["e" * 32] * 4)
    damaged = shard.with_suffix(ending)
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for place in range(len(files[damaged])):
        for path, whole in files.items():
            path.write_bytes(whole)
        content = bytearray(files[damaged])
        content[place] ^= 1
        damaged.write_bytes(content)
        index = read_index(shard, encoder)
        if index is not None:
            assert (index.doc_ids, index.versions) == (ids, versions)
            np.testing.assert_array_equal(open_vectors(shard), vectors)
            assert ending == ".json.gz", place  # whose first bytes have no meaning


def test_damage_after_the_check_stops_the_search(tmp_path: Path) -> None:
    embeddings, vectors = embedded(tmp_path)
    edited(turned_round)(vectors)
    query = ask([1, 2, 3])
    tokens = (vectors.name, "checksum differs", "Search again")
    refused(lambda: dense_run(ColorEncoder(), embeddings, [query], 3), *tokens)


def rewritten(vectors: Path, change: Change) -> None:
    """The same shard, written with other vectors."""
    index, rows = unpack(vectors.with_suffix(".json.gz").read_bytes()), np.load(vectors)
    change(rows)
    ids, versions = index["doc_ids"], index["versions"]
    write_shard(vectors.parent, ids, versions, rows, ColorEncoder.fingerprint)


@pytest.mark.parametrize(("value", "length"), [(np.nan, "nan"), (0, "0"), (np.inf, "inf")])
def test_a_row_written_without_a_direction_is_an_error_that_names_shard_and_document(
    tmp_path: Path, value: float, length: str
) -> None:
    _, vectors = embedded(tmp_path)
    rewritten(vectors, lambda rows: rows.__setitem__(1, value))
    refused(lambda: again(tmp_path), vectors.name, f"'x/001.png' has length {length}")


def test_vectors_have_any_length_unless_their_encoder_normalizes(tmp_path: Path) -> None:
    _, vectors = embedded(tmp_path)
    rewritten(vectors, lambda rows: rows.__imul__(1000))
    assert again(tmp_path)[0] == 0
    encoder = ColorEncoder()
    encoder.normalized = True
    documents, tokens = pictures(tmp_path / "x", 6), (vectors.name, "'x/000.png'", "expected 1 (6")
    refused(lambda: embed_documents(encoder, documents, tmp_path / "store"), *tokens)


def test_a_shard_of_another_encoder_is_named_and_nothing_is_changed(tmp_path: Path) -> None:
    class Other(ColorEncoder):
        name, fingerprint = "other", "1" * 64

    _, vectors = embedded(tmp_path)
    theirs = embed_documents(Other(), pictures(tmp_path / "x", 6), tmp_path / "store").folder
    for file in theirs.glob("shard-*"):
        shutil.copy(file, vectors.parent)
    refused(lambda: again(tmp_path), "/shard", "npy", "1" * 12, "expected 000000000000.")
    assert not list(vectors.parent.glob(SET_ASIDE))


def test_a_damaged_shard_that_cannot_be_set_aside_is_an_error_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, vectors = embedded(tmp_path)
    edited(turned_round)(vectors)

    def refuse(self: Path, target: Path) -> Path:
        raise OSError(30, "Read-only file system", str(self))

    monkeypatch.setattr(Path, "replace", refuse)
    refused(lambda: again(tmp_path), f"{vectors.name}: damaged", "Read-only file system")
    assert not list(vectors.parent.glob(SET_ASIDE))
