"""A document is encoded once, an interrupted run goes on, and a bad vector is an error."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from PIL import Image
from retrieval_data import ColorEncoder, copied, pictures, refused

from vrag_kit.errors import VragError
from vrag_kit.retrieval import embed_documents, embedding_cache
from vrag_kit.retrieval.encoders.custom import load_custom_encoder
from vrag_kit.types import Document

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX resource limits")


def embed(
    documents: Sequence[Document], store: Path, encoder: ColorEncoder | None = None
) -> tuple[int, np.ndarray]:
    """The number of documents that were encoded, and all vectors."""
    encoder = encoder or ColorEncoder()
    found = embed_documents(encoder, documents, store)
    return encoder.encoded, found.vectors(found.doc_ids)


def redraw(path: Path) -> None:
    """Another image, whose vector is 256, 1, 1."""
    Image.new("RGB", (5, 5), (255, 0, 0)).save(path)


def test_documents_are_encoded_once_wherever_their_files_are(tmp_path: Path) -> None:
    documents, store = pictures(tmp_path / "x", 10), tmp_path / "store"
    (n, vectors), (again, same) = embed(documents, store), embed(documents, store)
    elsewhere, equal = embed(copied(documents, tmp_path / "copy"), store)
    assert (n, again, elsewhere) == (10, 0, 0)
    np.testing.assert_array_equal(vectors, same)
    np.testing.assert_array_equal(vectors, equal)
    (manifest,) = store.glob("*/manifest.json")
    assert json.loads(manifest.read_text())["prompts"] == {"query": "the color {text}"}


@pytest.mark.parametrize("place", ["x", "copy"])
def test_only_new_and_changed_documents_are_encoded(tmp_path: Path, place: str) -> None:
    documents, store = pictures(tmp_path / "x", 6), tmp_path / "store"
    embed(documents, store)
    if place == "copy":
        documents = copied(documents, tmp_path / "copy")
    redraw(tmp_path / place / "002.png")
    new = pictures(tmp_path / "y", 8)[6:]  # the first ones show what those of x do
    n, vectors = embed([*documents, *new], store)
    assert n == 3
    np.testing.assert_allclose(vectors[2], [256, 1, 1])


def test_a_changed_text_of_the_same_length_is_encoded(tmp_path: Path) -> None:
    class Letters(ColorEncoder):
        def prepare(self, document: Document) -> Any:
            return np.array([ord(letter) for letter in document.text or ""], np.float32)

    for text in ("owl", "elk"):
        _, (row,) = embed([Document(doc_id="x", text=text)], tmp_path, Letters())
        assert row.tolist() == [ord(letter) for letter in text]


def test_a_file_is_read_only_where_its_stamp_differs(tmp_path: Path) -> None:
    documents, store = pictures(tmp_path / "x", 10), tmp_path / "store"
    embed(documents, store)
    copy = copied(documents, tmp_path / "copy")
    embed(copy, store)
    for path in [*(tmp_path / "x").iterdir(), *(tmp_path / "copy").iterdir()]:
        status = path.stat()
        path.write_bytes(bytes(status.st_size))  # the same size and time, and no image
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert embed(documents, store)[0] == embed(copy, store)[0] == 0


def test_what_changes_while_it_is_encoded_is_not_recognized_by_its_new_content(
    tmp_path: Path,
) -> None:
    class Late(ColorEncoder):
        def prepare(self, document: Document) -> Any:
            made = super().prepare(document)
            if document.doc_id == "x/002.png":
                redraw(tmp_path / "x" / "002.png")
            return made

    documents, store = pictures(tmp_path / "x", 6), tmp_path / "store"
    embed(documents, store, Late())
    shutil.copy(tmp_path / "x" / "002.png", tmp_path / "x" / "005.png")
    n, vectors = embed(documents, store)
    assert n == 2
    np.testing.assert_allclose(vectors[[2, 5]], [[256, 1, 1]] * 2)


def test_a_custom_encoder_may_look_at_the_id_so_a_renamed_document_is_another(
    tmp_path: Path,
) -> None:
    class Named:
        name, fingerprint = "named", "1"
        seen = 0

        def encode_queries(self, queries: Sequence[Any]) -> np.ndarray:
            return np.ones((len(queries), 2))

        def encode_documents(self, documents: Sequence[Document]) -> np.ndarray:
            self.seen += len(documents)
            return np.array([[1, len(document.doc_id)] for document in documents])

    custom = Named()
    encoder = load_custom_encoder(custom)
    assert encoder is not None
    documents = pictures(tmp_path / "x", 3)
    embed_documents(encoder, documents, tmp_path / "store")
    embed_documents(encoder, copied(documents, tmp_path / "copy"), tmp_path / "store")
    assert custom.seen == 3
    renamed = [replace(document, doc_id=f"other/{document.doc_id}") for document in documents]
    found = embed_documents(encoder, renamed, tmp_path / "store")
    assert custom.seen == 6
    assert found.vectors(found.doc_ids)[:, 1].tolist() == [15, 15, 15]


def test_an_interrupted_run_goes_on_from_its_last_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(ColorEncoder):
        def encode_documents(self, prepared: Sequence[Any]) -> np.ndarray:
            if self.encoded >= 20:
                raise KeyboardInterrupt
            return super().encode_documents(prepared)

    monkeypatch.setattr(embedding_cache, "SHARD", 8)
    monkeypatch.setattr(embedding_cache, "BATCH", 4)
    documents = pictures(tmp_path / "x", 30)
    with pytest.raises(KeyboardInterrupt):
        embed(documents, tmp_path / "store", Stopped())
    n, vectors = embed(documents, tmp_path / "store")
    assert n == 30 - 16  # 20 were encoded, 16 of them in finished shards
    np.testing.assert_array_equal(vectors, embed(documents, tmp_path / "other")[1])


def test_a_damaged_image_stops_the_run_and_finished_shards_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_cache, "SHARD", 4)
    monkeypatch.setattr(embedding_cache, "BATCH", 4)
    documents = pictures(tmp_path / "x", 12)
    (tmp_path / "x" / "010.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    refused(lambda: embed(documents, tmp_path / "store"), "010.png", "not a readable picture")
    assert embed(documents[:8], tmp_path / "store")[0] == 0


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 0.0])
def test_a_vector_without_a_direction_is_an_error_that_names_the_document(
    tmp_path: Path, bad: float
) -> None:
    class Bad(ColorEncoder):
        def encode_documents(self, prepared: Sequence[Any]) -> np.ndarray:
            rows = super().encode_documents(prepared)
            rows[0] = bad
            return rows

    documents = pictures(tmp_path / "x", 3)
    refused(lambda: embed(documents, tmp_path / "store", Bad()), "x/000.png")


def test_an_empty_corpus_repeated_ids_and_a_store_that_is_no_folder_are_refused(
    tmp_path: Path,
) -> None:
    first, second = pictures(tmp_path / "x", 2)
    twins = [first, replace(second, doc_id=first.doc_id)]
    refused(lambda: embed(twins, tmp_path / "store"), f"two documents '{first.doc_id}'")
    refused(lambda: embed([], tmp_path / "store"), "corpus is empty")
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    refused(lambda: embed([first], tmp_path / "file"), "cannot be stored")


LIMITED = f"""
import resource, sys
from pathlib import Path
sys.path.insert(0, {str(ROOT / "tests")!r})
import numpy as np
import vrag_kit.retrieval.embedding_cache as cache
from retrieval_data import ColorEncoder, pictures
place = Path(sys.argv[1])
"""


def limited(place: Path, script: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", LIMITED + script, str(place)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@posix
@pytest.mark.slow
def test_there_may_be_more_shards_than_a_process_may_hold_open(tmp_path: Path) -> None:
    done = limited(
        tmp_path,
        """
