"""MagicLens, loaded as any retriever, gives what its arithmetic gives, done here by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import open_clip
import pytest
import tiny_retrievers
import torch
from retrieval_data import refused, square
from safetensors.torch import load_file
from tiny_retrievers import embed

from vrag_kit.retrieval import load_encoder
from vrag_kit.types import Document, Query

Vector = Callable[[Document, str], np.ndarray]
Weights = dict[str, torch.Tensor]
HEADS = 3


@pytest.fixture(scope="module")
def lens(retrievers_made):
    return retrievers_made / "lens"


def fused(p: Weights, tokens: torch.Tensor) -> np.ndarray:
    """The vector of a picture's and a text's, (2, width), at unit length: the arithmetic of the
    authors' code (google-deepmind/magiclens).
    """
    for place in ("layers.0", "layers.1"):
        normed = norm(p, f"{place}.before_attention", tokens)
        scale = (tokens.shape[1] // HEADS) ** -0.5
        tokens = tokens + attend(p, f"{place}.attention", normed, normed, scale)
        normed = norm(p, f"{place}.before_maps", tokens)
        tokens = tokens + affine(p, f"{place}.narrow", affine(p, f"{place}.widen", normed).relu())
    scale = 1.442695041 / (48 // HEADS) ** 0.5 * p["pooling.scale"].exp().log1p()
    row = norm(p, "norm", attend(p, "pooling", p["query"], tokens, scale))[0]
    return (row / row.norm()).numpy()


def attend(p: Weights, place: str, asking: Any, asked: Any, scale: Any) -> torch.Tensor:
    query, key, value = (
        affine(p, f"{place}.{part}", tokens).reshape(len(tokens), HEADS, -1)
        for part, tokens in (("of_query", asking), ("of_key", asked), ("of_value", asked))
    )
    logits = torch.einsum("tnh,snh->nts", query * scale, key)
    shares = (50 * torch.tanh(logits / 50)).softmax(-1)
    found = torch.einsum("nts,snh->tnh", shares, value)
    return affine(p, f"{place}.back", found.reshape(len(asking), -1))


def affine(p: Weights, name: str, rows: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.linear(rows, p[f"{name}.weight"], p[f"{name}.bias"])


def norm(p: Weights, name: str, rows: torch.Tensor) -> torch.Tensor:
    weights = (p[f"{name}.weight"], p[f"{name}.bias"])
    return torch.nn.functional.layer_norm(rows, rows.shape[-1:], *weights, eps=1e-6)


@pytest.fixture(scope="module")
def by_hand(lens):
    """Picture and text by open_clip itself, then by the head's arithmetic."""
    clip, _, see = open_clip.create_model_and_transforms(f"local-dir:{lens / 'clip'}")
    read = open_clip.get_tokenizer(f"local-dir:{lens / 'clip'}")
    clip.eval()

    @torch.inference_mode()
    def by_hand(picture: Document, text: str) -> np.ndarray:
        seen = clip.encode_image(see(picture.image.open())[None])
        tokens = torch.cat([seen, clip.encode_text(read([text]))])
        return fused(load_file(lens / "model.safetensors"), tokens)

    return by_hand


def test_a_vector_is_its_arithmetic_by_hand(lens, tmp_path, by_hand):
    encoder, image = load_encoder(str(lens)), square(tmp_path, 32)
    text = "What color is it?"
    query = Query(query_id="q", text=text, image=image.image)
    np.testing.assert_allclose(encoder.encode_queries([query])[0], by_hand(image, text), atol=2e-5)
    np.testing.assert_allclose(embed(encoder, [image])[0], by_hand(image, ""), atol=2e-5)
    assert np.abs(by_hand(image, text) - by_hand(image, "")).max() > 0.01
    alone = load_encoder({"model": str(lens), "query": "image"})
    np.testing.assert_allclose(alone.encode_queries([query]), embed(encoder, [image]), atol=1e-6)
    assert (encoder.name, alone.name) == ("lens", "lens-by-image")
    assert encoder.fingerprint != alone.fingerprint
    told = load_encoder({"model": str(lens), "document": "both"})
    whole = by_hand(image, "The goose has black feet.")
    np.testing.assert_allclose(embed(told, [image])[0], whole, atol=2e-5)


def test_weights_of_other_sizes_are_refused(copy_retriever):
    folder = copy_retriever("lens")
    load = partial(load_encoder, str(folder))
    tiny_retrievers.edit_json(folder / "config.json", hidden=48)
    refused(load, "size mismatch for layers.0.widen")
    tiny_retrievers.edit_json(folder / "config.json", hidden="40")
    refused(load, "hidden: found '40'")
