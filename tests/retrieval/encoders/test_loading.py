"""What holds for retrievers of every family, loaded by their entries from tiny checkpoints.

What entries may not say is in bad_inputs.csv ("encoder entry").
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest
import tiny_retrievers as tiny
import torch
from conftest import WEIGHTS
from retrieval_data import refused
from tiny_retrievers import FAMILIES, QUESTIONS, embed, entry, queries

from vrag_kit.dry_run import dry_run
from vrag_kit.errors import VragError
from vrag_kit.retrieval import embed_documents, load_encoder
from vrag_kit.retrieval.encoders import checkpoint as checkpoint_module
from vrag_kit.retrieval.encoders.base import Encoder
from vrag_kit.retrieval.encoders.loading import open_encoder
from vrag_kit.types import Document, Query

Load = Callable[..., Encoder]
Copy = Callable[[str], Path]
Documents = list[Document]


@pytest.fixture
def load(retrievers_made):
    """Loads a family's tiny checkpoint, with options."""
    return lambda family, **options: load_encoder(entry(retrievers_made, family, **options))


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_other_inputs_do_not_change_a_vector(family, load, documents):
    encoder, backwards = load(family), queries()[::-1]
    together = embed(encoder, documents)
    alone = np.concatenate([embed(encoder, [document]) for document in documents])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose(embed(encoder, documents[::-1])[::-1], together, atol=1e-5)
    found = encoder.encode_queries(queries())
    np.testing.assert_array_equal(encoder.encode_queries(backwards)[::-1], found)
    unit = together / np.linalg.norm(together, axis=1, keepdims=True)
    assert (unit @ unit.T)[~np.eye(4, dtype=bool)].max() < 0.99  # documents differ


@pytest.mark.parametrize("family", ["bert", "siglip2"])
def test_texts_are_padded_at_their_end(family, load, copy_retriever, documents):
    folder = copy_retriever(family)
    tiny.edit_json(folder / "tokenizer_config.json", padding_side="left")
    left, right = load_encoder(entry(folder.parent, family)), load(family)
    ours, theirs = left.encode_queries(queries()), right.encode_queries(queries())
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    np.testing.assert_allclose(embed(left, documents), embed(right, documents), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["clip", "siglip", "siglip2", "open_clip"])
def test_a_text_is_one_vector_on_both_sides(family, load, documents):
    encoder, words = load(family), [*QUESTIONS, "a word and " * 200]  # too long for any tower
    texts = [Document(doc_id=text, text=text) for text in words]
    alone = embed(encoder, texts)
    np.testing.assert_allclose(alone, encoder.encode_queries(queries(words)), atol=1e-6)
    mixed = embed(encoder, [texts[0], *documents[:2], texts[1]])
    np.testing.assert_allclose(mixed[1:3], embed(encoder, documents[:2]), atol=1e-6)
    np.testing.assert_allclose(mixed[[0, 3]], alone[:2], atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_the_fingerprint_is_that_of_the_files_and_known_before_weights_are_read(
    family, load, copy_retriever, monkeypatch
):
    loaded, folder = load(family), copy_retriever(family)
    monkeypatch.setattr(checkpoint_module, "check_device", lambda _: pytest.fail("it is read"))
    opened = open_encoder(entry(folder.parent, family))
    for name in ("name", "fingerprint", "document_key", "modalities", "prompts", "normalized"):
        assert getattr(opened, name) == getattr(loaded, name)
    weights(lambda state: state[min(state)].add_(1))(folder)
    assert open_encoder(entry(folder.parent, family)).fingerprint != loaded.fingerprint


def weights(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], object]:
    """Changes the weights of a checkpoint."""
    return lambda folder: tiny.edit_weights(next(folder.glob("*.safetensors")), change)


def poison(state: dict[str, torch.Tensor]) -> None:
    state[max(state)].view(-1)[0] = float("nan")


def lose(state: dict[str, torch.Tensor]) -> None:
    del state[next(name for name in sorted(state) if ".1." in name)]


def truncated(folder: Path) -> None:
    file = next(folder.glob("*.safetensors"))
    file.write_bytes(file.read_bytes()[:-1])


def pickled(folder: Path) -> None:
    name = "adapter_model.bin" if folder.name == "lora" else "pytorch_model.bin"
    next(folder.glob("*.safetensors")).rename(folder / name)