cache.SHARD = cache.BATCH = 1
documents, encoder = pictures(place / "x", 80), ColorEncoder()
cache.embed_documents(encoder, documents, place / "store")
resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48))
embeddings = cache.embed_documents(encoder, documents, place / "store")
vectors = embeddings.vectors(embeddings.doc_ids)
assert encoder.encoded == 80
assert np.array_equal(vectors, np.stack([encoder.prepare(each) for each in documents]))
""",
    )
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "store").glob("*/shard-*.npy"))) == 80


@posix
@pytest.mark.slow
def test_a_full_disk_is_an_error_and_finished_shards_stay(tmp_path: Path) -> None:
    done = limited(
        tmp_path,
        """
cache.SHARD = cache.BATCH = 8
class Wide(ColorEncoder):
    def encode_documents(self, prepared):
        rows = super().encode_documents(prepared)
        return np.tile(rows, (1, 400 if self.encoded <= 24 else 40_000))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
cache.embed_documents(Wide(), pictures(place / "x", 40), place / "store")
""",
    )
    assert done.returncode == 1
    assert "embeddings cannot be stored (File too large)" in done.stderr
    assert len(list((tmp_path / "store").glob("*/shard-*.json.gz"))) == 3
    assert not list((tmp_path / "store").rglob("*.part"))


@posix
def test_a_file_that_cannot_be_opened_is_an_error_and_no_damage(tmp_path: Path) -> None:
    documents, store = pictures(tmp_path / "x", 3), tmp_path / "store"
    embed(documents, store)
    (shard,) = store.glob("*/*.npy")
    kept = shard.rename(shard.with_name("elsewhere"))
    shard.symlink_to(shard)  # a ring of links
    with pytest.raises(VragError, match=rf"{shard.name}: this shard .* cannot be opened"):
        embed(documents, store)
    shard.unlink()
    kept.rename(shard)
    assert embed(documents, store)[0] == 0
