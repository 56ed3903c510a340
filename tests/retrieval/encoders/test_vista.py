"""VISTA: weights in the authors' layout, converted by the lines in the module's docstring, give
what timm's EVA02-CLIP and BERT give, joined as the authors' code joins them.
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
import timm
import tiny_retrievers as tiny
import torch
from retrieval_data import refused, square
from timm.models.eva import checkpoint_filter_fn
from tiny_retrievers import embed
from transformers import AutoTokenizer, BertConfig, BertModel

from vrag_kit.retrieval import load_encoder
from vrag_kit.retrieval.encoders import vista
from vrag_kit.types import Query

Arrays = dict[str, np.ndarray]
WIDTH, HEADS, LAYERS, HIDDEN, PATCH, SIDE = 16, 2, 2, 20, 8, 3
"""Of the tower; the text encoder has one layer with two heads."""
TEXT = {
    "hidden_size": WIDTH,
    "num_hidden_layers": 1,
    "num_attention_heads": HEADS,
    "intermediate_size": 24,
    "max_position_embeddings": 40,
}
SIZES = {"image_size": SIDE * PATCH, "patch": PATCH}
SIZES |= {"layers": LAYERS, "heads": HEADS, "hidden": HIDDEN}
TOWER = "model_visual.visual"
THEIRS = {
    "text.": "bge_",
    "project.": "visual_proj.",
    "tower.": f"{TOWER}.",
    "attn.q_proj.bias": "attn.q_bias",
    "attn.v_proj.bias": "attn.v_bias",
    "attn.norm": "attn.inner_attn_ln",
    "mlp.norm": "mlp.ffn_ln",
    "mlp.fc1_g": "mlp.w1",
    "mlp.fc1_x": "mlp.w2",
    "mlp.fc2": "mlp.w3",
}
"""Our names → the authors'."""
UNUSED = {
    "model_visual.logit_scale": (),
    f"{TOWER}.norm.weight": (WIDTH,),
    f"{TOWER}.norm.bias": (WIDTH,),
    f"{TOWER}.rope.freqs_cos": (SIDE * SIDE, WIDTH // HEADS),
    "bge_pooler.dense.weight": (WIDTH, WIDTH),
}


@pytest.fixture(scope="module")
def bge(tmp_path_factory):
    """A text encoder's folder: configuration and tokenizer, no weights."""
    folder = tiny.bert(tmp_path_factory.mktemp("bge") / "bge")
    tiny.edit_json(folder / "config.json", **TEXT)
    (folder / "model.safetensors").unlink()
    return folder


@pytest.fixture(scope="module")
def arrays(bge):
    """Weights as the authors' code names them."""
    config = BertConfig(vocab_size=len(AutoTokenizer.from_pretrained(bge)), **TEXT)
    text = BertModel(config, add_pooling_layer=False)
    shapes: dict[str, tuple[int, ...]] = dict(UNUSED)
    for name, values in vista.Vista(text, vista.VisionConfig(**SIZES)).state_dict().items():
        for ours, theirs in THEIRS.items():
            name = name.replace(ours, theirs)
        shapes[name] = tuple(values.shape)
    rng = np.random.default_rng(0)
    drawn = {name: 0.4 * rng.normal(size=shape) for name, shape in shapes.items()}
    return {name: np.asarray(values, np.float32) for name, values in drawn.items()}


@pytest.fixture(scope="module")
def converted(bge, arrays, tmp_path_factory):
    place = tmp_path_factory.mktemp("vista")
    folder = Path(shutil.copytree(bge, place / "vista" / "text")).parent
    stored = {name: torch.from_numpy(values) for name, values in arrays.items()}
    torch.save(stored, place / "Visualized_base_en_v1.5.pth")
    with chdir(place):
        exec(textwrap.dedent(str(vista.__doc__).split("authors' file:\n")[1]))
    (folder / "config.json").write_text(json.dumps({"model_type": "vista", **SIZES}))
    return folder.rename(place / "tiny-vista")


def fused(p: Arrays, pixels: np.ndarray | None, ids: list[int]) -> np.ndarray:
    """The vector of a picture, (3, side, side), normalised already, and a text."""
    named = {name.removeprefix("bge_"): torch.from_numpy(values) for name, values in p.items()}
    words, places, kinds = (
        named[f"embeddings.{part}_embeddings.weight"] for part in ("word", "position", "token_type")
    )
    patches = []
    if pixels is not None:
        patches = [*(seen(p, pixels) @ named["visual_proj.weight"].T + named["visual_proj.bias"])]
    rows = [words[ids[0]] + places[0] + kinds[0]]
    for patch in patches:  # at 1 … n, and of no kind
        rows.append(patch + places[len(rows)])
    for token in ids[1:]:
        rows.append(words[token] + places[len(rows)] + kinds[0])
    text = BertModel(BertConfig(vocab_size=len(words), **TEXT), add_pooling_layer=False).eval()
    text.load_state_dict({name: named[name] for name in text.state_dict()})
    with torch.inference_mode():
        tokens = text.embeddings.LayerNorm(torch.stack(rows)[None])
        row = text.encoder(tokens).last_hidden_state[0, 0]
    return (row / row.norm()).numpy()


def seen(p: Arrays, pixels: np.ndarray) -> torch.Tensor:
    """States of the patches after the tower's last layer, before its norm."""
    sizes = {"img_size": SIDE * PATCH, "patch_size": PATCH, "embed_dim": WIDTH}
    sizes |= {"depth": LAYERS, "num_heads": HEADS, "mlp_ratio": HIDDEN / WIDTH}
    tower = timm.create_model("eva02_base_patch16_clip_224", num_classes=0, **sizes).eval()
    named = {name.removeprefix("model_"): torch.from_numpy(values) for name, values in p.items()}
    weights = {name.removeprefix("visual."): values for name, values in named.items()}
    tower.load_state_dict(checkpoint_filter_fn(weights, tower))
    batch, how = torch.from_numpy(pixels[None]).float(), {"indices": 1, "output_fmt": "NLC"}
    with torch.inference_mode():
        (states,) = tower.forward_intermediates(batch, intermediates_only=True, **how)
    return states[0]


@pytest.fixture
def image(tmp_path):
    return square(tmp_path, SIDE * PATCH)


def test_a_vector_is_the_authors_arithmetic_by_hand(converted, bge, arrays, image):
    def by_hand(pictured: bool, text: str) -> np.ndarray:
        pixels = (np.asarray(image.image.open(), dtype=float) / 255 - vista.MEAN) / vista.STD
        ids = AutoTokenizer.from_pretrained(bge)([text])["input_ids"][0]
        return fused(arrays, pixels.transpose(2, 0, 1) if pictured else None, ids)

    text = "What color are the hindwings of the moth?"
    query = Query(query_id="q", text=text, image=image.image)
    for part, told in (("both", (True, text)), ("image", (True, "")), ("text", (False, text))):
        encoder = load_encoder({"model": str(converted), "query": part})
        (row,) = encoder.encode_queries([query])
        np.testing.assert_allclose(row, by_hand(*told), atol=2e-5)
    for part, told in (("image", (True, "")), ("both", (True, str(image.text)))):
        encoder = load_encoder({"model": str(converted), "document": part})
        np.testing.assert_allclose(embed(encoder, [image])[0], by_hand(*told), atol=2e-5)


def test_other_inputs_change_nothing(converted, documents):
    for part in ("image", "both", "text"):
        encoder = load_encoder({"model": str(converted), "document": part})
        alone = np.concatenate([embed(encoder, [document]) for document in documents])
        np.testing.assert_allclose(embed(encoder, documents), alone, atol=1e-5)


def test_a_long_text_is_cut_where_positions_end(converted, image):
    words = "a white belly and black feet " * 40
    texts = (words, words + "a moth")
    queries = [Query(query_id="q", text=text, image=image.image) for text in texts]
    first, second = load_encoder(str(converted)).encode_queries(queries)
    np.testing.assert_array_equal(first, second)


def test_weights_that_do_not_fit_are_refused(converted, tmp_path):
    folder = Path(shutil.copytree(converted, tmp_path / "vista"))
    load = partial(load_encoder, str(folder))
    tiny.edit_json(folder / "text" / "config.json", max_position_embeddings=20)
    refused(load, "size mismatch", "position_embeddings.weight")
    tiny.edit_json(folder / "config.json", depth=3)
    refused(load, "'depth'", "image_size")
