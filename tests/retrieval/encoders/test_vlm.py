"""A vision-language model's vector is its last token's state, by the model's own call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_retrievers as tiny
import torch
from PIL import Image
from retrieval_data import refused
from tiny_retrievers import PROMPTS, QUESTIONS, embed, entry, queries
from transformers import AutoModelForImageTextToText, AutoProcessor

from vrag_kit.retrieval import load_encoder
from vrag_kit.types import Query

Copy = Callable[[str], Path]


def by_hand(folder: Path) -> tuple[Any, Any]:
    """Model and processor of a folder, by transformers."""
    model = AutoModelForImageTextToText.from_pretrained(folder)
    return model, AutoProcessor.from_pretrained(folder)


def last_state(
    model: Any, processor: Any, prompt: str, positions: str, picture: Image.Image | None = None
) -> np.ndarray:
    """At unit length, one input at a time and without padding."""
    inputs = processor(text=[prompt], images=[picture] if picture else None, return_tensors="pt")
    if positions == "sequential":
        inputs["position_ids"] = torch.arange(inputs["input_ids"].shape[1])[None]
    with torch.inference_mode():
        state = model(**inputs, output_hidden_states=True).hidden_states[-1][0, -1]
    return (state / state.norm()).numpy()


def agrees(vectors: np.ndarray, made: tuple[Any, Any], positions: str, documents: Any) -> None:
    """Vectors of pictures alone."""
    pictures = [document.image.open() for document in documents]
    prompt = PROMPTS["document_prompt"]
    expected = [last_state(*made, prompt, positions, picture) for picture in pictures]
    np.testing.assert_allclose(vectors, expected, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("positions", ["model", "sequential"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_an_instructed_vector_is_the_last_state_of_the_prompt_whatever_side_is_padded(
    positions, side, copy_retriever, documents
):
    folder = copy_retriever("qwen2_vl")
    tiny.edit_json(folder / "tokenizer_config.json", padding_side=side)
    made = by_hand(folder)
    encoder = load_encoder({"model": str(folder), **PROMPTS, "positions": positions})
    lengths = {encoder.prepare(document)["input_ids"].shape for document in documents}
    assert len(lengths) > 1  # the images need padding
    agrees(embed(encoder, documents), made, positions, documents)
    expected = [last_state(*made, f"Find: {text}", positions) for text in QUESTIONS]
    np.testing.assert_allclose(encoder.encode_queries(queries()), expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("positions", ["model", "sequential"])
def test_a_lora_adapter_merged_is_its_base_with_the_adapter_beside(
    positions, retrievers_made, documents
):
    from peft import PeftModel

    base, processor = by_hand(retrievers_made / "qwen2_vl")
    made = (PeftModel.from_pretrained(base, retrievers_made / "lora").eval(), processor)
    vectors = embed(load_encoder(entry(retrievers_made, "lora", positions=positions)), documents)
    agrees(vectors, made, positions, documents)
    plain = embed(load_encoder(entry(retrievers_made, "qwen2_vl", positions=positions)), documents)
    assert np.diag(vectors @ plain.T).max() < 0.9  # the adapter matters


def test_an_adapter_with_the_names_of_transformers_4_finds_its_places_and_another_is_refused(
    retrievers_made, copy_retriever, documents
):
    folder = copy_retriever("lora")
    load = partial(load_encoder, entry(folder.parent, "lora"))

    def rename(old: str, new: str) -> None:
        def change(state: dict[str, torch.Tensor]) -> None:
            for name in list(state):
                state[name.replace(old, new)] = state.pop(name)

        tiny.edit_weights(folder / "adapter_model.safetensors", change)

    rename("model.model.language_model.layers", "model.model.layers")
    rename("model.model.visual", "model.visual")
    expected = embed(load_encoder(entry(retrievers_made, "lora")), documents)
    np.testing.assert_allclose(embed(load(), documents), expected, atol=1e-5)
    rename("q_proj", "query")
    refused(load, "8 weights are missing or have no place")
    tiny.edit_json(folder / "adapter_config.json", base_model_name_or_path="/models/gone")
    refused(load, "'/models/gone'", "no such folder")


def test_a_batch_that_does_not_fit_into_memory_is_halved(retrievers_made, documents, monkeypatch):
    encoder: Any = load_encoder(entry(retrievers_made, "qwen2_vl"))
    expected, whole, sizes = embed(encoder, documents), encoder.model._embed, []

    def small(inputs: list[Mapping[str, torch.Tensor]]) -> np.ndarray:
        sizes.append(len(inputs))
        if len(inputs) > 1:
            raise torch.OutOfMemoryError("out of memory")
        return whole(inputs)

    monkeypatch.setattr(encoder.model, "_embed", small)
    np.testing.assert_allclose(embed(encoder, documents), expected, atol=1e-5)
    assert sizes == [4, 2, 1, 1, 2, 1, 1]


def test_image_and_text_are_one_prompt(retrievers_made, documents):
    def load(**options: str) -> Any:
        return load_encoder(entry(retrievers_made, "qwen2_vl", **options))

    pairs = list(zip(documents, QUESTIONS, strict=False))
    asked = [Query(query_id=d.doc_id, text=text, image=d.image) for d, text in pairs]
    prompt = "<|image_pad|> Find the page about this: {text}"
    found = load(query="both", query_prompt=prompt).encode_queries(asked)
    for row, (document, text) in zip(found, pairs, strict=True):
        spelled = load(document_prompt=prompt.replace("{text}", text))
        np.testing.assert_allclose(row, embed(spelled, [document])[0], atol=1e-5)
    told = [replace(document, text=text) for document, text in pairs]
    whole = embed(load(document="both", document_prompt=prompt), told)
    np.testing.assert_allclose(whole, found, atol=1e-5)
    image = load(query="image", query_prompt=PROMPTS["document_prompt"])
    pictures = embed(image, documents[: len(asked)])
    np.testing.assert_allclose(image.encode_queries(asked), pictures, atol=1e-5)


E5V = "royokong/e5-v"
LLAMA = (
    "<|start_header_id|>user<|end_header_id|>\n\n{}"
    "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n \n"
)
PICTURE = "<image>\nSummary above image in one word: "
MODIFIED = '<image>Modify this image with "<sent>", desribe modified image in one word:'
PROMPT_SETS = {  # of a question and of a document, as the authors spell them
    "text": ("<sent>\nSummary above sentence in one word: ", PICTURE),
    "image": (PICTURE, PICTURE),
    "both": (MODIFIED, "<image>\n Describe this image in one word:"),
}


@pytest.fixture(scope="module")
def e5v(tmp_path_factory):
    return tiny.llava_next(tmp_path_factory.mktemp("e5v") / "e5v")


def by_transformers(made: Path, prompts: str, query: Query) -> np.ndarray:
    """As the authors' README does it, its processor told what the checkpoint's lacks."""
    from transformers import LlavaNextForConditionalGeneration, LlavaNextProcessor

    more = {"vision_feature_select_strategy": "default", "num_additional_image_tokens": 1}
    processor = LlavaNextProcessor.from_pretrained(made, patch_size=8, **more)
    model = LlavaNextForConditionalGeneration.from_pretrained(made).eval()
    prompt = LLAMA.format(prompts).replace("<sent>", query.text)
    picture = query.image.open() if "<image>" in prompts and query.image else None
    return last_state(model, processor, prompt, "model", picture)


@pytest.mark.slow
@pytest.mark.parametrize("part", PROMPT_SETS)
def test_e5v_has_its_authors_prompts_unless_the_entry_has_others(part, e5v, documents, monkeypatch):
    place = "vrag_kit.retrieval.encoders.loading.find_checkpoint"
    monkeypatch.setattr(place, lambda spec, **_: e5v)
    encoder = load_encoder({"model": E5V, "query": part})
    asked, found = PROMPT_SETS[part]
    question, document = LLAMA.format(asked).replace("<sent>", "{text}"), LLAMA.format(found)
    assert encoder.prompts == {"query": question, "document": document}
    pairs = zip(documents, QUESTIONS, strict=False)
    some = [Query(query_id=d.doc_id, text=text, image=d.image) for d, text in pairs]
    expected = np.stack([by_transformers(e5v, asked, query) for query in some])
    np.testing.assert_allclose(encoder.encode_queries(some), expected, atol=1e-5)
    expected = np.stack([by_transformers(e5v, found, query) for query in some])
    np.testing.assert_allclose(embed(encoder, documents[: len(some)]), expected, atol=1e-5)
    own = {"model": E5V, "query": "both", "query_prompt": "<image> Find: {text}"}
    assert load_encoder(own).prompts["query"] == own["query_prompt"]
    refused(partial(load_encoder, {**own, "query_prompt": "{text}"}), "query_prompt is '{text}'")
