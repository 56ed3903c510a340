"""Each family of real models, as a tiny checkpoint of its real classes: what reaches
the model is what was asked, picture by picture, in order.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import torch
from own_way import prepared
from PIL import Image
from safetensors.torch import load_file, save_file
from tiny_models import FAMILIES, built
from worded import worded

from vrag_kit.benchmarks import ImageFile
from vrag_kit.errors import VragError
from vrag_kit.generation import LocalGenerator, Reply, load_generator
from vrag_kit.types import Message

COLORS = {"r": (250, 10, 10), "g": (10, 250, 10), "b": (10, 10, 250)}
BUDGETS = {"qwen2_5_vl": 6, "qwen3_vl": 6, "internvl": 8, "pixtral": 12, "phi4_multimodal": 600}
Load = Callable[..., LocalGenerator]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {family: built(family, tmp_path_factory) for family in FAMILIES}


@pytest.fixture
def load(checkpoints: dict[str, Path]) -> Load:
    return lambda family, **options: load_generator(
        {"model": str(checkpoints[family]), **options},
        decoding={"temperature": 0, "max_new_tokens": 2},
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


def shown_to(model: LocalGenerator, parts: list[object]) -> tuple[dict[str, torch.Tensor], Reply]:
    """(what `generate` of transformers was given, the reply) when asked with pictures
    that are looked at in the family's own way.
    """
    given: dict[str, torch.Tensor] = {}
    model.prepare()
    model.loaded.vision_cache, generate = None, model.loaded.model.generate
    model.loaded.model.generate = lambda **inputs: (given.update(inputs), generate(**inputs))[1]
    (reply,) = model.generate([(Message(role="user", parts=tuple(parts)),)])
    return given, reply


def colors_of(given: dict[str, torch.Tensor], images: list[list[int]]) -> str:
    """The order of the pictures' colours, read from the tensors: the strongest channel
    of each.
    """
    pixels = given.get("pixel_values", given.get("image_pixel_values"))
    if "image_grid_thw" in given:  # Qwen: rows of flattened patches
        parts = [
            rows.view(len(rows), 3, -1).mean(dim=(0, 2))
            for rows in pixels.split(given["image_grid_thw"].prod(dim=1).tolist())
        ]
    elif pixels.ndim == 6:  # Llama: (prompt, picture, tile, channel, height, width)
        parts = [picture[0].mean(dim=(1, 2)) for picture in pixels[0]]
    elif pixels.ndim == 5:  # Phi-4: (picture, crop, channel, height, width)
        parts = [picture[0].mean(dim=(1, 2)) for picture in pixels]
    else:  # (tile, channel, height, width)
        parts = [
            tiles.mean(dim=(0, 2, 3)) for tiles in pixels.split([image[2] for image in images])
        ]
    return "".join("rgb"[int(part.argmax())] for part in parts)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["grb", "".join(random.Random("twenty").choices("rgb", k=20))])
@pytest.mark.parametrize("family", FAMILIES)
def test_pictures_reach_the_model_in_the_order_in_which_they_were_asked(
    family: str, order: str, load: Load, paint
) -> None:
    given, reply = shown_to(load(family), ["What? ", *paint(order)])
    assert colors_of(given, reply.fields["images"]) == order


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 20])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_forecast_of_a_prompt_is_its_real_length(
    family: str, count: int, load: Load, paint
) -> None:
    model, pictures = load(family), paint("rgb" * 7)[:count]
    prompt = worded("several_images", "What color is it?", pictures)
    forecast = model.estimate_cost(
        [prompt], {picture.where: picture.open().size for picture in pictures}
    )
    (reply,) = model.generate([prompt])
    assert reply.tokens["prompt"] == forecast.tokens, reply
    assert (forecast.calls, forecast.images, len(reply.fields.get("images", []))) == (
        1,
        count,
        count,
    )


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_the_recorded_visual_tokens_are_those_in_the_prompt(family: str, load: Load, paint) -> None:
    model = load(family)
    given, reply = shown_to(model, ["What? ", *paint("grb")])
    marks = set(model.processor.processor.tokenizer.get_added_vocab().values()) - {
        model.processor.processor.tokenizer.pad_token_id
    }
    roles = set(
        model.processor.processor.tokenizer.convert_tokens_to_ids(
            ["<|user|>", "<|assistant|>", "<|system|>", "<|end|>", "<|begin|>"]
        )
    )
    in_prompt = sum(token in marks - roles for token in given["input_ids"][0].tolist())
    outside = (
        3 * 4 * 5 if family == "mllama" else 0
    )  # 3 pictures of 4 tiles of 2 × 2 patches and one more, attended to beside the text
    newlines = 3 * {"internvl": 1, "gemma3": 4}.get(
        family, 0
    )  # that the template or the processor puts around each picture
    assert (
        reply.tokens["visual"]
        == sum(image[3] for image in reply.fields["images"])
        == in_prompt + outside + newlines
    )


def test_attention_and_device_map_are_options_of_an_entry(load: Load, paint) -> None:
    prompt = [worded("one_image", "What?", paint("b"))]
    plain, eager, mapped = (
        load("llava"),
        load("llava", attention="eager"),
        load("llava", device_map="auto"),
    )
    assert plain.generate(prompt) == eager.generate(prompt) == mapped.generate(prompt)
    assert (
        eager.loaded.model.config._attn_implementation
        == "eager"
        != plain.loaded.model.config._attn_implementation
    )
    assert (
        plain.fingerprint == eager.fingerprint == mapped.fingerprint
    )  # they are recorded, but are no part of the key
    assert eager.sent["attention"] == "eager"


@pytest.mark.slow
@pytest.mark.parametrize("family", BUDGETS)
def test_a_picture_takes_no_more_tokens_than_it_may(
    family: str, load: Load, tmp_path: Path
) -> None:
    Image.new("RGB", (900, 1300), (90, 160, 30)).save(tmp_path / "large.png")
    prompt = worded("one_image", "What?", [ImageFile(tmp_path / "large.png")])
    free, tight = load(family), load(family, max_image_tokens=BUDGETS[family])
    a, b = (model.generate([prompt])[0] for model in (free, tight))
    assert 0 < b.tokens["visual"] <= BUDGETS[family] + 3 < a.tokens["visual"], (
        a,
        b,
    )  # and the marks around it
    assert b.tokens["prompt"] - b.tokens["visual"] == a.tokens["prompt"] - a.tokens["visual"]
    assert free.fingerprint != tight.fingerprint


def test_a_family_without_such_an_option_says_what_to_use_instead(load: Load) -> None:
    with pytest.raises(VragError, match=r"max_image_tokens cannot be set .*max_image_side"):
        load("mllama", max_image_tokens=100)


def test_a_longest_side_makes_the_pictures_smaller_before_the_model_sees_them(
    load: Load, tmp_path: Path
) -> None:
    Image.linear_gradient("L").resize((60, 40)).convert("RGB").save(tmp_path / "large.png")
    Image.open(tmp_path / "large.png").resize((30, 20), Image.Resampling.LANCZOS).save(
        tmp_path / "small.png"
    )
    small, shrunk = (
        shown_to(load("qwen2_5_vl", **options), ["What?", ImageFile(tmp_path / name)])[0]
        for name, options in (("small.png", {}), ("large.png", {"max_image_side": 30}))
    )
    torch.testing.assert_close(small["pixel_values"], shrunk["pixel_values"])


def test_the_last_words_of_a_llama_prompt_attend_to_every_picture_wherever_the_pictures_stood(
    load: Load, paint
) -> None:
    model, (a, b, c) = load("mllama"), paint("rgb")
    given, _ = shown_to(
        model,
        ["Here is one: ", a, "and another: ", b, "and a third: ", c, "What color is the second?"],
    )
    assert (given["cross_attention_mask"][0, -1].sum(dim=-1) > 0).tolist() == [True, True, True]
    assert model.sent["part_order"] == "images first"
    prompt = (Message(role="user", parts=(a, "and another: ", b, "What?")),)
    apart = prepared(model.processor.processor, [prompt])
    assert (apart["cross_attention_mask"][0, -1].sum(dim=-1) > 0).tolist() == [
        False,
        True,
    ]  # the trap that this avoids


@pytest.mark.slow
def test_phi_4_answers_with_its_vision_adapter(
    load: Load, checkpoints: dict[str, Path], paint, tmp_path: Path
) -> None:
    model = load("phi4_multimodal")
    prompt = [worded("one_image", "What?", paint("b"))]
    assert model.loaded.model.active_adapters() == ["vision"]

    def logits() -> torch.Tensor:
        given: list[torch.Tensor] = []
        hook = model.loaded.model.lm_head.register_forward_hook(
            lambda _module, _inputs, output: given.append(output[:, -1])
        )
        model.generate(prompt)
        hook.remove()
        return given[0]

    adapted = logits()
    model.loaded.model.disable_adapters()
    assert not torch.allclose(adapted, logits(), atol=1e-4)
    blind = shutil.copytree(checkpoints["phi4_multimodal"], tmp_path / "blind")
    shutil.rmtree(blind / "vision-lora")
    with pytest.raises(VragError, match=r"vision-lora/adapter_model.safetensors, is missing"):
        load_generator(str(blind)).prepare()


def test_half_an_adapter_is_refused(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(checkpoints["phi4_multimodal"], tmp_path / "half")
    weights = load_file(folder / "vision-lora" / "adapter_model.safetensors")
    save_file(
        dict(list(weights.items())[::2]),
        folder / "vision-lora" / "adapter_model.safetensors",
        metadata={"format": "pt"},
    )
    with pytest.raises(VragError, match="weights of its vision adapter are not in the checkpoint"):
        load_generator(str(folder)).prepare()


@pytest.mark.slow
def test_a_template_that_knows_only_strings_gets_its_image_tokens(
    checkpoints: dict[str, Path], paint, tmp_path: Path
) -> None:
    folder = shutil.copytree(checkpoints["phi4_multimodal"], tmp_path / "old")
    (folder / "chat_template.jinja").write_text(
        "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] +"
        " '<|end|>' }}{% endfor %}<|assistant|>"
    )
    listed, stringed = (
        shown_to(load_generator(str(place), decoding={"temperature": 0}), ["What? ", *paint("gb")])[
            0
        ]
        for place in (checkpoints["phi4_multimodal"], folder)
    )
    assert listed["input_ids"].tolist() == stringed["input_ids"].tolist()


def test_a_template_that_takes_neither_parts_nor_strings_is_refused(
    checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(checkpoints["llava"], tmp_path / "broken")
    for template in ("{{ nothing.there.at.all }}", "{% for message in messages %}"):
        (folder / "chat_template.jinja").write_text(template)
        with pytest.raises(VragError, match="neither a list of parts nor a string"):
            load_generator(str(folder)).prepare()


def test_what_will_not_fit_is_said_before_anything_is_asked(load: Load, paint) -> None:
    model, pictures = load("llava"), paint("rgb" * 40)
    prompts = [worded("several_images", "What?", pictures[:count]) for count in (1, 3, 100, 120)]
    forecast = model.estimate_cost(
        prompts, {picture.where: picture.open().size for picture in pictures}
    )
    assert forecast.misfits == 2
    assert "2 prompts do not fit, from 100 images on" in str(forecast)
    assert "the longest prompt, with 120 images" in str(forecast)
    assert "loaded" not in vars(model)  # no weights were read for it
    assert [reply.failure.kind for reply in model.generate(prompts)[2:]] == ["too_long", "too_long"]


@pytest.mark.parametrize(
    ("options", "free", "needed"),
    [
        ({}, 20, ("6.0 GiB for weights", "20.0 GiB free on cpu")),
        ({"dtype": "bfloat16"}, 8, ("3.0 GiB for weights", "8.0 GiB free on cpu")),
        ({"quantization": "4bit"}, 8, ("1.8 GiB for weights",)),
        ({}, 7, ("7.0 GiB free on cpu: too little",)),
        ({}, 200, ()),  # less than a tenth is not worth a note
    ],
)
def test_the_forecast_notes_the_memory_that_weights_and_the_longest_prompt_need(
    options: dict[str, str],
    free: int,
    needed: tuple[str, ...],
    checkpoints: dict[str, Path],
    paint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = shutil.copytree(checkpoints["llava"], tmp_path / "m")
    config = json.loads((folder / "config.json").read_text())
    config["text_config"]["num_hidden_layers"] = layers = 100_000
    (folder / "config.json").write_text(json.dumps(config))
    model = load_generator(
        {"model": str(folder), **options}, decoding={"temperature": 0, "max_new_tokens": 2}
    )
    with (folder / "model.safetensors").open("ab") as file:
        file.truncate(6 * 2**30)
    memory = SimpleNamespace(available=free * 2**30)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    pictures = paint("rgb")
    prompt = worded("several_images", "What?", pictures)
    forecast = model.estimate_cost([prompt], {each.where: each.open().size for each in pictures})
    assert all(words in str(forecast) for words in needed), str(forecast)
    if not needed:
        assert "GiB" not in str(forecast)
    elif not options:
        real = load_generator(str(checkpoints["llava"])).loaded.model
        ids = torch.zeros((1, forecast.tokens + 2), dtype=torch.long)
        cache = real(input_ids=ids, use_cache=True).past_key_values
        bytes_ = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
        gib = bytes_ / len(cache.layers) * layers / 2**30
        assert f"and {gib:.1f} GiB for the longest prompt" in str(forecast)


def test_weights_are_read_when_they_are_first_needed(
    checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(checkpoints["llava"], tmp_path / "m")
    before = load_generator(str(folder))
    moved = folder.rename(tmp_path / "n")
    assert load_generator({"model": str(moved), "name": "m"}).fingerprint == before.fingerprint
    (moved / "model.safetensors").write_bytes(b"{}" * 50)
    damaged = load_generator(str(moved))
    assert damaged.fingerprint != before.fingerprint
    with pytest.raises(VragError, match="cannot be loaded"):
        damaged.prepare()


def test_number_type_and_decoding_are_options_of_an_entry(load: Load) -> None:
    half = load("llava", dtype="bfloat16", decoding={"temperature": 0.7, "top_p": 0.9})
    half.prepare()
    assert {parameter.dtype for parameter in half.loaded.model.parameters()} == {torch.bfloat16}
    assert half.decoding == {
        "do_sample": True,
        "temperature": 0.7,
        "top_p": 0.9,
        "max_new_tokens": 2,
    }
    assert half.fingerprint != load("llava").fingerprint
    assert not half.deterministic
    assert load("llava").deterministic


def test_code_that_comes_with_a_checkpoint_does_not_run_unless_told(
    checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(checkpoints["llava"], tmp_path / "m")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps(
            {**config, "model_type": "strange", "auto_map": {"AutoConfig": "strange.StrangeConfig"}}
        )
    )
    (folder / "strange.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w').close()\nfrom transformers import LlavaConfig as"
        " StrangeConfig\n"
    )
    with pytest.raises(VragError, match="trust_remote_code"):
        load_generator(str(folder))
    assert not (tmp_path / "ran").exists()
