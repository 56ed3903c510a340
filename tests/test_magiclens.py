"""MagicLens, loaded as any retriever, gives what its arithmetic gives, done here by hand."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import open_clip
import pytest
import tiny_magiclens as tiny
import tiny_retrievers
import torch
from PIL import Image
from tiny_retrievers import embed

from vrag_kit.benchmarks import ImageFile
from vrag_kit.errors import VragError
from vrag_kit.retrieval import load_encoder
from vrag_kit.types import Document, Query

Vector = Callable[[Document, str], np.ndarray]


@pytest.fixture(scope="module")
def lens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write(tmp_path_factory.mktemp("magiclens") / "tiny-lens")


@pytest.fixture
def square(tmp_path: Path) -> Document:
    """A picture of the model's own size, which nothing resizes."""
    pixels = np.random.default_rng(3).integers(0, 255, (32, 32, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "square.png")
    return Document(doc_id="square", image=ImageFile(tmp_path / "square.png"), text="petals")


@pytest.fixture(scope="module")
def by_hand(lens: Path) -> Vector:
    """Picture and text by open_clip itself, then by the head's arithmetic."""
    clip, _, see = open_clip.create_model_and_transforms(f"local-dir:{lens / 'clip'}")
    read = open_clip.get_tokenizer(f"local-dir:{lens / 'clip'}")
    clip.eval()

    @torch.inference_mode()
    def by_hand(picture: Document, text: str) -> np.ndarray:
        assert picture.image is not None
        (seen,) = clip.encode_image(see(picture.image.open())[None]).numpy()
        return tiny.fused(lens, seen, clip.encode_text(read([text]))[0].numpy())

    return by_hand


def test_picture_and_instruction_become_the_vector_that_its_arithmetic_gives(
    lens: Path, square: Document, by_hand: Vector
) -> None:
    encoder = load_encoder(str(lens))
    text = "What color are the petals?"
    query = Query(query_id="q", text=text, image=square.image)
    np.testing.assert_allclose(encoder.encode_queries([query])[0], by_hand(square, text), atol=2e-5)
    np.testing.assert_allclose(embed(encoder, [square])[0], by_hand(square, ""), atol=2e-5)
    assert np.abs(by_hand(square, text) - by_hand(square, "")).max() > 0.01


def test_the_picture_alone_is_asked_with_the_documents_empty_text(
    lens: Path, square: Document, by_hand: Vector
) -> None:
    alone = load_encoder({"model": str(lens), "query": "image"})
    usual = load_encoder(str(lens))
    query = Query(query_id="q", text="What color?", image=square.image)
    np.testing.assert_allclose(alone.encode_queries([query]), embed(usual, [square]), atol=1e-6)
    assert (usual.name, alone.name) == ("tiny-lens", "tiny-lens-by-image")
    assert usual.fingerprint != alone.fingerprint
    told = load_encoder({"model": str(lens), "document": "both"})
    np.testing.assert_allclose(embed(told, [square])[0], by_hand(square, "petals"), atol=2e-5)


def test_pictures_are_squashed_and_company_changes_nothing(
    lens: Path, documents: list[Document], by_hand: Vector, tmp_path: Path
) -> None:
    encoder = load_encoder(str(lens))
    wide = documents[2]
    assert wide.image is not None
    image = wide.image.open()  # 33 high, 91 wide
    whole = image.resize((32, 32), Image.Resampling.BILINEAR)
    middle = image.crop((29, 0, 62, 33)).resize((32, 32), Image.Resampling.BILINEAR)
    rows = embed(encoder, documents)
    apart = []
    for picture in (whole, middle):
        picture.save(tmp_path / "picture.png")
        same = replace(wide, image=ImageFile(tmp_path / "picture.png"))
        apart.append(np.abs(by_hand(same, "") - rows[2]).max())
    assert apart[0] < 1e-3 < apart[1]
    np.testing.assert_allclose(
        rows, np.concatenate([embed(encoder, [d]) for d in documents]), atol=1e-5
    )


def test_a_head_on_another_base_or_with_other_weights_is_refused(
    lens: Path, square: Document, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(lens, tmp_path / "lens"))
    tiny_retrievers.edit_json(folder / "config.json", base="field-guide-clip-32")
    words = "takes vectors of 12 components, but those of its base field-guide-clip-32 have 128"
    with pytest.raises(VragError, match=words):
        load_encoder(str(folder))
    tiny_retrievers.edit_json(folder / "config.json", base="clip", hidden=48)
    with pytest.raises(VragError, match="6 weights differ, such as"):
        load_encoder(str(folder))
    tiny_retrievers.edit_json(folder / "config.json", hidden="40")
    with pytest.raises(VragError, match="hidden: found '40'; expected"):
        load_encoder(str(folder))
    stated = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({k: stated[k] for k in stated if k != "base"}))
    with pytest.raises(VragError, match="base is None; expected a name"):
        load_encoder(str(folder))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"query": "text"}, "query is 'text', which this kind of model cannot encode"),
        ({"document": "text"}, "document is 'text', which this kind of model cannot encode"),
        ({"dtype": "float16"}, "magiclens models take no option 'dtype'"),
        ({"pooling": "cls"}, "take no option 'pooling'"),
    ],
)
def test_what_it_does_not_take_is_refused(lens: Path, options: dict[str, str], words: str) -> None:
    with pytest.raises(VragError, match=words):
        load_encoder({"model": str(lens), **options})
