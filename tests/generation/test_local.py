"""Local models: a model gets what was asked, its logits are transformers' own, and prompts
that begin alike are read once and answered as if each were read whole.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tiny_models
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from tiny_models import FAMILIES, build, prepared, recorded_logits
from tiny_retrievers import edit_json, edit_weights
from transformers import LlamaConfig, LlamaForCausalLM, LlavaForConditionalGeneration
from worded import worded

from vrag_kit.benchmarks import ImageFile
from vrag_kit.dry_run import dry_run
from vrag_kit.errors import VragError
from vrag_kit.generation import LocalGenerator, load_generator
from vrag_kit.generation.batching import QueryPrompt, make_batches
from vrag_kit.generation.local import model as local_model
from vrag_kit.types import Message, Prompt

COLORS = {"r": (250, 10, 10), "g": (10, 250, 10), "b": (10, 10, 250), "w": (250, 250, 250)}
BUDGETS = {"qwen2_5_vl": 6, "internvl": 8}
TEMPLATE = "chat_template.jinja"

Load = Callable[..., LocalGenerator]
Copy = Callable[[str], Path]
Paint = Callable[[str], list[ImageFile]]
State = dict[str, torch.Tensor]


@pytest.fixture
def copied(checkpoint_of, tmp_path):
    """Copies a family's checkpoint, to change it."""
    return lambda family: shutil.copytree(checkpoint_of(family), tmp_path / "m")


@pytest.fixture
def paint(tmp_path):
    """Images of the colours that a string names, "rgb", each of another size and shape."""

    def make(order: str) -> list[ImageFile]:
        places = [tmp_path / f"{number}-{color}.png" for number, color in enumerate(order)]
        for number, place in enumerate(places):
            size = (44 + 5 * (number % 4), 60 - 6 * (number % 3))
            Image.new("RGB", size, COLORS[order[number]]).save(place)
        return [ImageFile(place) for place in places]

    return make


@pytest.fixture
def prompts(paint):
    pictures = paint("rgbrwg")
    return [
        worded("several_images", "What color is it?", pictures[:3]),
        worded("no_image", "What?"),
        worded("one_image", "Which?", pictures[1:2]),
        worded("several_images", "And now?", pictures[::-1]),
        worded("clue_image", "Which?", pictures[4:5]),
    ]


def next_token(model: LocalGenerator, prompts: list[Prompt]) -> torch.Tensor:
    """Logits of the first answer token, (prompts, vocabulary), as `generate` computes them."""
    model.prepare()
    with recorded_logits(model.loaded.model) as passes:
        model.generate(prompts)
    return passes[0]


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_logits_are_those_of_transformers(family, load, prompts):
    model = load(family)
    model.prepare()
    if family == "mllama":  # its text comes last, and never in one batch with pictures
        words = [model.generate([prompt])[0] for prompt in prompts]
        assert model.generate(prompts) == words
        shown = [message for (message,) in prompts if len(message.parts) > 1]
        prompts = [
            (Message(role="user", parts=(*each.parts[1:], each.parts[0])),) for each in shown
        ]
        assert model.sent["part_order"] == "images first"
    inputs = prepared(model.processor.processor, prompts)
    if family != "gemma3":
        inputs.pop("token_type_ids", None)
    with torch.inference_mode(), recorded_logits(model.loaded.model) as passes:
        model.loaded.model.generate(**inputs, do_sample=False, max_new_tokens=1)
    together = next_token(model, prompts)
    reuses = model.loaded.vision_cache is not None  # features of images
    assert reuses or family not in ("llava", "qwen2_5_vl", "pixtral")
    torch.testing.assert_close(together, passes[0], atol=1e-5, rtol=1e-4)
    alone = torch.cat([next_token(model, [prompt]) for prompt in prompts])
    torch.testing.assert_close(together, alone, atol=1e-4, rtol=1e-3)


def test_features_that_give_other_logits_than_pixels_are_not_reused(load, monkeypatch, capsys):
    own = LlavaForConditionalGeneration.forward

    @functools.wraps(own)
    def forward(self, mm_encoder_outputs=None, **rest):
        """As it is, but that ready features are those of another picture."""
        for ready in (mm_encoder_outputs or {}).values():
            ready.pooler_output = [-each for each in ready.pooler_output]
        return own(self, mm_encoder_outputs=mm_encoder_outputs, **rest)

    monkeypatch.setattr(LlavaForConditionalGeneration, "forward", forward)
    assert load("llava", name="other").loaded.vision_cache is None
    assert "because precomputed features give other logits than pixels" in capsys.readouterr().out


