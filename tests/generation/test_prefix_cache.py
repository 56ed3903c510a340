"""Prompts that begin alike are read once and answered as if each were read whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_models
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from tiny_models import build, built
from worded import worded

from vrag_kit.benchmarks import ImageFile
from vrag_kit.generation import LocalGenerator, load_generator
from vrag_kit.generation.generators import prompt_images
from vrag_kit.generation.local import model as local_model
from vrag_kit.generation.local.prefix_cache import TokenRow, plan_prefixes
from vrag_kit.types import Prompt

KS = (3, 5, 7)


IMAGE = 9


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], LocalGenerator]:
    return lambda family: load_generator(
        str(built(family, tmp_path_factory)), decoding={"temperature": 0, "max_new_tokens": 4}
    )


@pytest.fixture
def curves(tmp_path: Path) -> list[Prompt]:
    """Two questions' prompts of 3 to 10 pictures each, some of one size."""
    prompts = []
    for name in ("bill", "wing"):
        pictures = []
        for i in range(max(KS)):
            path = tmp_path / f"{name}-{i}.png"
            shade = (25 * i, 200 - 17 * i, 90 if name == "bill" else 210)
            Image.new("RGB", (44 + 8 * (i % 3), 52), shade).save(path)
            pictures.append(ImageFile(path))
        prompts += [worded("several_images", f"Which {name}?", pictures[:k]) for k in KS]
    return prompts


def last_logits(model: LocalGenerator, prompts: list[Prompt]) -> list[torch.Tensor]:
    """Logits (rows × words) behind the last token, of each time that some are computed."""
    captured: list[torch.Tensor] = []
    head = model.loaded.model.lm_head
    hook = head.register_forward_hook(lambda _m, _i, out: captured.append(out[:, -1]))
    model.generate(prompts)
    hook.remove()
    return captured


def first_logits(model: LocalGenerator, prompts: list[Prompt]) -> torch.Tensor:
    """Logits of the first token of each answer, as `generate` computes them."""
    return next(each for each in last_logits(model, prompts) if len(each) == len(prompts))


def of_family(curves: list[Prompt], family: str) -> list[Prompt]:
    """The curves; of a family whose pictures are large their ends at k = 1 and 2."""
    if family != "phi4_multimodal":
        return curves
    pictures = [prompt_images(curve) for curve in (curves[0], curves[-1])]
    return [worded("several_images", "Which?", each[:k]) for each in pictures for k in (1, 2)]


@pytest.mark.slow
@pytest.mark.parametrize("family", ["llava", "qwen2_5_vl", "gemma3", "mllama", "phi4_multimodal"])
def test_going_on_from_a_common_beginning_gives_the_logits_of_whole_prompts(
    family: str, load, curves: list[Prompt]
) -> None:
    model = load(family)
    model.prepare()
    assert model.shares_prefixes
    model.loaded.model.double()  # so that rounding cannot be taken for a difference, or the reverse
    curves = of_family(curves, family)
    half = len(curves) // 2
    longest_first = [*curves[:half][::-1], *curves[half:][::-1]]  # as rows are ordered
    together = first_logits(model, longest_first)
    model.loaded.shares_prefixes = False
    apart = first_logits(model, longest_first)
    assert apart.std(dim=0).max() > 1e-3  # the prompts do differ
    torch.testing.assert_close(together, apart, atol=1e-6, rtol=1e-5)


@pytest.mark.slow
def test_a_short_prompt_is_answered_as_if_alone_beside_one_of_far_positions(
    tmp_path: Path, curves: list[Prompt]
) -> None:
    """Phi-4 tells all positions of a batch otherwise where one prompt is long."""
    folder, near = build("phi4_multimodal", tmp_path / "phi4"), 1_000
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    factors = {"short_factor": [1.0] * 8, "long_factor": [16.0] * 8}
    config["rope_parameters"] |= {"rope_type": "longrope", **factors}
    config["rope_parameters"]["original_max_position_embeddings"] = near
    config["original_max_position_embeddings"] = near
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    model = load_generator(str(folder), decoding={"temperature": 0, "max_new_tokens": 1})
    pictures = prompt_images(curves[0])
    short, long = (worded("several_images", "Which?", pictures[:k]) for k in (1, 2))
    (alone,) = last_logits(model, [short])
    beside, far = last_logits(model, [long, short])  # apart, the short one first
    torch.testing.assert_close(beside, alone)
    assert not torch.allclose(far, alone, atol=1e-3)
    model.processor.short_context = 1 << 30
    *_, together = last_logits(model, [long, short])  # read together, or nested
    assert not torch.allclose(together[1:], alone, atol=1e-3)


def test_a_model_that_cannot_reads_all_and_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = build("llava", tmp_path / "llava")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["image_token_index"] -= 1  # a token that stands for no picture
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    model = load_generator(str(folder), decoding={"temperature": 0, "max_new_tokens": 2})
    model.prepare()
    assert not model.shares_prefixes
    assert "prompts share no prefix, because" in capsys.readouterr().out


def test_beginnings_of_another_prompt_are_noticed_in_half_precision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model of 32 layers in bfloat16, whose rounding is that of a real one."""
    monkeypatch.setitem(tiny_models._TEXT, "num_hidden_layers", 32)
    entry = {"model": str(build("llava", tmp_path / "deep")), "dtype": "bfloat16"}
    model = load_generator(entry, decoding={"temperature": 0, "max_new_tokens": 2})
    fork = local_model.fork_kv_cache

    def of_the_next_prompt(*asked: Any) -> Any:
        inputs = fork(*asked)
        for layer in inputs["past_key_values"].layers:
            layer.values = layer.values.roll(1, dims=0)
        return inputs

    monkeypatch.setattr(local_model, "fork_kv_cache", of_the_next_prompt)
    model.prepare()
    assert not model.shares_prefixes


def rows() -> st.SearchStrategy[list[TokenRow]]:
    """Prompts of a few words, pictures of one or two tokens, and an end; many nested."""
    picture = st.sampled_from("abc")

    def row(parts: tuple[int, list[str], int]) -> TokenRow:
        question, pictures, ends = parts
        ids = [question, question + 1]
        for name in pictures:
            ids += [IMAGE] * (1 + (name == "b"))
        return TokenRow((*ids, *[100] * ends), tuple(pictures))

    one = st.tuples(st.integers(10, 11), st.lists(picture, max_size=5), st.integers(1, 4))
    return st.lists(one.map(row), max_size=8)


@given(rows())
def test_what_is_shared_is_the_same_tokens_of_the_same_pictures(rows: list[TokenRow]) -> None:
    plan = plan_prefixes(rows, IMAGE)
    assert sorted([*plan.rows, *plan.apart]) == list(range(len(rows)))
    for longest, *others in plan.chains:
        assert others
        for number in (longest, *others):
            row = rows[number]
            kept = len(row.ids) - plan.tail
            assert kept >= 1
            assert row.ids[:kept] == rows[longest].ids[:kept]
            assert row.images == rows[longest].images[: len(row.images)]
            assert IMAGE not in row.ids[kept:]
