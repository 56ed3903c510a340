"""Local models: what reaches a model is what was asked, and its logits are transformers' own."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from PIL import Image
from processor_inputs import prepared
from safetensors.torch import load_file, save_file
from tiny_models import FAMILIES, built
from transformers import LlamaConfig, LlamaForCausalLM, LlavaForConditionalGeneration
from worded import worded

from vrag_kit.benchmarks import ImageFile
from vrag_kit.config import Workspace
from vrag_kit.errors import VragError
from vrag_kit.generation import (
    LocalGenerator,
    load_generator,
)
from vrag_kit.types import Message, Prompt

COLORS = {"r": (250, 10, 10), "g": (10, 250, 10), "b": (10, 10, 250)}


BUDGETS = {"qwen2_5_vl": 6, "internvl": 8}


Load = Callable[..., LocalGenerator]
Paint = Callable[[str], list[ImageFile]]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {family: built(family, tmp_path_factory) for family in FAMILIES}


def opened(folder: Path, **options: object) -> LocalGenerator:
    decoding = {"temperature": 0, "max_new_tokens": 8}
    return load_generator({"model": str(folder), **options}, decoding=decoding)


@pytest.fixture(scope="module")
def load(checkpoints: dict[str, Path]) -> Load:
    """Loads a family's model: once, but where options are given."""
    greedy = functools.cache(lambda family: opened(checkpoints[family]))
    return lambda family, **options: (
        opened(checkpoints[family], **options) if options else greedy(family)
    )


@pytest.fixture
def paint(tmp_path: Path) -> Callable[[str], list[ImageFile]]:
    """Pictures of the colours that a string names, "rgb", each of another size and
    shape.
    """

    def make(order: str) -> list[ImageFile]:
        for number, color in enumerate(order):
            Image.new("RGB", (44 + 5 * (number % 4), 60 - 6 * (number % 3)), COLORS[color]).save(
                tmp_path / f"{number}-{color}.png"
            )
        return [ImageFile(tmp_path / f"{number}-{color}.png") for number, color in enumerate(order)]

    return make


def shown_to(
    model: LocalGenerator, parts: list[object], monkeypatch: pytest.MonkeyPatch
) -> dict[str, torch.Tensor]:
    """What `generate` of transformers was given, of pictures that are encoded with the prompt."""
    given: dict[str, torch.Tensor] = {}
    generate = model.loaded.model.generate
    monkeypatch.setattr(model.loaded, "vision_cache", None)
    monkeypatch.setattr(
        model.loaded.model,
        "generate",
        lambda **inputs: (given.update(inputs), generate(**inputs))[1],
    )
    model.generate([(Message(role="user", parts=tuple(parts)),)])
    return given


@pytest.fixture
def pictures(tmp_path: Path) -> list[ImageFile]:
    """Six pictures of different colours, sizes and shapes."""
    for i, color in enumerate(
        ((250, 0, 0), (0, 250, 0), (0, 0, 250), (240, 240, 0), (5, 5, 5), (250, 250, 250))
    ):
        Image.new("RGB", (40 + 9 * i, 64 - 7 * i), color).save(tmp_path / f"{i}.png")
    return [ImageFile(tmp_path / f"{i}.png") for i in range(6)]


@pytest.fixture
def prompts(pictures: list[ImageFile]) -> list[Prompt]:
    return [
        worded("several_images", "What color is it?", pictures[:3]),
        worded("no_image", "What?"),
        worded("one_image", "Which?", pictures[1:2]),
        worded("several_images", "And now?", pictures[::-1]),
        worded("clue_image", "Which?", pictures[4:5]),
    ]


