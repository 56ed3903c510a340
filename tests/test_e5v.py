"""E5-V: a tiny LLaVA-NeXT with its wordings, against transformers told everything."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tiny_retrievers as tiny
import torch
from tiny_retrievers import embed

from vrag_kit.errors import VragError
from vrag_kit.retrieval import load_encoder
from vrag_kit.types import Document, Query

E5V = "royokong/e5-v"
LLAMA = (
    "<|start_header_id|>user<|end_header_id|>\n\n{}"
    "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n \n"
)
PROMPT_SETS = {  # query → (asked, found), as the authors spell them
    "text": (
        "<sent>\nSummary above sentence in one word: ",
        "<image>\nSummary above image in one word: ",
    ),
    "image": (
        "<image>\nSummary above image in one word: ",
        "<image>\nSummary above image in one word: ",
    ),
    "both": (
        '<image>Modify this image with "<sent>", desribe modified image in one word:',
        "<image>\n Describe this image in one word:",
    ),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.llava_next(tmp_path_factory.mktemp("e5v") / "e5v")


@pytest.fixture(autouse=True)
def _here(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "vrag_kit.retrieval.encoders.loading.find_checkpoint", lambda spec, **_: made
    )


def by_transformers(made: Path, prompts: str, query: Query) -> np.ndarray:
    """As the authors' README does it, its processor told what the checkpoint's lacks."""
    from transformers import LlavaNextForConditionalGeneration, LlavaNextProcessor

    processor = LlavaNextProcessor.from_pretrained(
        made,
        patch_size=8,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    )
    model = LlavaNextForConditionalGeneration.from_pretrained(made).eval()
    prompt = LLAMA.format(prompts).replace("<sent>", query.text)
    pictures = {"images": [query.image.open()]} if "<image>" in prompts and query.image else {}
    inputs = processor(text=[prompt], **pictures, return_tensors="pt")
    with torch.inference_mode():
        state = model(**inputs, output_hidden_states=True).hidden_states[-1][:, -1, :]
    return torch.nn.functional.normalize(state, dim=-1).numpy()[0]


@pytest.mark.slow
@pytest.mark.parametrize("part", ["text", "image", "both"])
def test_its_own_wordings_give_the_last_tokens_last_state_at_unit_length(
    part: str, made: Path, documents: list[Document]
) -> None:
    encoder = load_encoder({"model": E5V, "query": part})
    asked, found = PROMPT_SETS[part]
    assert encoder.prompts == {
        "query": LLAMA.format(asked).replace("<sent>", "{text}"),
        "document": LLAMA.format(found),
    }
    queries = [
        Query(query_id=document.doc_id, text=text, image=document.image)
        for document, text in zip(documents, tiny.QUESTIONS, strict=False)
    ]
    rows = encoder.encode_queries(queries)
    expected = [by_transformers(made, asked, query) for query in queries]
    np.testing.assert_allclose(rows, np.stack(expected), atol=1e-5)
    pictures = embed(encoder, documents[: len(queries)])
    expected = [by_transformers(made, found, query) for query in queries]
    np.testing.assert_allclose(pictures, np.stack(expected), atol=1e-5)


def test_a_wording_of_ones_own_takes_the_place_of_theirs(made: Path) -> None:
    own = "<image> Find what this asks for: {text}"
    encoder = load_encoder({"model": E5V, "query": "both", "query_prompt": own})
    assert encoder.prompts["query"] == own
    assert encoder.prompts["document"] == LLAMA.format(PROMPT_SETS["both"][1])
    with pytest.raises(VragError, match="no place for the picture"):
        load_encoder({"model": E5V, "query": "both", "query_prompt": "{text}"})
