"""MagicLens, loaded as any retriever, gives what its arithmetic gives, done here by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import open_clip
import pytest
import tiny_magiclens as tiny
import tiny_retrievers
import torch
from retrieval_data import refused, square
from tiny_retrievers import embed

from vrag_kit.retrieval import load_encoder
from vrag_kit.types import Document, Query

Vector = Callable[[Document, str], np.ndarray]


@pytest.fixture(scope="module")
def lens(retrievers_made: Path) -> Path:
    return retrievers_made / "lens"


@pytest.fixture(scope="module")
def by_hand(lens: Path) -> Vector:
    """Picture and text by open_clip itself, then by the head's arithmetic."""
    clip, _, see = open_clip.create_model_and_transforms(f"local-dir:{lens / 'clip'}")
    read = open_clip.get_tokenizer(f"local-dir:{lens / 'clip'}")
    clip.eval()

    @torch.inference_mode()
    def by_hand(picture: Document, text: str) -> np.ndarray:
        (seen,) = clip.encode_image(see(picture.image.open())[None]).numpy()
        return tiny.fused(lens, seen, clip.encode_text(read([text]))[0].numpy())

    return by_hand


def test_a_vector_is_its_arithmetic_by_hand(lens: Path, tmp_path: Path, by_hand: Vector) -> None:
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


def test_weights_of_other_sizes_are_refused(copy_retriever: Callable[[str], Path]) -> None:
    folder = copy_retriever("lens")
    load = partial(load_encoder, str(folder))
    tiny_retrievers.edit_json(folder / "config.json", hidden=48)
    refused(load, "size mismatch for layers.0.widen")
    tiny_retrievers.edit_json(folder / "config.json", hidden="40")
    refused(load, "hidden: found '40'")
