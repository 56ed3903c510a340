"""A checkpoint of open_clip embeds as open_clip does, and one that does not fit is refused."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import open_clip
import pytest
import tiny_retrievers as tiny
import torch
from retrieval_data import refused
from safetensors.torch import save_file
from tiny_retrievers import QUESTIONS, embed, queries

from vrag_kit.retrieval import load_encoder
from vrag_kit.types import Document


@pytest.mark.parametrize("mode", ["shortest", "squash"])
def test_vectors_are_those_of_open_clip(
    mode: str, documents: list[Document], tmp_path: Path
) -> None:
    """As apple/DFN5B-CLIP-ViT-H-14-378: QuickGELU, and images that are squashed."""
    changes = {"quick_gelu": mode == "squash", "preprocess": {"resize_mode": mode}}
    folder = f"local-dir:{tiny.open_clip(tmp_path / 'model', 64, **changes)}"
    model, _, transform = open_clip.create_model_and_transforms(folder)
    pixels = torch.stack([transform(document.image.open()) for document in documents])
    tokens = open_clip.get_tokenizer(folder)(QUESTIONS)
    with torch.inference_mode():
        images = model.eval().encode_image(pixels, normalize=True).numpy()
        texts = model.encode_text(tokens, normalize=True).numpy()
    encoder = load_encoder(str(tmp_path / "model"))
    np.testing.assert_allclose(encoder.encode_queries(queries()), texts, atol=1e-5)
    assert (embed(encoder, documents) * images).sum(axis=1).min() > 0.999
    stated = model.visual.preprocess_cfg
    mean, std = (torch.tensor(stated[key]).view(3, 1, 1) for key in ("mean", "std"))
    for document, theirs in zip(documents, pixels, strict=True):
        ours = encoder.prepare(document).pixels.float() / 255
        assert (ours - (theirs * std + mean)).abs().max() <= 1 / 255 + 1e-4


def test_quickgelu_mismatches_and_pickles_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = open_clip.get_model_config("RN50") | {"embed_dim": 16}
    small["vision_cfg"] = {"image_size": 32, "layers": [1, 1, 1, 1], "width": 8}
    small["text_cfg"] |= {"width": 16, "heads": 2, "layers": 1}
    monkeypatch.setitem(open_clip.factory._MODEL_CONFIGS, "RN50", small)
    weights = tmp_path / "openai.safetensors"
    state = open_clip.create_model("RN50").state_dict()
    save_file({name: values.contiguous() for name, values in state.items()}, weights)
    monkeypatch.setattr(open_clip.factory, "download_pretrained", lambda *_, **__: str(weights))
    mismatch = partial(load_encoder, "RN50/openai")
    refused(mismatch, "QuickGELU mismatch", "RN50-quickgelu/openai")
    weights = tmp_path / "open_clip_pytorch_model.bin"
    monkeypatch.setattr(open_clip.factory, "download_pretrained", lambda *_, **__: str(weights))
    refused(partial(load_encoder, "ViT-B-32/openai"), "model.bin are a pickle", "safetensors")