def test_greedy_answers_have_probabilities_and_seeds(load, prompts):
    model = load("llava", name="own")
    model.prepare()
    with recorded_logits(model.loaded.model) as steps:
        answers = model.generate(prompts)
    for row, answer in enumerate(answers):
        expected = 1.0
        for step in steps[: answer.tokens["completion"]]:
            expected *= float(torch.softmax(step[row], dim=-1).max())
        assert answer.fields["probability"] == pytest.approx(expected, rel=1e-3, abs=1e-6)
    model.decoding |= {"do_sample": True, "temperature": 5.0}
    first, second, again = (model.generate(prompts, sample=sample) for sample in (0, 1, 0))
    assert first == again != second
    assert "probability" not in first[0].fields


def test_batches_halve(load, prompts, monkeypatch):
    model = load("llava")
    wanted, generate = model.generate(prompts), model.loaded.model.generate

    def small_machine(**inputs: torch.Tensor) -> torch.Tensor:
        if len(inputs["input_ids"]) > 2 or inputs["attention_mask"].sum() > 700:
            raise torch.OutOfMemoryError
        return generate(**inputs)

    monkeypatch.setattr(model.loaded.model, "generate", small_machine)
    assert model.generate(prompts) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_a_prompt_is_as_long_as_its_forecast(family, load, paint):
    model, pictures = load(family), paint("grbbg")
    sizes = {picture.where: picture.open().size for picture in pictures}
    for count in (0, 5):
        prompt = worded("several_images", "What color is it?", pictures[:count])
        forecast = model.estimate_cost([prompt], sizes)
        (answer,) = model.generate([prompt])
        assert answer.tokens["prompt"] == forecast.tokens, answer
        assert (forecast.calls, forecast.images) == (1, count)


@pytest.mark.parametrize("family", BUDGETS)
def test_an_image_takes_no_more_tokens_than_it_may(family, load):
    free, tight = load(family), load(family, max_image_tokens=BUDGETS[family])
    wide, narrow = (model.processor.image_tokens((900, 1300)) for model in (free, tight))
    assert 0 < narrow <= BUDGETS[family] + 3 < wide  # and the marks around it
    assert free.fingerprint != tight.fingerprint
    with pytest.raises(VragError, match=r"max_image_tokens cannot be set .*max_image_side"):
        load("mllama", max_image_tokens=100)


def test_a_template_of_strings_gets_image_tokens(load, copied, paint):
    folder, parts = copied("phi4_multimodal"), [("user", ["What? ", *paint("gb")])]
    one = "{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}"
    whole = f"{{% for message in messages %}}{one}{{% endfor %}}<|assistant|>"
    (folder / TEMPLATE).write_text(whole)
    listed = load("phi4_multimodal").processor.render(parts)
    assert load_generator(str(folder)).processor.render(parts) == listed


def test_what_will_not_fit_is_said_before_and_fails_alone(load, paint):
    model, pictures = load("llava", name="fresh"), paint("rgb" * 40)
    prompts = [worded("several_images", "What?", pictures[:count]) for count in (1, 100, 120)]
    forecast = model.estimate_cost(prompts, {each.where: each.open().size for each in pictures})
    assert forecast.misfits == 2
    assert "2 prompts do not fit, from 100 images on" in str(forecast)
    assert "loaded" not in vars(model)  # no weights were read for it
    control = worded("one_image", "What is <image>?", pictures[:1])
    first, *long, last = [str(answer.failure) for answer in model.generate([*prompts, control])]
    assert first == "truncated: cut off at 8 tokens"
    assert all("but the model holds 512" in each for each in long)
    assert "control token '<image>'" in last


def test_decoding_is_what_the_checkpoint_says_or_greedy(copied):
    folder, own = copied("llava"), {"do_sample": True, "temperature": 0.6, "top_p": 0.9}
    edit_json(folder / "generation_config.json", **own)
    assert load_generator(str(folder)).decoding == {**own, "max_new_tokens": 128}
    greedy = {"do_sample": False, "num_beams": 1, "max_new_tokens": 128}
    assert load_generator(str(folder), decoding={"temperature": 0}).decoding == greedy