def next_token(model: LocalGenerator, prompts: list[Prompt]) -> torch.Tensor:
    """Logits of the first answer token, shape (prompts, vocabulary), as `generate`
    computes them.
    """
    captured: list[torch.Tensor] = []
    hook = model.loaded.model.lm_head.register_forward_hook(
        lambda _module, _inputs, output: captured.append(output[:, -1])
    )
    model.generate(prompts)
    hook.remove()
    return captured[0]


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_logits_are_those_of_transformers_own_way_and_of_one_prompt_at_a_time(
    family: str, load: Load, prompts: list[Prompt]
) -> None:
    model = load(family)
    model.prepare()
    if family == "mllama":  # its text comes last, and never in one batch with pictures
        words = [model.generate([prompt])[0] for prompt in prompts]
        assert model.generate(prompts) == words
        prompts = [
            (Message(role="user", parts=(*message.parts[1:], message.parts[0])),)
            for (message,) in prompts
            if len(message.parts) > 1
        ]
    taken = {
        name: value
        for name, value in prepared(model.processor.processor, prompts).items()
        if name != "token_type_ids" or family == "gemma3"
    }
    with torch.inference_mode():
        captured: list[torch.Tensor] = []
        hook = model.loaded.model.lm_head.register_forward_hook(
            lambda _module, _inputs, output: captured.append(output[:, -1])
        )
        model.loaded.model.generate(**taken, do_sample=False, max_new_tokens=1)
        hook.remove()
    together = next_token(model, prompts)
    torch.testing.assert_close(together, captured[0], atol=1e-5, rtol=1e-4)
    alone = torch.cat([next_token(model, [prompt]) for prompt in prompts])
    torch.testing.assert_close(together, alone, atol=1e-4, rtol=1e-3)