@pytest.mark.parametrize(
    ("damage", "token", "families", "foreseen"),
    [
        (weights(poison), "NaN or infinite", FAMILIES, False),
        (weights(lose), "1 ", FAMILIES[:-1], False),
        (weights(lose), "Missing key", ["open_clip"], False),
        (truncated, ".safetensors: ", ["clip", "open_clip"], True),
        (pickled, "_model.bin is a pickle", ["clip", "lora"], True),
        (lambda folder: next(folder.glob("*config.json")).unlink(), "neither", ["open_clip"], True),
    ],
)
def test_damaged_checkpoints_are_refused_and_missing_in_a_dry_run_and_never_random(
    damage, token, families, foreseen, copy_retriever, tmp_path
):
    for family in families:
        folder = copy_retriever(family)
        damage(folder)
        with dry_run(tmp_path) as recorded:
            open_encoder(entry(folder.parent, family))
        with pytest.raises(VragError, match=token) as error:
            load_encoder(entry(folder.parent, family))
        assert list(recorded.missing) == [str(error.value)] * foreseen


def test_missing_and_outside_shards_are_refused(copy_retriever):
    folder = copy_retriever("clip")
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    listed, load = folder / "model.safetensors.index.json", partial(load_encoder, str(folder))
    shards = {"a": "model-1.safetensors", "b": "model-2.safetensors"}
    listed.write_text(json.dumps({"metadata": {}, "weight_map": shards}), encoding="utf-8")
    refused(load, "cannot be loaded: ", "model-2")
    (folder.parent / "model-2.safetensors").touch()
    listed.write_text(json.dumps({"weight_map": {**shards, "b": "../model-2.safetensors"}}))
    refused(load, "index.json: '../model-2.safetensors' points outside")


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("clip", {"query_prompt": "a photo of {text}"}),
        ("clip", {"dtype": "bfloat16"}),
        ("qwen2_vl", {"query_prompt": "Seek: {text}"}),
        ("qwen2_vl", {"positions": "model"}),
        ("qwen2_vl", {"image_size": {"shortest_edge": 256, "longest_edge": 1024}}),
        ("bert", {"pooling": "mean"}),
        ("bert", {"normalize": True}),
        ("bert", {"document_prompt": "passage: {text}"}),
        ("bert", {"documents": "context"}),
        ("sentences", {"query_prompt": "query: {text}"}),
        ("clip", {"query": "image"}),
        ("open_clip", {"query": "both"}),
        ("open_clip", {"document": "both"}),
    ],
)
def test_every_option_that_changes_a_vector_changes_the_fingerprint(
    family, changes, load, retrievers_made, documents
):
    if "documents" in changes:
        changes = {"documents": str(retrievers_made / "context")}
    before, after = load(family), load(family, **changes)
    assert before.fingerprint != after.fingerprint
    asked = [replace(query, image=documents[0].image) for query in queries()]
    queried = np.array_equal(before.encode_queries(asked), after.encode_queries(asked))
    found = np.array_equal(embed(before, documents), embed(after, documents))
    assert not (queried and found)


def test_defaults_change_neither_name_nor_fingerprint(load):
    for family, default in (("clip", "auto"), ("open_clip", "auto"), ("bert", None)):
        plain, same = load(family), load(family, query="text", document=default)
        assert (same.name, same.fingerprint) == (plain.name, plain.fingerprint)
    assert load("clip", query="image", document="both").name == "clip-by-image-of-both"
    shipped = open_encoder(str(WEIGHTS / "field-guide-clip-64"))
    folder = f"{shipped.name}-{shipped.fingerprint[:12]}"
    assert folder == "field-guide-clip-64-a16db5424ff6"  # where its embeddings always were


@pytest.mark.parametrize(
    ("family", "part", "change", "again"),
    [
        ("clip", "auto", {"text": "a duck"}, False),
        ("clip", "both", {"text": "a duck"}, True),
        ("bert", "text", {"text": "a duck"}, True),
        ("clip", "auto", {"image": None}, True),
    ],
)
def test_a_changed_document_is_encoded_again_where_the_change_counts(
    family, part, change, again, load, documents, tmp_path
):
    encoder = load(family, document=part)
    for document in (documents[0], replace(documents[0], **change)):
        row = embed_documents(encoder, [document], tmp_path).rows(np.array([0]))
        np.testing.assert_array_equal(row, embed(encoder, [document]))
    assert (len(list(tmp_path.glob("*/*.npy"))) == 2) == again