def weights(file: str, change: Callable[[State], object]) -> Callable[[Path], object]:
    """Changes the weights of a checkpoint, or of its adapter."""
    return lambda folder: edit_weights(folder / file, change)


def put_nan(state: State) -> None:
    name = next(name for name in sorted(state) if "embed_tokens" in name)
    state[name][3, 2] = float("nan")


def drop(state: State, part: str) -> None:
    for name in [name for name in state if part in name]:
        del state[name]


def edit(file: str, part: str = "", **values: object) -> Callable[[Path], object]:
    """Changes values of a JSON file of a checkpoint, or of a mapping in it."""
    return lambda folder: edit_json(folder / file, part, **values)


def blind(folder: Path) -> None:
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 1}
    config = LlamaConfig(vocab_size=50, num_hidden_layers=1, **sizes)
    LlamaForCausalLM(config).save_pretrained(folder)


def template(source: str) -> Callable[[Path], object]:
    return lambda folder: (folder / TEMPLATE).write_text(source)


def test_the_fingerprint_covers_what_shapes_an_answer(checkpoint_of, tmp_path):
    pixels = partial(edit, "processor_config.json", "image_processor")
    changes: dict[str, Callable[[Path], object]] = {
        "same": lambda folder: None,
        "weights": weights(WEIGHTS, lambda state: next(iter(state.values())).mul_(1.0001)),
        "pixels": pixels(image_mean=[0.1, 0.2, 0.3]),
        "size": pixels(size={"height": 16, "width": 16}),
        "template": template("another"),
        "text": edit("config.json", "text_config", rms_norm_eps=1e-4),
        "merges": edit("tokenizer.json", "model", merges=[]),
        "stop": edit("generation_config.json", eos_token_id=7),
    }
    prints = {}
    for name, change in changes.items():
        folder = shutil.copytree(checkpoint_of("llava"), tmp_path / name)
        change(folder)
        prints[name] = load_generator(str(folder)).fingerprint
    assert prints["same"] == load_generator(str(checkpoint_of("llava"))).fingerprint
    assert len(set(prints.values())) == len(prints), prints


WEIGHTS, ADAPTER = "model.safetensors", "vision-lora/adapter_model.safetensors"
DAMAGES: list[tuple[str, Callable[[Path], object], str]] = [
    ("llava", weights(WEIGHTS, put_nan), "embed_tokens.weight' holds values that are NaN"),
    ("llava", weights(WEIGHTS, partial(drop, part="projector")), "4 weights .*projector"),
    ("llava", edit("config.json", model_type="oracle"), "cannot be loaded: .*oracle"),
    (
        "llava",
        lambda folder: (folder / WEIGHTS).rename(folder / "pytorch_model.bin"),
        "cannot be loaded: .*safetensors",
    ),
    ("llava", lambda folder: (folder / TEMPLATE).unlink(), "has no chat template"),
    ("llava", template("{{ nothing.there.at.all }}"), "neither a list of parts nor a string"),
    ("llava", blind, "AutoModelForImageTextToText"),
    ("phi4_multimodal", weights(ADAPTER, partial(drop, part="o_proj")), "of its vision adapter"),
    ("phi4_multimodal", lambda folder: (folder / ADAPTER).unlink(), "lora.*is missing"),
]


def test_a_broken_model_is_missing_in_a_dry_run(copied, tmp_path):
    folder = copied("llava")
    (folder / "config.json").write_text("{", encoding="utf-8")
    with dry_run(tmp_path) as recorded:
        load_generator(str(folder)).prepare()
    (message,) = recorded.missing
    assert "config.json: no JSON" in message


@pytest.mark.slow
@pytest.mark.parametrize(("family", "damage", "message"), DAMAGES)
def test_a_bad_checkpoint_is_refused_with_the_reason(family, damage, message, copied):
    folder = copied(family)
    damage(folder)
    with pytest.raises(VragError, match=message):
        load_generator(str(folder)).prepare()


def test_options_that_change_no_answer_are_no_part_of_the_key(load, paint):
    prompt = [worded("one_image", "What?", paint("b"))]
    plain, mapped = load("llava"), load("llava", device_map="auto")
    assert plain.generate(prompt) == mapped.generate(prompt)
    assert plain.fingerprint == mapped.fingerprint
    half = load("llava", dtype="bfloat16", decoding={"temperature": 0.7, "top_p": 0.9})
    half.prepare()
    assert {parameter.dtype for parameter in half.loaded.model.parameters()} == {torch.bfloat16}
    assert (half.decoding["temperature"], half.decoding["top_p"]) == (0.7, 0.9)
    assert half.fingerprint != plain.fingerprint
    assert (half.deterministic, plain.deterministic) == (False, True)