def test_features_that_give_other_logits_than_pixels_are_not_reused(
    load, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
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


@pytest.mark.parametrize("family", ["llava", "qwen2_5_vl", "pixtral"])
def test_pictures_seen_before_give_the_same_logits_as_pictures_looked_at_anew(
    family: str, load: Load, prompts: list[Prompt], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load(family)
    model.prepare()
    assert model.loaded.vision_cache is not None
    first, remembered = next_token(model, prompts), next_token(model, prompts)
    monkeypatch.setattr(model.loaded, "vision_cache", None)  # the family's own, ordinary way
    torch.testing.assert_close(first, next_token(model, prompts), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(remembered, first, atol=1e-5, rtol=1e-4)


def test_sampling_differs_by_sample_and_repeats_by_seed(load, prompts: list[Prompt]) -> None:
    model = load("llava", name="own")
    model.decoding |= {"do_sample": True, "temperature": 5.0}
    again = [
        [reply.raw for reply in model.generate(prompts, sample=sample)] for sample in (0, 1, 0)
    ]
    assert again[0] == again[2] != again[1]


def test_a_greedy_reply_notes_how_probable_its_words_are(load, prompts: list[Prompt]) -> None:
    model = load("llava", name="own")
    steps: list[torch.Tensor] = []
    hook = model.loaded.model.lm_head.register_forward_hook(
        lambda _module, _inputs, output: steps.append(output[:, -1].detach())
    )
    replies = model.generate(prompts)
    hook.remove()
    for row, reply in enumerate(replies):
        expected = 1.0
        for step in steps[: reply.tokens["completion"]]:
            expected *= float(torch.softmax(step[row], dim=-1).max())
        assert reply.fields["probability"] == pytest.approx(expected, rel=1e-3, abs=1e-6)
    model.decoding |= {"do_sample": True, "temperature": 5.0}
    assert "probability" not in model.generate(prompts[:1])[0].fields


def test_memory_that_runs_out_halves_the_batch(
    load, prompts: list[Prompt], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load("llava")
    wanted, generate = model.generate(prompts), model.loaded.model.generate

    def small_machine(**inputs: torch.Tensor) -> torch.Tensor:
        if len(inputs["input_ids"]) > 2 or inputs["attention_mask"].sum() > 700:
            raise torch.OutOfMemoryError
        return generate(**inputs)

    monkeypatch.setattr(model.loaded.model, "generate", small_machine)
    assert model.generate(prompts) == wanted


def test_a_device_that_is_not_there_is_refused(checkpoints: dict[str, Path]) -> None:
    if not torch.cuda.is_available():
        with pytest.raises(VragError, match=r"device 'cuda'.*`device`"):
            load_generator(str(checkpoints["llava"]), at=Workspace(device="cuda")).prepare()


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_a_prompt_is_as_long_as_its_forecast(family: str, load: Load, paint: Paint) -> None:
    model, pictures = load(family), paint("grbbg")
    sizes = {picture.where: picture.open().size for picture in pictures}
    for count in (0, 5):
        prompt = worded("several_images", "What color is it?", pictures[:count])
        forecast = model.estimate_cost([prompt], sizes)
        (reply,) = model.generate([prompt])
        assert reply.tokens["prompt"] == forecast.tokens, reply
        assert (forecast.calls, forecast.images) == (1, count)


@pytest.mark.parametrize("family", BUDGETS)
def test_a_picture_takes_no_more_tokens_than_it_may(family: str, load: Load) -> None:
    free, tight = load(family), load(family, max_image_tokens=BUDGETS[family])
    wide, narrow = (model.processor.image_tokens((900, 1300)) for model in (free, tight))
    assert 0 < narrow <= BUDGETS[family] + 3 < wide  # and the marks around it
    assert free.fingerprint != tight.fingerprint


def test_a_family_without_such_an_option_says_what_to_use_instead(load: Load) -> None:
    with pytest.raises(VragError, match=r"max_image_tokens cannot be set .*max_image_side"):
        load("mllama", max_image_tokens=100)


def test_a_template_that_knows_only_strings_gets_its_image_tokens(
    checkpoints: dict[str, Path], paint: Paint, tmp_path: Path
) -> None:
    folder = shutil.copytree(checkpoints["phi4_multimodal"], tmp_path / "old")
    (folder / TEMPLATE).write_text(
        "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] +"
        " '<|end|>' }}{% endfor %}<|assistant|>"
    )
    listed, stringed = (
        opened(place).processor.render([("user", ["What? ", *paint("gb")])])
        for place in (checkpoints["phi4_multimodal"], folder)
    )
    assert listed == stringed


def test_what_will_not_fit_is_said_before_and_fails_alone(load: Load, paint: Paint) -> None:
    model, pictures = load("llava", name="fresh"), paint("rgb" * 40)
    prompts = [worded("several_images", "What?", pictures[:count]) for count in (1, 100, 120)]
    forecast = model.estimate_cost(prompts, {each.where: each.open().size for each in pictures})
    assert forecast.misfits == 2
    assert "2 prompts do not fit, from 100 images on" in str(forecast)
    assert "loaded" not in vars(model)  # no weights were read for it
    control = worded("one_image", "What is <image>?", pictures[:1])
    first, *long, last = [str(reply.failure) for reply in model.generate([*prompts, control])]
    assert first == "truncated: cut off at 8 tokens"
    assert all("but the model holds 512" in each for each in long)
    assert "control token '<image>'" in last


def test_decoding_is_what_the_checkpoint_says_or_greedy(
    checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(checkpoints["llava"], tmp_path / "m")
    edit("generation_config.json", do_sample=True, temperature=0.6, top_p=0.9)(folder)
    sampled = {"do_sample": True, "temperature": 0.6, "top_p": 0.9, "max_new_tokens": 128}
    assert load_generator(str(folder)).decoding == sampled
    greedy = {"do_sample": False, "num_beams": 1, "max_new_tokens": 128}
    assert load_generator(str(folder), decoding={"temperature": 0}).decoding == greedy
    with pytest.raises(VragError, match="'beam'"):
        load_generator(str(folder), decoding="beam")


def edit(file: str, part: str = "", **values: object) -> Callable[[Path], object]:
    """Changes values of a JSON file of a checkpoint."""

    def change(folder: Path) -> None:
        config = json.loads((folder / file).read_text())
        (config[part] if part else config).update(values)
        (folder / file).write_text(json.dumps(config))

    return change


def weights(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], object]:
    """Changes the weights of a checkpoint."""

    def write(folder: Path) -> None:
        adapter = folder / "vision-lora" / "adapter_model.safetensors"
        file = adapter if adapter.is_file() else folder / "model.safetensors"
        state = load_file(file)
        change(state)
        save_file(state, file, metadata={"format": "pt"})

    return write


def scale(state: dict[str, torch.Tensor]) -> None:
    next(iter(state.values())).mul_(1.0001)


def put_nan(state: dict[str, torch.Tensor]) -> None:
    name = next(name for name in sorted(state) if "embed_tokens" in name)
    state[name][3, 2] = float("nan")


def drop_projector(state: dict[str, torch.Tensor]) -> None:
    for name in [name for name in state if "multi_modal_projector" in name]:
        del state[name]


def drop_half(state: dict[str, torch.Tensor]) -> None:
    for name in list(state)[::2]:
        del state[name]


def pickled(folder: Path) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def blind(folder: Path) -> None:
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 1}
    config = LlamaConfig(vocab_size=50, num_hidden_layers=1, **sizes)
    LlamaForCausalLM(config).save_pretrained(folder)


TEMPLATE = "chat_template.jinja"


def test_the_fingerprint_knows_everything_that_shapes_an_answer(
    checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    changes: dict[str, Callable[[Path], object]] = {
        "same": lambda folder: None,
        "weights": weights(scale),
        "pixels": edit("processor_config.json", "image_processor", image_mean=[0.1, 0.2, 0.3]),
        "size": edit("processor_config.json", "image_processor", size={"height": 16, "width": 16}),
        "template": lambda folder: (folder / TEMPLATE).open("a").write(" "),
        "text": edit("config.json", "text_config", rms_norm_eps=1e-4),
        "merges": edit("tokenizer.json", "model", merges=[]),
        "stop": edit("generation_config.json", eos_token_id=7),
    }
    prints = {}
    for name, change in changes.items():
        folder = shutil.copytree(checkpoints["llava"], tmp_path / name)
        change(folder)
        prints[name] = load_generator(str(folder)).fingerprint
    assert prints["same"] == load_generator(str(checkpoints["llava"])).fingerprint
    assert len(set(prints.values())) == len(prints), prints


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "damage", "message"),
    [
        ("llava", weights(put_nan), "embed_tokens.weight' holds 1 values that are NaN"),
        ("llava", weights(drop_projector), "4 weights .* 'model.multi_modal_projector"),
        ("llava", edit("config.json", model_type="oracle"), "cannot be loaded: .*oracle"),
        ("llava", pickled, "cannot be loaded: .*safetensors"),
        ("llava", lambda folder: (folder / TEMPLATE).unlink(), "has no chat template"),
        (
            "llava",
            lambda folder: (folder / TEMPLATE).write_text("{{ nothing.there.at.all }}"),
            "neither a list of parts nor a string",
        ),
        ("llava", blind, "AutoModelForImageTextToText"),
        ("phi4_multimodal", weights(drop_half), "weights of its vision adapter"),
        (
            "phi4_multimodal",
            lambda folder: shutil.rmtree(folder / "vision-lora"),
            "vision-lora/adapter_model.safetensors, is missing",
        ),
    ],
)
def test_a_bad_checkpoint_is_refused_with_the_reason(
    family: str,
    damage: Callable[[Path], object],
    message: str,
    checkpoints: dict[str, Path],
    tmp_path: Path,
) -> None:
    folder = shutil.copytree(checkpoints[family], tmp_path / "m")
    (tmp_path / "sibling").mkdir()
    damage(folder)
    with pytest.raises(VragError, match=message):
        load_generator(str(folder)).prepare()


def test_options_that_change_no_answer_are_no_part_of_the_key(load: Load, paint: Paint) -> None:
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


def test_code_that_comes_with_a_checkpoint_does_not_run_unless_told(
    checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(checkpoints["llava"], tmp_path / "m")
    edit("config.json", model_type="strange", auto_map={"AutoConfig": "strange.Config"})(folder)
    code = f"open({str(tmp_path / 'ran')!r}, 'w').close()\nclass Config: ...\n"
    (folder / "strange.py").write_text(code)
    with pytest.raises(VragError, match="trust_remote_code"):
        load_generator(str(folder))
    assert not (tmp_path / "ran").exists()


def test_llama_attends_to_every_picture_wherever_it_stood(
    load: Load, paint: Paint, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, (a, b) = load("mllama"), paint("rg")
    model.prepare()
    parts = ["Here is one: ", a, "and another: ", b, "What color?"]
    given = shown_to(model, parts, monkeypatch)
    assert (given["cross_attention_mask"][0, -1].sum(dim=-1) > 0).tolist() == [True, True]
    assert model.sent["part_order"] == "images first"


def test_phi_4_answers_with_its_vision_adapter(load: Load, paint: Paint) -> None:
    model = load("phi4_multimodal")
    model.prepare()
    prompt = [worded("one_image", "What?", paint("b"))]
    assert model.loaded.model.active_adapters() == ["vision"]
    adapted = next_token(model, prompt)
    model.loaded.model.disable_adapters()
    assert not torch.allclose(adapted, next_token(model, prompt), atol=1e-4)
    model.loaded.model.enable_adapters()
