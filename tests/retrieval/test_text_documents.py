"""Documents that are texts go through the text tower, alone and among images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_retrievers import QUESTIONS, embed, entry, queries

from vrag_kit.errors import VragError
from vrag_kit.retrieval import embed_documents, load_encoder
from vrag_kit.types import Document


def texts(*words: str) -> list[Document]:
    return [Document(doc_id=f"t{i}", text=text) for i, text in enumerate(words)]


@pytest.mark.slow
@pytest.mark.parametrize("family", ["clip", "siglip", "siglip2", "open_clip"])
def test_a_text_is_the_same_vector_as_document_and_as_question_and_among_images(
    family: str, retrievers_made: Path, documents: list[Document]
) -> None:
    encoder = load_encoder(entry(retrievers_made, family))
    words = [*QUESTIONS, "a word and " * 200]  # the last is longer than any text tower reads
    alone = embed(encoder, texts(*words))
    np.testing.assert_allclose(alone, encoder.encode_queries(queries(words)), atol=1e-6)
    some = texts(*words)
    mixed = embed(encoder, [some[0], documents[0], documents[1], some[1], documents[2], some[2]])
    np.testing.assert_allclose(mixed[[1, 2, 4]], embed(encoder, documents[:3]), atol=1e-6)
    np.testing.assert_allclose(mixed[[0, 3, 5]], alone[:3], atol=1e-6)


def test_an_encoder_of_images_alone_refuses_a_text(retrievers_made: Path) -> None:
    with pytest.raises(VragError, match=r"'t0'.* qwen2_vl"):
        load_encoder(entry(retrievers_made, "qwen2_vl")).prepare(texts("a goose")[0])
    with pytest.raises(VragError, match="'mute'"):
        load_encoder(entry(retrievers_made, "clip")).prepare(Document(doc_id="mute", text=" "))


def test_an_image_and_its_caption_are_cached_side_by_side_under_one_name(
    retrievers_made: Path, documents: list[Document], tmp_path: Path
) -> None:
    encoder = load_encoder(entry(retrievers_made, "clip"))
    captions = [Document(doc_id=document.doc_id, text=document.text) for document in documents]
    vectors = [
        embed_documents(encoder, some, tmp_path).rows(np.array([0]))
        for some in (documents, captions, documents, captions)
    ]
    assert not np.allclose(vectors[0], vectors[1])
    np.testing.assert_array_equal(vectors[:2], vectors[2:])