def test_code_of_a_checkpoint_does_not_run_unless_told(copied, tmp_path):
    folder, code = copied("llava"), {"AutoConfig": "strange.Config"}
    edit_json(folder / "config.json", model_type="strange", auto_map=code)
    mark = f"open({str(tmp_path / 'ran')!r}, 'w').close()\nclass Config: ...\n"
    (folder / "strange.py").write_text(mark)
    with pytest.raises(VragError, match="trust_remote_code"):
        load_generator(str(folder)).prepare()
    assert not (tmp_path / "ran").exists()


def test_phi_4_answers_with_its_vision_adapter(load, paint):
    model, prompt = load("phi4_multimodal"), [worded("one_image", "What?", paint("b"))]
    adapted = next_token(model, prompt)
    assert model.loaded.model.active_adapters() == ["vision"]
    model.loaded.model.disable_adapters()
    assert not torch.allclose(adapted, next_token(model, prompt), atol=1e-4)
    model.loaded.model.enable_adapters()


def nested(images: list[ImageFile], ks: Sequence[int]) -> list[Prompt]:
    """A question's prompts with the first k of the images."""
    return [worded("several_images", "Which color?", images[:k]) for k in ks]


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
    family, checkpoint_of, paint
):
    model = opened(checkpoint_of(family))
    model.prepare()
    assert model.shares_prefixes
    model.loaded.model.double()  # so that rounding cannot be taken for a difference, or the reverse
    ks = (2, 1) if family == "phi4_multimodal" else (7, 5, 3)  # its images are large
    prompts = [*nested(paint("rgbwrgb"), ks), *nested(paint("gbrgwbr"), ks)]
    together = next(each for each in logits(model, prompts) if len(each) == len(prompts))
    model.loaded.shares_prefixes = False
    (apart,) = logits(model, prompts)
    assert apart.std(dim=0).max() > 1e-3  # the prompts do differ
    torch.testing.assert_close(together, apart, atol=1e-6, rtol=1e-5)


@pytest.mark.slow
def test_a_short_prompt_beside_one_of_far_positions(tmp_path, paint):
    """Phi-4 tells all positions of a batch otherwise where one prompt is long."""
    folder = build("phi4_multimodal", tmp_path / "phi4")
    near = {"original_max_position_embeddings": 1_000}
    factors = {"short_factor": [1.0] * 8, "long_factor": [16.0] * 8}
    edit_json(folder / "config.json", "rope_parameters", rope_type="longrope", **near, **factors)
    edit_json(folder / "config.json", **near)
    model, (long, short) = opened(folder), nested(paint("rg"), (2, 1))
    (alone,) = logits(model, [short])
    beside, far = logits(model, [long, short])  # apart, the short one first
    torch.testing.assert_close(beside, alone)
    assert not torch.allclose(far, alone, atol=1e-3)
    model.processor.short_context = 1 << 30
    *_, together = logits(model, [long, short])  # read together, or nested
    assert not torch.allclose(together[1:], alone, atol=1e-3)


def test_another_prompts_keys_are_noticed(tmp_path, monkeypatch):
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


@given(st.integers(1, 20), st.integers(1, 12), st.booleans(), st.booleans())
def test_every_prompt_is_in_one_batch_and_nested_ones_are_together_where_they_fit(
    owners, size, batched, shares_prefixes
):
    images = [ImageFile(Path(f"{i}.png")) for i in range(4)]
    prompts = {}
    for owner in range(owners):
        for k, prompt in enumerate(nested(images, (0, 1, 2, 3, 4))):
            prompts[f"{owner} {k}"] = QueryPrompt(str(owner), prompt)
    model = SimpleNamespace(batched=batched, shares_prefixes=shares_prefixes)
    batches = list(make_batches(prompts, size, model))
    assert sorted(chain.from_iterable(batches)) == sorted(prompts)
    assert all(0 < len(batch) <= size for batch in batches)
    for batch in batches if batched and shares_prefixes and size >= 5 else ():
        for longest in [name for name in batch if name.endswith(" 4")]:
            assert {longest.replace(" 4", f" {k}") for k in (1, 2, 3)} <= set(batch)
