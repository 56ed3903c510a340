"""A checkpoint of open_clip embeds as open_clip does, and one that does not fit is refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import open_clip
import pytest
import tiny_retrievers as tiny
import torch
from PIL import Image
from retrieval_data import refused
from safetensors.torch import save_file
from tiny_retrievers import QUESTIONS, embed, queries

from vrag_kit.benchmarks import ImageFile
from vrag_kit.retrieval import load_encoder
from vrag_kit.types import Document

Build = Callable[..., Path]
DFN = {"image_size": 63, "patch_size": 9, "width": 32, "layers": 1, "head_width": 16}


def dfn(folder: Path) -> Path:
    """As apple/DFN5B-CLIP-ViT-H-14-378: QuickGELU, and images that are squashed."""
    return tiny.open_clip_layout(folder, DFN, quick_gelu=True, preprocess={"resize_mode": "squash"})


def by_open_clip(folder: Path, documents: list[Document]) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of images and of the questions."""
    model, _, transform = open_clip.create_model_and_transforms(f"local-dir:{folder}")
    tokenizer = open_clip.get_tokenizer(f"local-dir:{folder}")
    pixels = torch.stack([transform(document.image.open()) for document in documents])
    with torch.inference_mode():
        images = model.eval().encode_image(pixels, normalize=True).numpy()
        return images, model.encode_text(tokenizer(QUESTIONS), normalize=True).numpy()


def test_a_model_in_open_clips_layout_is_loaded_by_its_name_on_the_hub(
    documents: list[Document],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = dfn(tmp_path / "model")
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: str(folder))
    images, texts = by_open_clip(folder, documents)
    encoder = load_encoder("somebody/some-model")
    assert encoder.name == "somebody-some-model"
    np.testing.assert_allclose(encoder.encode_queries(queries()), texts, atol=1e-5)
    assert (embed(encoder, documents) * images).sum(axis=1).min() > 0.999


def test_a_local_checkpoint_gives_open_clips_pixels_and_vectors(
    checkpoint: Build, tmp_path: Path
) -> None:
    folder, documents = checkpoint(resize_mode="shortest"), []
    for height, width in [(90, 61), (61, 90), (64, 64)]:
        noise = np.random.default_rng(1).integers(0, 255, (height, width, 3), dtype=np.uint8)
        path = tmp_path / f"{height}.jpg"
        Image.fromarray(noise).resize((3 * width, 3 * height)).save(path, quality=95)
        documents.append(Document(doc_id=path.name, image=ImageFile(path)))
    encoder = load_encoder(str(folder))
    images, texts = by_open_clip(folder, documents)
    assert (embed(encoder, documents) * images).sum(axis=1).min() > 0.999
    np.testing.assert_allclose(encoder.encode_queries(queries()), texts, atol=1e-5)
    model, _, transform = open_clip.create_model_and_transforms(f"local-dir:{folder}")
    stated = model.visual.preprocess_cfg
    mean, std = (torch.tensor(stated[key]).view(3, 1, 1) for key in ("mean", "std"))
    for document in documents:
        ours = encoder.prepare(document).pixels.float() / 255
        theirs = transform(document.image.open()) * std + mean
        assert (ours - theirs).abs().max() <= 1 / 255 + 1e-4


def test_a_checkpoint_with_nan_weights_is_refused_by_tensor_name(checkpoint: Build) -> None:
    def poison(state: dict[str, torch.Tensor]) -> None:
        state["visual.conv1.weight"][0, 0, 0, 0] = float("nan")

    load = partial(load_encoder, str(checkpoint(damage=poison)))
    refused(load, "'visual.conv1.weight'", "1 values that are NaN")


def test_a_quickgelu_mismatch_and_a_pickle_are_errors(
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
