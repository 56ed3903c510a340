"""A checkpoint of open_clip embeds as open_clip does, and one that does not fit is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import open_clip
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from vrag_kit.benchmarks import ImageFile
from vrag_kit.errors import VragError
from vrag_kit.retrieval import load_encoder
from vrag_kit.types import Document, Query

Build = Callable[..., Path]


@pytest.mark.parametrize(
    ("resize_mode", "size"),
    [("shortest", (90, 61)), ("shortest", (61, 90)), ("shortest", (64, 64)), ("squash", (90, 61))],
)
def test_a_local_checkpoint_embeds_as_open_clip_itself_does(
    checkpoint: Build, tmp_path: Path, resize_mode: str, size: tuple[int, int]
) -> None:
    folder = checkpoint(resize_mode=resize_mode)
    rng = np.random.default_rng(1)
    Image.fromarray(rng.integers(0, 255, (*size, 3), dtype=np.uint8)).resize(
        (size[1] * 3, size[0] * 3)
    ).save(tmp_path / "p.jpg", quality=95)
    encoder = load_encoder(str(folder))
    document = Document(doc_id="p", image=ImageFile(tmp_path / "p.jpg"))
    model, _, transform = open_clip.create_model_and_transforms(f"local-dir:{folder}")
    with torch.inference_mode():
        pixels = transform(Image.open(tmp_path / "p.jpg").convert("RGB"))
        image = model.eval().encode_image(pixels[None], normalize=True).numpy()
        text = model.encode_text(
            open_clip.get_tokenizer(f"local-dir:{folder}")(["a blue bird"]), normalize=True
        ).numpy()
    ours = encoder.prepare(document).pixels.float() / 255
    mean, std = (
        torch.tensor(model.visual.preprocess_cfg[key]).view(3, 1, 1) for key in ("mean", "std")
    )
    assert (ours - (pixels * std + mean)).abs().max() <= 1 / 255 + 1e-4
    assert float((encoder.encode_documents([encoder.prepare(document)]) * image).sum()) > 0.999
    np.testing.assert_allclose(
        encoder.encode_queries([Query(query_id="q", text="a blue bird")]), text, atol=1e-5
    )


def test_the_fingerprint_tells_weights_and_preprocessing_apart(checkpoint: Build) -> None:
    folders = [
        checkpoint("one"),
        checkpoint("two", seed=1),
        checkpoint("three", resize_mode="squash"),
    ]
    prints = [load_encoder(str(folder)).fingerprint for folder in folders]
    assert len(set(prints)) == 3
    assert load_encoder(str(folders[0])).fingerprint == prints[0]


def test_a_checkpoint_with_nan_weights_is_refused_by_tensor_name(checkpoint: Build) -> None:
    def poison(state: dict[str, torch.Tensor]) -> None:
        state["visual.conv1.weight"][0, 0, 0, 0] = float("nan")

    with pytest.raises(VragError, match=r"'visual\.conv1\.weight' holds 1 values that are NaN"):
        load_encoder(str(checkpoint(damage=poison)))


def test_a_quickgelu_mismatch_is_an_error_and_not_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = tmp_path / "openai.safetensors"
    small = open_clip.get_model_config("RN50") | {"embed_dim": 16}
    small["vision_cfg"] = {"image_size": 32, "layers": [1, 1, 1, 1], "width": 8}
    small["text_cfg"] |= {"width": 16, "heads": 2, "layers": 1}
    monkeypatch.setitem(open_clip.factory._MODEL_CONFIGS, "RN50", small)
    monkeypatch.setattr(open_clip.factory, "download_pretrained", lambda *_, **__: str(weights))
    save_file(
        {k: v.contiguous() for k, v in open_clip.create_model("RN50").state_dict().items()}, weights
    )
    with pytest.raises(VragError, match=r"QuickGELU mismatch.*RN50-quickgelu/openai"):
        load_encoder("RN50/openai")


def test_a_tag_whose_weights_are_a_pickle_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = tmp_path / "open_clip_pytorch_model.bin"
    monkeypatch.setattr(open_clip.factory, "download_pretrained", lambda *_, **__: str(weights))
    with pytest.raises(VragError, match=r"model\.bin are a pickle; expected safetensors"):
        load_encoder("ViT-B-32/openai")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("ViT-L-14-337/openai", "ViT-L-14-337"),
        ("ViT-L-14-336-quickgelu/closedai", "closedai.*openai"),
        ("no/such/folder", "no such folder"),
    ],
)
def test_an_unknown_model_is_refused_with_what_there_is(spec: str, words: str) -> None:
    with pytest.raises(VragError, match=words):
        load_encoder(spec)


def test_a_device_that_is_not_there_is_refused_with_what_to_do(checkpoint: Build) -> None:
    with pytest.raises(VragError, match=r"device 'gpu': .*cuda.* `device` to \"cpu\""):
        load_encoder(str(checkpoint()), device="gpu")
