"""Questions and documents may be a text, a picture, or both: what is encoded, and what is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import huggingface_hub
import numpy as np
import pytest
import tiny_retrievers as tiny
from tiny_retrievers import embed, entry

from vrag_kit.errors import VragError
from vrag_kit.retrieval import embed_documents, load_encoder, search_all
from vrag_kit.retrieval.encoders.base import Encoder
from vrag_kit.retrieval.encoders.loading import open_clip_models, open_encoder
from vrag_kit.types import Benchmark, Document, Query

TOWERS = ["clip", "siglip", "siglip2", "open_clip"]
GUIDE_CLIP = "vrag_kit/synthetic/weights/field-guide-clip-64"


@pytest.fixture
def load(retrievers_made: Path, checkpoint: Callable[..., Path]) -> Callable[..., Encoder]:
    """Load a family's tiny checkpoint with options."""

    def load(family: str, **options: Any) -> Encoder:
        if family == "open_clip":
            folder = retrievers_made / "open-clip"
            if not folder.exists():
                checkpoint().rename(folder)
            return load_encoder({"model": str(folder), **options})
        return load_encoder(entry(retrievers_made, family, **options))

    return load


@pytest.fixture
def asked(documents: list[Document]) -> list[Query]:
    """Questions with the documents' pictures."""
    texts = [*tiny.QUESTIONS, "What is this?"]
    return [
        Query(query_id=f"q{i}", text=text, image=document.image)
        for i, (text, document) in enumerate(zip(texts, documents, strict=True))
    ]


