"""CLIP, SigLIP and SigLIP 2 give the logits of transformers, open_clip its own vectors; our fast
decoder gives Pillow's pixels; code of a checkpoint needs trust.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import tiny_retrievers as tiny
import torch
from PIL import Image
from retrieval_data import refused
from safetensors.torch import save_model
from tiny_retrievers import QUESTIONS, embed, entry, queries
from transformers import AutoImageProcessor, AutoModel, AutoTokenizer

from vrag_kit.benchmarks import ImageFile
from vrag_kit.benchmarks.images import decode
from vrag_kit.retrieval import load_encoder
from vrag_kit.retrieval.encoders.pixels import decode_rgb
from vrag_kit.types import Document

Copy = Callable[[str], Path]


@pytest.mark.slow
@pytest.mark.parametrize("family", ["clip", "siglip", "siglip2", "siglip2 of one resolution"])
def test_cosines_are_the_logits_of_transformers_without_scale_and_bias(
    family, retrievers_made, documents, tmp_path
):
    """google/siglip2-*-patch16-224 has SigLIP's model, and SigLIP 2's tokenizer, which lowers."""
    folder = retrievers_made / family
    if " " in family:
        folder = tiny.siglip(tmp_path / "siglip2", tokenizer=tiny.siglip2_tokenizer(16))
    model, tokenizer, images = (
        auto.from_pretrained(folder) for auto in (AutoModel, AutoTokenizer, AutoImageProcessor)
    )
    texts = [text.lower() for text in QUESTIONS] if " " in family else QUESTIONS
    whole = {"padding": "max_length", "max_length": tokenizer.model_max_length}
    padding = {"padding": True} if family == "clip" else whole
    tokens = tokenizer(texts, truncation=True, return_tensors="pt", **padding)
    if family != "clip":  # the checkpoints of SigLIP attend to the padding
        tokens = {"input_ids": tokens["input_ids"]}
    pixels = images(images=[document.image.open() for document in documents], return_tensors="pt")
    with torch.inference_mode():
        logits = model(**tokens, **pixels).logits_per_text
    expected = (logits - getattr(model, "logit_bias", 0)) / model.logit_scale.exp()
    encoder = load_encoder(str(folder))
    cosines = encoder.encode_queries(queries()) @ embed(encoder, documents).T
    np.testing.assert_allclose(cosines, expected.detach().numpy(), atol=2e-3)


def test_images_are_upright(retrievers_made, documents, tmp_path):
    documents[0].image.open().rotate(90, expand=True).save(tmp_path / "turned.png", exif=EXIF)
    turned = Document(doc_id="turned", image=ImageFile(tmp_path / "turned.png"))
    for family in ("clip", "qwen2_vl"):
        encoder = load_encoder(entry(retrievers_made, family))
        ours, expected = embed(encoder, [turned]), embed(encoder, documents[:1])
        np.testing.assert_allclose(ours, expected, atol=1e-5)


FOREIGN = """
from pathlib import Path
from transformers import CLIPConfig, CLIPModel
Path(__file__).with_name("mark").touch()
class ForeignConfig(CLIPConfig):
    model_type = "foreign_clip"
class ForeignModel(CLIPModel):
    config_class = ForeignConfig
    def get_text_features(self, **inputs):
        return super().get_text_features(**inputs).pooler_output
    def get_image_features(self, **inputs):
        return super().get_image_features(**inputs).pooler_output
"""
"""A CLIP of a type that transformers does not know, whose code leaves a mark when it runs and
returns bare tensors.
"""


def test_code_of_a_checkpoint_runs_only_if_the_entry_says_so(
    copy_retriever, retrievers_made, tmp_path, monkeypatch
):
    cache = "transformers.dynamic_module_utils.HF_MODULES_CACHE"
    monkeypatch.setattr(cache, str(tmp_path / "modules"))
    folder = copy_retriever("clip")
    (folder / "modeling_foreign.py").write_text(FOREIGN, encoding="utf-8")
    kinds = {"AutoConfig": "ForeignConfig", "AutoModel": "ForeignModel"}
    code = {auto: f"modeling_foreign.{name}" for auto, name in kinds.items()}
    tiny.edit_json(folder / "config.json", model_type="foreign_clip", auto_map=code)
    refused(partial(load_encoder, str(folder)), "trust_remote_code=True")
    assert not list(tmp_path.rglob("mark"))
    theirs = load_encoder({"model": str(folder), "trust_remote_code": True})
    assert list(tmp_path.rglob("mark"))
    ours = load_encoder(str(retrievers_made / "clip"))
    found, expected = theirs.encode_queries(queries()), ours.encode_queries(queries())
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("mode", ["shortest", "squash"])
def test_vectors_equal_open_clips(mode, documents, tmp_path):
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


def test_wrong_activations_and_pickles_fail(tmp_path, monkeypatch):
    small = open_clip.get_model_config("RN50") | {"embed_dim": 16}
    small["vision_cfg"] = {"image_size": 32, "layers": [1, 1, 1, 1], "width": 8}
    small["text_cfg"] |= {"width": 16, "heads": 2, "layers": 1}
    monkeypatch.setitem(open_clip.factory._MODEL_CONFIGS, "RN50", small)
    weights = tmp_path / "openai.safetensors"
    save_model(open_clip.create_model("RN50"), str(weights))
    monkeypatch.setattr(open_clip.factory, "download_pretrained", lambda *_, **__: str(weights))
    mismatch = partial(load_encoder, "RN50/openai")
    refused(mismatch, "QuickGELU mismatch", "RN50-quickgelu/openai")
    weights = tmp_path / "open_clip_pytorch_model.bin"
    refused(partial(load_encoder, "ViT-B-32/openai"), "model.bin are a pickle", "safetensors")


EXIF = Image.Exif()
EXIF[0x0112] = 6
JPEG = {"format": "JPEG", "quality": 95}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "upright": ("RGB", JPEG),
    "turned": ("RGB", {**JPEG, "exif": EXIF}),
    "cmyk": ("CMYK", JPEG),
    "gray": ("L", {"format": "PNG"}),
    "palette": ("P", {"format": "PNG"}),
    "transparent": ("RGBA", {"format": "PNG"}),
    "16-bit": ("I;16", {"format": "PNG"}),
    "webp": ("RGB", {"format": "WEBP", "lossless": True}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_image_is_decoded_as_pillow_does(kind):
    mode, options = KINDS[kind]
    noise = np.random.default_rng(0).integers(0, 255, (20, 30, 3), dtype=np.uint8)
    image = Image.fromarray(noise).resize((60, 40))
    if mode == "I;16":
        image = Image.fromarray(np.asarray(image.convert("L")).astype(np.uint16) * 257)
    file = io.BytesIO()
    (image if mode == "I;16" else image.convert(mode)).save(file, **options)
    theirs = np.array(decode(file.getvalue(), kind), int).transpose(2, 0, 1)
    ours = decode_rgb(file.getvalue(), kind).numpy()
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() <= 2
