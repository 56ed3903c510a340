"""Embeddings are known again by what they show."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from test_retrieval import ColorEncoder, pictures

from vrag_kit.benchmarks import ImageFile
from vrag_kit.retrieval import embed_documents
from vrag_kit.retrieval.encoders.custom import load_custom_encoder
from vrag_kit.types import Document


def copied(documents: Sequence[Document], folder: Path, to: Path) -> list[Document]:
    """The same documents in a copy of their folder, whose files have times of their own."""
    shutil.copytree(folder, to, copy_function=shutil.copyfile)
    found = []
    for number, document in enumerate(documents):
        path = to / Path(document.doc_id).name
        os.utime(path, ns=(number, 10**18 + number))
        found.append(replace(document, image=ImageFile(path)))
    return found


def test_nothing_is_embedded_again_in_a_folder_that_was_copied(tmp_path: Path) -> None:
    documents = pictures(tmp_path / "x", 10)
    before = embed_documents(ColorEncoder(), documents, tmp_path / "store")
    there = copied(documents, tmp_path / "x", tmp_path / "copy")
    encoder = ColorEncoder()
    after = embed_documents(encoder, there, tmp_path / "store")
    assert encoder.encoded == 0
    np.testing.assert_array_equal(after.vectors(after.doc_ids), before.vectors(before.doc_ids))


def test_one_picture_that_is_another_one_in_the_copy_is_embedded(tmp_path: Path) -> None:
    documents = pictures(tmp_path / "x", 10)
    embed_documents(ColorEncoder(), documents, tmp_path / "store")
    there = copied(documents, tmp_path / "x", tmp_path / "copy")
    Image.new("RGB", (4, 4), (255, 0, 0)).save(tmp_path / "copy" / "002.png")
    encoder = ColorEncoder()
    embeddings = embed_documents(encoder, there, tmp_path / "store")
    assert encoder.encoded == 1
    np.testing.assert_allclose(embeddings.vectors(["x/002.png"]), [[256, 1, 1]])


def test_a_file_is_read_for_its_content_only_where_its_stamp_differs(tmp_path: Path) -> None:
    documents = pictures(tmp_path / "x", 10)
    embed_documents(ColorEncoder(), documents, tmp_path / "store")
    there = copied(documents, tmp_path / "x", tmp_path / "copy")
    embed_documents(ColorEncoder(), there, tmp_path / "store")
    for folder in ("x", "copy"):
        for path in (tmp_path / folder).iterdir():  # the same size and time, and no picture
            status = path.stat()
            path.write_bytes(bytes(status.st_size))
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    for known in (documents, there):
        encoder = ColorEncoder()
        embed_documents(encoder, known, tmp_path / "store")
        assert encoder.encoded == 0


def test_what_changed_while_it_was_embedded_is_not_known_by_its_new_content(
    tmp_path: Path,
) -> None:
    """Its vector may be of what it was before."""

    class Late(ColorEncoder):
        def prepare(self, document: Document) -> Any:
            made = super().prepare(document)
            if document.doc_id == "x/002.png":
                Image.new("RGB", (5, 5), (255, 0, 0)).save(tmp_path / "x" / "002.png")
            return made

    documents = pictures(tmp_path / "x", 6)
    embed_documents(Late(), documents, tmp_path / "store")
    shutil.copy(tmp_path / "x" / "002.png", tmp_path / "x" / "005.png")
    encoder = ColorEncoder()
    embeddings = embed_documents(encoder, documents, tmp_path / "store")
    assert encoder.encoded == 2
    np.testing.assert_allclose(embeddings.vectors(["x/002.png", "x/005.png"]), [[256, 1, 1]] * 2)


def test_of_ones_own_encoder_a_document_of_another_name_is_another_one(tmp_path: Path) -> None:
    """What such a class looks at, nobody knows; it may be the name."""

    class Named:
        name, fingerprint = "named", "1"
        seen = 0

        def encode_queries(self, queries: Sequence[Any]) -> np.ndarray:
            return np.ones((len(queries), 2))

        def encode_documents(self, documents: Sequence[Document]) -> np.ndarray:
            self.seen += len(documents)
            return np.array([[1, len(document.doc_id)] for document in documents])

    own = Named()
    encoder = load_custom_encoder(own)
    assert encoder is not None
    documents = pictures(tmp_path / "x", 3)
    embed_documents(encoder, documents, tmp_path / "store")
    embed_documents(encoder, copied(documents, tmp_path / "x", tmp_path / "y"), tmp_path / "store")
    assert own.seen == 3
    renamed = [replace(document, doc_id=f"other/{document.doc_id}") for document in documents]
    found = embed_documents(encoder, renamed, tmp_path / "store")
    assert own.seen == 6
    np.testing.assert_array_equal(found.vectors(found.doc_ids)[:, 1], [15, 15, 15])