def bare(documents: list[Document]) -> list[Document]:
    return [replace(document, text=None) for document in documents]


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("family", TOWERS)
def test_a_dual_encoder_places_a_questions_picture_where_that_document_is(
    family: str, load: Callable[..., Encoder], documents: list[Document], asked: list[Query]
) -> None:
    encoder = load(family, query="image")
    expected = embed(load(family), bare(documents))
    np.testing.assert_allclose(encoder.encode_queries(asked), expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("family", TOWERS)
def test_text_and_picture_together_are_the_sum_of_their_unit_vectors_at_unit_length(
    family: str, load: Callable[..., Encoder], documents: list[Document], asked: list[Query]
) -> None:
    plain = load(family)
    pictures, texts = embed(plain, bare(documents)), plain.encode_queries(asked)
    both = load(family, query="both")
    np.testing.assert_allclose(both.encode_queries(asked), unit(pictures + texts), atol=1e-5)
    told = [
        replace(document, text=query.text) for document, query in zip(documents, asked, strict=True)
    ]
    whole = load(family, document="both")
    np.testing.assert_allclose(embed(whole, told), unit(pictures + texts), atol=1e-5)
    np.testing.assert_allclose(embed(load(family, document="text"), told), texts, atol=1e-5)


def test_an_instructed_model_reads_picture_and_question_in_one_prompt(
    load: Callable[..., Encoder], documents: list[Document], asked: list[Query]
) -> None:
    prompt = "<|image_pad|> Find the page about this: {text}"
    found = load("qwen2_vl", query="both", query_prompt=prompt).encode_queries(asked)
    for row, query, document in zip(found, asked, bare(documents), strict=True):
        spelled = load("qwen2_vl", document_prompt=prompt.replace("{text}", query.text))
        np.testing.assert_allclose(row, embed(spelled, [document])[0], atol=1e-5)
    told = [
        replace(document, text=query.text) for document, query in zip(documents, asked, strict=True)
    ]
    whole = load("qwen2_vl", document="both", document_prompt=prompt)
    np.testing.assert_allclose(embed(whole, told), found, atol=1e-5)


def test_an_instructed_model_asks_by_the_picture_alone(
    load: Callable[..., Encoder], documents: list[Document], asked: list[Query]
) -> None:
    prompt = tiny.PROMPTS["document_prompt"]
    encoder = load("qwen2_vl", query="image", query_prompt=prompt)
    expected = embed(encoder, bare(documents))
    np.testing.assert_allclose(encoder.encode_queries(asked), expected, atol=1e-5)


@pytest.mark.parametrize("family", [*TOWERS, "qwen2_vl"])
@pytest.mark.parametrize("part", ["image", "both"])
def test_a_question_without_the_picture_that_is_encoded_is_named(
    family: str, part: str, load: Callable[..., Encoder]
) -> None:
    prompts = {"image": "<|image_pad|> It.", "both": "<|image_pad|> It: {text}"}
    more = {"query_prompt": prompts[part]} if family == "qwen2_vl" else {}
    with pytest.raises(VragError, match=rf"query 'q0' has no image, .*`query` is '{part}'"):
        load(family, query=part, **more).encode_queries(tiny.queries())


@pytest.mark.parametrize(
    ("family", "options", "words"),
    [
        ("bert", {"query": "image"}, "query is 'image', which this kind .*; expected 'text'"),
        ("sentences", {"query": "both"}, "query is 'both', which this kind"),
        ("bert", {"document": "image"}, "document is 'image', which this kind .* 'text'"),
        ("clip", {"query": "pixels"}, "query: found 'pixels'; expected 'text', 'image'"),
        ("clip", {"query": "image", "query_prompt": "a {text}"}, "a place for the text"),
        ("qwen2_vl", {"query": "both"}, "query_prompt is 'Find: .* no place for the picture"),
        ("qwen2_vl", {"query": "image"}, "query_prompt is 'Find: .* a place for the text"),
        ("qwen2_vl", {"document": "both"}, "document_prompt .* has no place for the text"),
        ("qwen2_vl", {"document": "text"}, "document_prompt .* has no place for the text"),
    ],
)
def test_what_a_model_cannot_encode_is_refused_before_anything_is(
    family: str, options: dict[str, str], words: str, load: Callable[..., Encoder]
) -> None:
    with pytest.raises(VragError, match=words):
        load(family, **options)


def test_a_document_without_one_of_both_is_named(
    load: Callable[..., Encoder], documents: list[Document]
) -> None:
    encoder = load("clip", document="both")
    with pytest.raises(VragError, match=r"'d0' has no text, .* `document` is 'both'"):
        encoder.prepare(bare(documents)[0])
    with pytest.raises(VragError, match="'mute' has no image"):
        encoder.prepare(Document(doc_id="mute", text="a moth"))


@pytest.mark.slow
def test_what_is_shown_is_in_the_name_and_the_fingerprint_and_the_usual_changes_neither(
    load: Callable[..., Encoder],
) -> None:
    for family, usual in (("clip", "auto"), ("open_clip", "auto"), ("bert", "text")):
        plain = load(family)
        same = load(family, query="text", document=usual)
        assert (same.name, same.fingerprint) == (plain.name, plain.fingerprint)
    prints = {load(family).fingerprint for family in ("clip", "open_clip")}
    for options in ({"query": "image"}, {"query": "both"}, {"document": "both"}):
        prints |= {load(family, **options).fingerprint for family in ("clip", "open_clip")}
    assert len(prints) == 8
    assert load("clip", query="image", document="both").name == "clip-by-image-of-both"


def test_embeddings_of_the_shipped_retriever_are_where_they_always_were() -> None:
    encoder = open_encoder(GUIDE_CLIP)
    assert f"{encoder.name}-{encoder.fingerprint[:12]}" == "field-guide-clip-64-a16db5424ff6"


@pytest.mark.parametrize(
    ("family", "part", "again"),
    [
        ("clip", "auto", False),
        ("clip", "image", False),
        ("clip", "text", True),
        ("clip", "both", True),
        ("bert", "auto", True),
    ],
)
def test_a_changed_text_beside_a_picture_is_embedded_again_where_it_is_encoded(
    family: str,
    part: str,
    again: bool,
    load: Callable[..., Encoder],
    documents: list[Document],
    tmp_path: Path,
) -> None:
    encoder = load(family, document=part)
    before = replace(documents[0], text="a moth at rest")
    after = replace(before, text="a goose in flight, its wings spread")
    old = embed_documents(encoder, [before], tmp_path).vectors(["d0"])
    new = embed_documents(encoder, [after], tmp_path).vectors(["d0"])
    assert (not np.array_equal(old, new)) == again
    np.testing.assert_array_equal(new, embed(encoder, [after]))


@pytest.mark.slow
def test_a_query_picture_finds_the_document_that_shows_it(guide: Benchmark, tmp_path: Path) -> None:
    documents = dict(list(guide.corpus.items())[:30])
    queries = {
        doc_id: Query(query_id=doc_id, text="What is it?", image=document.image)
        for doc_id, document in documents.items()
    }
    pictured = replace(guide, queries=queries, corpus=documents, qrels={}, pools=None)
    how = {"model": GUIDE_CLIP, "query": "image"}
    (run,) = search_all(pictured, [how], k=1, cache_dir=tmp_path).values()
    assert list(run["query_id"]) == list(run["doc_id"])
    np.testing.assert_allclose(run["score"], 1, atol=1e-5)


def test_open_clips_models_are_those_that_it_lists() -> None:
    import open_clip

    assert open_clip_models() == sorted(open_clip.list_models())


@pytest.mark.parametrize("revision", [None, "fine-tuned"])
def test_a_name_on_the_hub_in_open_clips_layout_loads_as_its_folder_does(
    checkpoint: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    revision: str | None,
) -> None:
    """The hub's cache as a download leaves it, and no network."""
    folder, commit = checkpoint(), "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "hub" / "models--imageomics--bioclip-2"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / (revision or "main")).write_text(commit, encoding="utf-8")
    (repository / "snapshots").mkdir()
    folder.rename(repository / "snapshots" / commit)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    options = {"revision": revision} if revision else {}
    encoder = load_encoder({"model": "imageomics/bioclip-2", **options})
    here = load_encoder(str(repository / "snapshots" / commit))
    assert (encoder.name, encoder.fingerprint) == ("imageomics-bioclip-2", here.fingerprint)
    with pytest.raises(VragError, match="open_clip models take no option 'dtype'"):
        load_encoder({"model": "imageomics/bioclip-2", "dtype": "float16", **options})


def test_a_tag_of_open_clip_has_no_revision() -> None:
    with pytest.raises(VragError, match=r"take no option 'revision' .'main'"):
        load_encoder({"model": "ViT-B-32/openai", "revision": "main"})
