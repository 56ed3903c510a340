"""Text encoders and folders of sentence-transformers encode as the library does."""

from __future__ import annotations

import json
import shutil
from functools import partial
from typing import Any

import numpy as np
import pytest
import tiny_retrievers as tiny
import torch
from retrieval_data import refused
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from tiny_retrievers import QUESTIONS, embed, entry, queries
from transformers import AutoModel, AutoTokenizer

from vrag_kit.retrieval import load_encoder
from vrag_kit.types import Query


@pytest.mark.slow
def test_each_side_is_a_first_token(retrievers_made, documents):
    def first_token(side: str, text: str | None) -> np.ndarray:
        tokens = AutoTokenizer.from_pretrained(retrievers_made / side)(text, return_tensors="pt")
        model = AutoModel.from_pretrained(retrievers_made / side)
        with torch.inference_mode():
            return model(**tokens).last_hidden_state[0, 0].numpy()

    other = str(retrievers_made / "context")
    encoder = load_encoder(entry(retrievers_made, "bert", documents=other))
    assert encoder.normalized is False
    asked = [first_token("bert", text) for text in QUESTIONS]
    np.testing.assert_allclose(encoder.encode_queries(queries()), asked, atol=1e-5)
    found = [first_token("context", document.text) for document in documents]
    np.testing.assert_allclose(embed(encoder, documents), found, atol=1e-5)


STATED = {"query": "query: ", "document": "passage: "}


@pytest.mark.slow
@pytest.mark.parametrize("prompts", [None, STATED])
@pytest.mark.parametrize("given", [False, True])
def test_a_folder_encodes_as_the_library_does_with_its_prompts_or_the_entrys(
    prompts, given, tmp_path, documents
):
    folder = tiny.sentences(tmp_path / "sentences", prompts=prompts, normalize=prompts is None)
    own = {"query_prompt": "seek {text}", "document_prompt": "read {text}"} if given else {}
    encoder = load_encoder({"model": str(folder), **own})
    library = SentenceTransformer(str(folder), device="cpu")
    before = {"query": "seek ", "document": "read "} if given else prompts or {}
    sides = {side: before.get(side, "") for side in STATED}
    texts = [document.text for document in documents]
    asked = library.encode([sides["query"] + text for text in QUESTIONS], prompt="")
    expected = library.encode([f"{sides['document']}{text}" for text in texts], prompt="")
    np.testing.assert_allclose(encoder.encode_queries(queries()), asked, atol=1e-5)
    np.testing.assert_allclose(embed(encoder, documents), expected, atol=1e-5)
    assert encoder.normalized is (prompts is None)
    assert encoder.prompts == {side: f"{text}{{text}}" for side, text in sides.items()}


@pytest.mark.slow
def test_a_folder_is_pooled_as_the_entry_says(retrievers_made):
    folder, cls = retrievers_made / "sentences", {"pooling": "cls", "normalize": True}
    specs = [{"model": str(folder), **cls}, {"model": f"{folder}-bert", **cls}, str(folder)]
    rows = [load_encoder(spec).encode_queries(queries()) for spec in specs]
    assert np.array_equal(rows[0], rows[1])
    assert not np.allclose(rows[0], rows[2], atol=0.01)


def test_a_part_outside_of_the_folder_is_not_opened(copy_retriever):
    folder = copy_retriever("sentences")
    first, *others = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    shutil.copytree(folder, folder.parent / "other")
    parts = [{**first, "path": "../other"}, *others]
    (folder / "modules.json").write_text(json.dumps(parts), encoding="utf-8")
    refused(partial(load_encoder, str(folder)), "modules.json", "'../other' points outside")


@pytest.fixture(scope="module")
def qwen3_vl_embedding(checkpoint_of, tmp_path_factory):
    """As Qwen/Qwen3-VL-Embedding-2B: a Qwen3-VL whose last token's state is the vector, with an
    instruction in the system message.
    """
    transformer = Transformer(str(checkpoint_of("qwen3_vl")), transformer_task="feature-extraction")
    pooling = Pooling(transformer.get_embedding_dimension(), pooling_mode="lasttoken")
    prompts = dict.fromkeys(("query", "document"), "Represent the user's input.")
    folder = tmp_path_factory.mktemp("qwen3") / "Qwen3-VL-Embedding-2B"
    modules = [transformer, pooling, Normalize()]
    SentenceTransformer(modules=modules, prompts=prompts, device="cpu").save_pretrained(str(folder))
    return folder


@pytest.mark.parametrize("part", ["text", "image", "both"])
def test_multimodal_folders(part, qwen3_vl_embedding, documents):
    image = documents[0].image
    asked = Query(query_id="q", text=QUESTIONS[0], image=image)
    whole: dict[str, Any] = {"text": asked.text, "image": image.open()}
    given = whole if part == "both" else whole[part]
    library = SentenceTransformer(str(qwen3_vl_embedding), device="cpu")
    encoder = load_encoder({"model": str(qwen3_vl_embedding), "query": part})
    expected = library.encode_query([given])
    np.testing.assert_allclose(encoder.encode_queries([asked]), expected, atol=1e-5)
    pictures = library.encode_document([each.image.open() for each in documents])
    np.testing.assert_allclose(embed(encoder, documents), pictures, atol=1e-5)