BOTH = {"query": "both", "query_prompt": "<|image_pad|> {text}"}


@pytest.mark.parametrize(
    ("family", "options", "given", "token"),
    [
        ("clip", {}, Document(doc_id="d", text=" "), "'d' has no image"),
        ("qwen2_vl", {}, Document(doc_id="d", text="a goose"), "'d' has no image"),
        ("bert", {}, Document(doc_id="d", text=" "), "'d' has no text"),
        ("sentences", {}, Document(doc_id="d", text=" "), "'d' has no text"),
        ("clip", {"document": "both"}, Document(doc_id="d", text="a moth"), "'d' has no image"),
        ("clip", {"query": "image"}, queries()[0], "'q0' has no image"),
        ("qwen2_vl", BOTH, queries()[0], "'q0' has no image"),
    ],
)
def test_a_document_or_question_without_what_is_encoded_is_named(
    family, options, given, token, load
):
    encoder = load(family, **options)
    asks = isinstance(given, Query)
    refused(lambda: encoder.encode_queries([given]) if asks else encoder.prepare(given), token)


def test_models_of_the_table_have_their_authors_options(retrievers_made, load, monkeypatch):
    vlm2vec, dragon = "TIGER-Lab/VLM2Vec-Qwen2VL-2B", "facebook/dragon-plus-query-encoder"
    context = "facebook/dragon-plus-context-encoder"
    folders = {vlm2vec: "lora", dragon: "bert", context: "context"}
    place = "vrag_kit.retrieval.encoders.loading.find_checkpoint"
    monkeypatch.setattr(place, lambda spec, **_: retrievers_made / folders.get(spec, spec))
    encoder = load_encoder(vlm2vec)
    assert encoder.name == "TIGER-Lab-VLM2Vec-Qwen2VL-2B"
    assert encoder.prompts == {
        "query": "Find me an everyday image that matches the given caption: {text}",
        "document": "<|image_pad|> Represent the given image.",
    }
    size = encoder.model._processor.image_processor.size  # type: ignore[attr-defined]
    assert size == {"shortest_edge": 3136, "longest_edge": 12845056}
    assert load_encoder(dragon).normalized is False
    assert load_encoder(dragon).fingerprint == load("bert", documents=context).fingerprint


def test_a_name_on_the_hub_in_open_clips_layout_loads_as_its_folder_does(
    copy_retriever, tmp_path, monkeypatch
):
    """The hub's cache as a download leaves it, and no network."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "hub" / "models--imageomics--bioclip-2"
    for part in ("refs", "snapshots"):
        (repository / part).mkdir(parents=True)
    (repository / "refs" / "fine-tuned").write_text(commit, encoding="utf-8")
    folder = copy_retriever("open_clip").rename(repository / "snapshots" / commit)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    named = {"model": "imageomics/bioclip-2", "revision": "fine-tuned"}
    encoder, here = load_encoder(named), load_encoder(str(folder))
    assert (encoder.name, encoder.fingerprint) == ("imageomics-bioclip-2", here.fingerprint)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["clip", "open_clip"])
def test_both_parts_are_a_sum_of_unit_length(family, load, documents):
    pairs = list(zip([*QUESTIONS, "What is this?"], documents, strict=True))
    asked = [Query(query_id=d.doc_id, text=text, image=d.image) for text, d in pairs]
    told = [replace(document, text=text) for text, document in pairs]
    images = embed(load(family), [replace(document, text=None) for document in documents])
    texts = load(family).encode_queries(asked)
    both = (images + texts) / np.linalg.norm(images + texts, axis=1, keepdims=True)
    for part, expected in (("image", images), ("both", both)):
        found = load(family, query=part).encode_queries(asked)
        np.testing.assert_allclose(found, expected, atol=1e-5)
    for part, expected in (("text", texts), ("both", both)):
        found = embed(load(family, document=part), told)
        np.testing.assert_allclose(found, expected, atol=1e-5)
