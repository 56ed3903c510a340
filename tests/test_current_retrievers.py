"""Current retrievers are entries: a tiny checkpoint of each class, against its own library."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import tiny_models
import tiny_retrievers as tiny
import torch
from tiny_retrievers import QUESTIONS, embed, queries

from vrag_kit.retrieval import load_encoder
from vrag_kit.types import Document, Query

PE_CORE = {
    "image_size": 384,
    "timm_model_name": "vit_pe_core_tiny_patch16_384",
    "timm_model_pretrained": False,
    "timm_pool": "map",
    "timm_proj": None,
}
DFN = {"image_size": 63, "patch_size": 9, "width": 32, "layers": 1, "head_width": 16}


def pe_core(folder: Path) -> Path:
    """As timm/PE-Core-*: an image tower of timm, with timm's own config.json beside."""
    made = tiny.open_clip_layout(folder, PE_CORE, custom_text=True)
    stated = {"architecture": PE_CORE["timm_model_name"], "num_features": 192}
    (made / "config.json").write_text(json.dumps(stated), encoding="utf-8")
    return made


def dfn(folder: Path) -> Path:
    """As apple/DFN5B-CLIP-ViT-H-14-378: QuickGELU, and images that are squashed."""
    return tiny.open_clip_layout(folder, DFN, quick_gelu=True, preprocess={"resize_mode": "squash"})


@pytest.mark.parametrize("build", [pe_core, dfn])
def test_a_model_in_open_clips_layout_is_loaded_by_its_name_on_the_hub(
    build: Callable[[Path], Path],
    documents: list[Document],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = build(tmp_path / "model")
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: str(folder))
    model, _, transform = open_clip.create_model_and_transforms(f"local-dir:{folder}")
    tokenizer = open_clip.get_tokenizer(f"local-dir:{folder}")
    pixels = torch.stack([transform(document.image.open()) for document in documents])
    with torch.inference_mode():
        images = model.eval().encode_image(pixels, normalize=True).numpy()
        texts = model.encode_text(tokenizer(QUESTIONS), normalize=True).numpy()
    encoder = load_encoder("somebody/some-model")
    assert encoder.name == "somebody-some-model"
    np.testing.assert_allclose(encoder.encode_queries(queries()), texts, atol=1e-5)
    assert (embed(encoder, documents) * images).sum(axis=1).min() > 0.999


def test_siglip_2_of_one_resolution_lowers_its_texts_and_pads_them_to_the_end(
    documents: list[Document], tmp_path: Path
) -> None:
    """google/siglip2-*-patch16-224 has SigLIP's model, and SigLIP 2's tokenizer."""
    from transformers import AutoImageProcessor, AutoModel, AutoTokenizer

    folder = tiny.siglip(tmp_path / "siglip2", tokenizer=tiny.siglip2_tokenizer(16))
    model, tokenizer, images = (
        auto.from_pretrained(folder) for auto in (AutoModel, AutoTokenizer, AutoImageProcessor)
    )
    lowered = [text.lower() for text in QUESTIONS]
    whole = {"padding": "max_length", "truncation": True, "max_length": 16}
    tokens = tokenizer(lowered, return_tensors="pt", **whole)
    shown = images(images=[each.image.open() for each in documents], return_tensors="pt")
    with torch.inference_mode():
        logits = model(input_ids=tokens["input_ids"], **shown).logits_per_text
    expected = (logits - model.logit_bias) / model.logit_scale.exp()
    encoder = load_encoder(str(folder))
    cosines = encoder.encode_queries(queries()) @ embed(encoder, documents).T
    np.testing.assert_allclose(cosines, expected.detach().numpy(), atol=2e-3)


@pytest.fixture(scope="module")
def qwen3_vl_embedding(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As Qwen/Qwen3-VL-Embedding-2B: a Qwen3-VL whose last token's state is the vector, in the
    layout of sentence-transformers, with an instruction in the system message.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    base = tiny_models.built("qwen3_vl", tmp_path_factory)
    transformer = Transformer(str(base), transformer_task="feature-extraction")
    pooling = Pooling(transformer.get_embedding_dimension(), pooling_mode="lasttoken")
    prompts = dict.fromkeys(("query", "document"), "Represent the user's input.")
    folder = tmp_path_factory.mktemp("qwen3") / "Qwen3-VL-Embedding-2B"
    SentenceTransformer(
        modules=[transformer, pooling, Normalize()], prompts=prompts, device="cpu"
    ).save_pretrained(str(folder))
    return folder


@pytest.mark.parametrize("part", ["text", "image", "both"])
def test_a_multimodal_folder_of_sentence_transformers_encodes_as_the_library_does(
    part: str, qwen3_vl_embedding: Path, documents: list[Document]
) -> None:
    from sentence_transformers import SentenceTransformer

    image = documents[0].image
    asked = Query(query_id="q", text=QUESTIONS[0], image=image)
    given: dict[str, Any] = {
        "text": asked.text,
        "image": image.open(),
        "both": {"text": asked.text, "image": image.open()},
    }
    library = SentenceTransformer(str(qwen3_vl_embedding), device="cpu")
    encoder = load_encoder({"model": str(qwen3_vl_embedding), "query": part})
    np.testing.assert_allclose(
        encoder.encode_queries([asked]), library.encode_query([given[part]]), atol=1e-5
    )
    np.testing.assert_allclose(
        embed(encoder, documents),
        library.encode_document([each.image.open() for each in documents]),
        atol=1e-5,
    )
