"""CLIP, SigLIP and SigLIP 2 give the logits of transformers; code of a checkpoint needs trust."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import tiny_retrievers as tiny
import torch
from PIL import Image
from retrieval_data import refused
from tiny_retrievers import QUESTIONS, embed, entry, queries
from transformers import AutoImageProcessor, AutoModel, AutoTokenizer

from vrag_kit.benchmarks import ImageFile
from vrag_kit.retrieval import load_encoder
from vrag_kit.types import Document

Copy = Callable[[str], Path]


@pytest.mark.slow
@pytest.mark.parametrize("family", ["clip", "siglip", "siglip2", "siglip2 of one resolution"])
def test_cosines_are_the_logits_of_transformers_without_scale_and_bias(
    family: str, retrievers_made: Path, documents: list[Document], tmp_path: Path
) -> None:
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


def test_images_are_turned_upright_before_they_are_preprocessed(
    retrievers_made: Path, documents: list[Document], tmp_path: Path
) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    documents[0].image.open().rotate(90, expand=True).save(tmp_path / "turned.png", exif=exif)
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
    copy_retriever: Copy, retrievers_made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_clip_with_custom_code_is_loaded_natively_and_the_code_never_runs(
    retrievers_made: Path, copy_retriever: Copy, documents: list[Document]
) -> None:
    folder = copy_retriever("clip")
    code = "raise SystemExit('remote code ran')\n"
    (folder / "modeling_MMRet_CLIP.py").write_text(code, encoding="utf-8")
    tiny.edit_json(folder / "config.json", auto_map={"AutoModel": "modeling_MMRet_CLIP.CLIPModel"})
    plain = embed(load_encoder(str(retrievers_made / "clip")), documents)
    np.testing.assert_array_equal(embed(load_encoder(str(folder)), documents), plain)
