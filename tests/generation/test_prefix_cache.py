"""Prompts that begin alike are read once and answered as if each were read whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import tiny_models
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from tiny_models import build, recorded_logits
from tiny_retrievers import edit_json
from worded import worded

from vrag_kit.benchmarks import ImageFile
from vrag_kit.generation import LocalGenerator, load_generator
from vrag_kit.generation.local import model as local_model
from vrag_kit.generation.local.prefix_cache import TokenRow, plan_prefixes
from vrag_kit.types import Prompt

IMAGE = 9


def longest_first(folder: Path, name: str, ks: Sequence[int]) -> list[Prompt]:
    """A question's prompts with its first k images, some of one size."""
    images = []
    for i in range(max(ks)):
        shade = (25 * i, 200 - 17 * i, 90 if name == "bill" else 210)
        place = folder / f"{name}-{i}.png"
        Image.new("RGB", (44 + 8 * (i % 3), 52), shade).save(place)
        images.append(ImageFile(place))
    return [worded("several_images", f"Which {name}?", images[:k]) for k in ks]


def opened(folder: Path, **options: Any) -> LocalGenerator:
    decoding = {"temperature": 0, "max_new_tokens": 1}
    return load_generator({"model": str(folder), **options}, decoding=decoding)


def logits(model: LocalGenerator, prompts: list[Prompt]) -> list[torch.Tensor]:
    """Logits (rows × words) behind the last token, of each time that some are computed."""
    with recorded_logits(model.loaded.model) as passes:
        model.generate(prompts)
    return passes


@pytest.mark.slow
@pytest.mark.parametrize("family", ["llava", "qwen2_5_vl", "gemma3", "mllama", "phi4_multimodal"])
def test_going_on_from_a_common_beginning_gives_the_logits_of_whole_prompts(
    family: str, checkpoint_of: Callable[[str], Path], tmp_path: Path
) -> None:
    model = opened(checkpoint_of(family))
    model.prepare()
    assert model.shares_prefixes
    model.loaded.model.double()  # so that rounding cannot be taken for a difference, or the reverse
    ks = (2, 1) if family == "phi4_multimodal" else (7, 5, 3)  # its images are large
    prompts = [*longest_first(tmp_path, "bill", ks), *longest_first(tmp_path, "wing", ks)]
    together = next(each for each in logits(model, prompts) if len(each) == len(prompts))
    model.loaded.shares_prefixes = False
    (apart,) = logits(model, prompts)
    assert apart.std(dim=0).max() > 1e-3  # the prompts do differ
    torch.testing.assert_close(together, apart, atol=1e-6, rtol=1e-5)


@pytest.mark.slow
def test_a_short_prompt_is_answered_as_if_alone_beside_one_of_far_positions(tmp_path: Path) -> None:
    """Phi-4 tells all positions of a batch otherwise where one prompt is long."""
    folder = build("phi4_multimodal", tmp_path / "phi4")
    near = {"original_max_position_embeddings": 1_000}
    factors = {"short_factor": [1.0] * 8, "long_factor": [16.0] * 8}
    edit_json(folder / "config.json", "rope_parameters", rope_type="longrope", **near, **factors)
    edit_json(folder / "config.json", **near)
    model, (long, short) = opened(folder), longest_first(tmp_path, "bill", (2, 1))
    (alone,) = logits(model, [short])
    beside, far = logits(model, [long, short])  # apart, the short one first
    torch.testing.assert_close(beside, alone)
    assert not torch.allclose(far, alone, atol=1e-3)
    model.processor.short_context = 1 << 30
    *_, together = logits(model, [long, short])  # read together, or nested
    assert not torch.allclose(together[1:], alone, atol=1e-3)


def test_a_model_may_share_no_prefixes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = build("llava", tmp_path / "llava")
    token = json.loads((folder / "config.json").read_text(encoding="utf-8"))["image_token_index"]
    edit_json(folder / "config.json", image_token_index=token - 1)  # it stands for no image
    model = opened(folder)
    model.prepare()
    assert not model.shares_prefixes
    assert "prompts share no prefix, because" in capsys.readouterr().out


def test_another_prompts_beginning_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model of 32 layers in bfloat16, whose rounding is that of a real one."""
    monkeypatch.setitem(tiny_models._TEXT, "num_hidden_layers", 32)
    model = opened(build("llava", tmp_path / "deep"), dtype="bfloat16")
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
