"""VISTA: weights in the authors' layout, converted by the lines in the module's docstring, give
what their arithmetic gives, done here by hand.
"""

from __future__ import annotations

import json
import shutil
import textwrap
from contextlib import chdir
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import tiny_retrievers
import tiny_vista as tiny
from retrieval_data import refused, square
from tiny_retrievers import embed
from transformers import AutoTokenizer

from vrag_kit.retrieval import load_encoder
from vrag_kit.retrieval.encoders import vista
from vrag_kit.retrieval.encoders.vista import MEAN, STD
from vrag_kit.types import Document, Query


@pytest.fixture(scope="module")
def bge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text encoder's folder: configuration and tokenizer, no weights."""
    folder = tiny_retrievers.bert(tmp_path_factory.mktemp("bge") / "bge")
    tiny_retrievers.edit_json(folder / "config.json", **tiny.text_config())
    (folder / "model.safetensors").unlink()
    return folder


@pytest.fixture(scope="module")
def arrays(bge: Path) -> tiny.Arrays:
    return tiny.weights(len(AutoTokenizer.from_pretrained(bge)))


@pytest.fixture(scope="module")
def converted(bge: Path, arrays: tiny.Arrays, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("vista")
    folder = Path(shutil.copytree(bge, place / "vista" / "text")).parent
    tiny.write(place / "Visualized_base_en_v1.5.pth", arrays)
    with chdir(place):
        exec(textwrap.dedent(str(vista.__doc__).split("authors' file:\n")[1]))
    config = {"model_type": "vista", "image_size": tiny.SIDE * tiny.PATCH, "patch": tiny.PATCH}
    config |= {"layers": tiny.LAYERS, "heads": tiny.HEADS, "hidden": tiny.HIDDEN}
    (folder / "config.json").write_text(json.dumps(config))
    return folder.rename(place / "tiny-vista")


@pytest.fixture
def image(tmp_path: Path) -> Document:
    return square(tmp_path, tiny.SIDE * tiny.PATCH)


@pytest.fixture
def by_hand(bge: Path, arrays: tiny.Arrays, image: Document):
    """(picture or not, text) → vector."""

    def by_hand(pictured: bool, text: str) -> np.ndarray:
        assert image.image is not None
        pixels = (np.asarray(image.image.open(), dtype=float) / 255 - MEAN) / STD
        ids = AutoTokenizer.from_pretrained(bge)([text])["input_ids"][0]
        return tiny.fused(arrays, pixels.transpose(2, 0, 1) if pictured else None, ids)

    return by_hand


def test_a_vector_is_the_authors_arithmetic_by_hand(
    converted: Path, image: Document, by_hand
) -> None:
    text = "What color are the hindwings of the moth?"
    query = Query(query_id="q", text=text, image=image.image)
    for part, told in (("both", (True, text)), ("image", (True, "")), ("text", (False, text))):
        encoder = load_encoder({"model": str(converted), "query": part})
        (row,) = encoder.encode_queries([query])
        np.testing.assert_allclose(row, by_hand(*told), atol=2e-5)
    for part, told in (("image", (True, "")), ("both", (True, image.text))):
        encoder = load_encoder({"model": str(converted), "document": part})
        np.testing.assert_allclose(embed(encoder, [image])[0], by_hand(*told), atol=2e-5)


def test_other_inputs_change_nothing(converted: Path, documents: list[Document]) -> None:
    for part in ("image", "both", "text"):
        encoder = load_encoder({"model": str(converted), "document": part})
        alone = np.concatenate([embed(encoder, [document]) for document in documents])
        np.testing.assert_allclose(embed(encoder, documents), alone, atol=1e-5)


def test_a_long_text_is_cut_where_positions_end(converted: Path, image: Document) -> None:
    words = "a white belly and black feet " * 40
    texts = (words, words + "a moth")
    queries = [Query(query_id="q", text=text, image=image.image) for text in texts]
    first, second = load_encoder(str(converted)).encode_queries(queries)
    np.testing.assert_array_equal(first, second)


def test_weights_that_do_not_fit_are_refused(converted: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(converted, tmp_path / "vista"))
    load = partial(load_encoder, str(folder))
    tiny_retrievers.edit_json(folder / "text" / "config.json", max_position_embeddings=20)
    refused(load, "size mismatch", "position_embeddings.weight")
    tiny_retrievers.edit_json(folder / "config.json", depth=3)
    refused(load, "'depth'", "image_size")
