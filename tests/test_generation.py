"""Local models: the same answers whether pictures are looked at once or again, alone or
in a batch; and clear words for a bad checkpoint.
"""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch
from own_way import prepared
from PIL import Image
from safetensors.torch import load_file, save_file
from tiny_models import FAMILIES, built
from transformers import LlavaForConditionalGeneration
from worded import worded

from vrag_kit.benchmarks import ImageFile
from vrag_kit.errors import VragError
from vrag_kit.generation import (
    AnswerStore,
    LocalGenerator,
    ask_prompts,
    load_generator,
    stored_field,
)
from vrag_kit.generation.generators import PROBABILITY
from vrag_kit.generation.local.processors import PromptImage
from vrag_kit.generation.local.vision_cache import VisionCache
from vrag_kit.generation.prompts import parse_tagged
from vrag_kit.types import Message, Prompt


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {family: built(family, tmp_path_factory) for family in FAMILIES}


@pytest.fixture
def load(checkpoints: dict[str, Path]) -> Callable[..., LocalGenerator]:
    return lambda family, **options: load_generator(
        str(checkpoints[family]), decoding={"temperature": 0, "max_new_tokens": 8, **options}
    )


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
def test_the_logits_are_those_of_transformers_own_way(
    family: str, load, prompts: list[Prompt]
) -> None:
    model = load(family)
    if family == "mllama":  # its text comes last, and never in one batch with pictures
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
    torch.testing.assert_close(next_token(model, prompts), captured[0], atol=1e-5, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "reason"),
    [
        ("qwen3_vl", "its processor or model failed"),
        ("gemma3", "it marks images by token types"),
        ("mllama", "the model takes no precomputed features"),
        ("phi4_multimodal", "the model takes no precomputed features"),
    ],
)
def test_features_are_not_reused_where_a_family_needs_more_than_them(
    family: str, reason: str, load, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        load(family).loaded.vision_cache is None
    )  # the weights are read when they are first needed
    assert f"computed for every prompt, because {reason}" in capsys.readouterr().out


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
    assert load("llava").loaded.vision_cache is None
    assert "because precomputed features give other logits than pixels" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("family", ["llava", "qwen2_5_vl", "internvl", "pixtral"])
def test_pictures_seen_before_give_the_same_logits_as_pictures_looked_at_anew(
    family: str, load, prompts: list[Prompt]
) -> None:
    model = load(family)
    first, remembered = next_token(model, prompts), next_token(model, prompts)
    cache = model.loaded.vision_cache
    assert (cache.misses, cache.hits) == (6, 11 - 6 + 11)
    model.loaded.vision_cache = None  # the family's own, ordinary way
    torch.testing.assert_close(first, next_token(model, prompts), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(remembered, first, atol=1e-5, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["llava", "qwen2_5_vl", "internvl", "pixtral"])
@pytest.mark.parametrize("in_one_row", [False, True], ids=["apart", "in one row"])
def test_pictures_seen_together_look_as_each_alone_however_they_are_laid_out(
    family: str, in_one_row: bool, load, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one row as Idefics3's processor has several."""
    model = load(family)
    processor = model.processor.processor
    own = processor._process_images

    def laid_out(pictures: list[Image.Image], **options: object) -> object:
        made, words = own(pictures, **options)
        if in_one_row and len(pictures) > 1:
            made["pixel_values"] = made["pixel_values"][None]
        return made, words

    monkeypatch.setattr(processor, "_process_images", laid_out)
    sizes = [(64, 48), (40, 96), (64, 48), (64, 48)]
    pictures = [
        PromptImage(str(number), Image.new("RGB", size, (60 * number, 90, 30)))
        for number, size in enumerate(sizes)
    ]
    apart = [replace(picture) for picture in pictures]
    together = VisionCache(model.loaded.model, model.processor).encode(pictures)
    for picture, seen in zip(apart, together, strict=True):
        (alone,) = VisionCache(model.loaded.model, model.processor).encode([picture])
        assert (seen.pixel_hash, seen.size) == (alone.pixel_hash, alone.size)
        assert seen.placeholder == alone.placeholder
        torch.testing.assert_close(seen.tensors, alone.tensors)
        torch.testing.assert_close(seen.features, alone.features, atol=1e-5, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_a_batch_answers_as_one_prompt_at_a_time_does(
    family: str, load, prompts: list[Prompt]
) -> None:
    model = load(family)
    if family == "mllama":
        words = [model.generate([prompt])[0] for prompt in prompts]
        assert model.generate(prompts) == words  # text alone and pictures, in two batches
        prompts = [prompt for prompt in prompts if len(prompt[0].parts) > 1]
    alone = torch.cat([next_token(model, [prompt]) for prompt in prompts])
    torch.testing.assert_close(next_token(model, prompts), alone, atol=1e-4, rtol=1e-3)


def test_a_rotated_photograph_is_seen_upright(load, tmp_path: Path) -> None:
    upright = Image.linear_gradient("L").resize((32, 64)).convert("RGB")
    upright.save(tmp_path / "upright.png")
    exif = Image.Exif()
    exif[0x0112] = 6  # "turn right by 90° to show"
    upright.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "turned.png", exif=exif)
    a, b = (
        next_token(
            load("qwen2_5_vl"),
            [worded("one_image", "Which?", [ImageFile(tmp_path / f"{name}.png")])],
        )
        for name in ("upright", "turned")
    )
    torch.testing.assert_close(a, b)


def test_a_prompt_too_long_for_the_model_fails_alone_and_says_why(
    load, pictures: list[ImageFile]
) -> None:
    replies = load("llava").generate(
        [worded("no_image", "What?"), worded("several_images", "What?", pictures * 20)]
    )
    assert [reply.failure.kind for reply in replies] == ["truncated", "too_long"]
    assert replies[1].raw is None
    assert "but the model holds 512" in replies[1].failure.words


def test_a_control_token_in_a_question_fails_alone(load, pictures: list[ImageFile]) -> None:
    replies = load("llava").generate(
        [
            worded("one_image", "What is <image>?", pictures[:1]),
            worded("one_image", "What?", pictures[:1]),
        ]
    )
    assert [str(reply.failure) for reply in replies] == [
        "error: the text holds the model's control token '<image>'",
        "truncated: cut off at 8 tokens",
    ]


def test_sampling_differs_by_sample_and_repeats_by_seed(load, prompts: list[Prompt]) -> None:
    model = load("llava")
    model.decoding |= {"do_sample": True, "temperature": 5.0}
    again = [
        [reply.raw for reply in model.generate(prompts, sample=sample)] for sample in (0, 1, 0)
    ]
    assert again[0] == again[2] != again[1]


def test_a_greedy_reply_notes_how_probable_its_words_are(load, prompts: list[Prompt]) -> None:
    model = load("llava")
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


def test_what_was_noted_is_read_from_the_store(load, prompts: list[Prompt], tmp_path: Path) -> None:
    with AnswerStore(tmp_path / "answers.sqlite") as store:
        answers = ask_prompts(load("llava"), prompts, store)
    names = [answer.answer_id for answer in answers]
    table = pd.DataFrame({"answer_id": [*names, "another's"]})
    found = stored_field(table, tmp_path, PROBABILITY).astype(float)
    assert list(found[:-1]) == [answer.fields["probability"] for answer in answers]
    assert found[-1:].isna().all()


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


def test_decoding_is_what_the_checkpoint_says_or_greedy(
    checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(checkpoints["llava"], tmp_path / "m")
    config = json.loads((folder / "generation_config.json").read_text())
    (folder / "generation_config.json").write_text(
        json.dumps({**config, "do_sample": True, "temperature": 0.6, "top_p": 0.9})
    )
    assert load_generator(str(folder)).decoding == {
        "do_sample": True,
        "temperature": 0.6,
        "top_p": 0.9,
        "max_new_tokens": 128,
    }
    assert load_generator(str(folder), decoding={"temperature": 0}).decoding == {
        "do_sample": False,
        "num_beams": 1,
        "max_new_tokens": 128,
    }
    with pytest.raises(VragError, match="decoding: found 'beam'"):
        load_generator(str(folder), decoding="beam")


def test_the_fingerprint_knows_everything_that_shapes_an_answer(
    checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    def changed(name: str, change: Callable[[Path], object]) -> str:
        folder = shutil.copytree(checkpoints["llava"], tmp_path / name)
        change(folder)
        return load_generator(str(folder)).fingerprint

    def scale(folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        save_file(
            {name: value * 1.0001 for name, value in weights.items()},
            folder / "model.safetensors",
            metadata={"format": "pt"},
        )

    def edit(file: str, *keys: str, value: object) -> Callable[[Path], object]:
        def change(folder: Path) -> None:
            config = place = json.loads((folder / file).read_text())
            for key in keys[:-1]:
                place = place[key]
            place[keys[-1]] = value
            (folder / file).write_text(json.dumps(config))

        return change

    def template(folder: Path) -> None:
        (folder / "chat_template.jinja").write_text(
            (folder / "chat_template.jinja").read_text() + " "
        )

    changes = {
        "same": lambda folder: None,
        "weights": scale,
        "pixels": edit(
            "processor_config.json", "image_processor", "image_mean", value=[0.1, 0.2, 0.3]
        ),
        "size": edit(
            "processor_config.json", "image_processor", "size", value={"height": 16, "width": 16}
        ),
        "template": template,
        "text": edit("config.json", "text_config", "rms_norm_eps", value=1e-4),
        "merges": edit("tokenizer.json", "model", "merges", value=[]),
        "stop": edit("generation_config.json", "eos_token_id", value=7),
    }
    prints = {name: changed(name, change) for name, change in changes.items()}
    assert prints["same"] == load_generator(str(checkpoints["llava"])).fingerprint
    assert len(set(prints.values())) == len(prints), prints


def _nan(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    next(value for name, value in sorted(weights.items()) if "embed_tokens" in name)[3, 2] = float(
        "nan"
    )
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def _incomplete(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file(
        {name: value for name, value in weights.items() if "multi_modal_projector" not in name},
        folder / "model.safetensors",
        metadata={"format": "pt"},
    )


def _pickle(folder: Path) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def _family(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "oracle"}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_nan, r"weight '.*embed_tokens.weight' holds 1 values that are NaN"),
        (_incomplete, r"4 weights are not in the checkpoint, such as 'model.multi_modal_projector"),
        (_family, r"cannot be loaded: .*oracle"),
        (lambda folder: (folder / "config.json").unlink(), "cannot be loaded"),
        (lambda folder: (folder / "model.safetensors").unlink(), "cannot be loaded"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"{}" * 50), "cannot be loaded"),
        (_pickle, "cannot be loaded: .*safetensors"),
        (lambda folder: (folder / "chat_template.jinja").unlink(), "has no chat template"),
        (lambda folder: shutil.rmtree(folder), "there is no such folder"),
    ],
)
def test_a_bad_checkpoint_is_refused_with_the_reason(
    damage: Callable[[Path], object], message: str, checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(checkpoints["llava"], tmp_path / "m")
    (tmp_path / "sibling").mkdir()
    damage(folder)
    with pytest.raises(VragError, match=message):
        load_generator(str(folder)).prepare()


def test_a_model_without_eyes_is_refused(tmp_path: Path) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    LlamaForCausalLM(
        LlamaConfig(
            vocab_size=50,
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=1,
            num_attention_heads=1,
        )
    ).save_pretrained(tmp_path / "blind")
    with pytest.raises(VragError, match="AutoModelForImageTextToText"):
        load_generator(str(tmp_path / "blind"))


def test_a_device_that_is_not_there_is_refused(checkpoints: dict[str, Path]) -> None:
    if not torch.cuda.is_available():
        with pytest.raises(VragError, match=r"device 'cuda'.*`device`"):
            load_generator(str(checkpoints["llava"]), hardware={"device": "cuda"}).prepare()


@pytest.mark.parametrize(
    ("raw", "fields"),
    [
        ("Answer: red", {"answer": "red"}),
        ("I think.\nanswer : red. Answer: blue", {"answer": "blue"}),
        ("red", {"answer": "red", "untagged": True}),
        ("Answer:", {"answer": ""}),
    ],
)
def test_what_is_judged_is_what_follows_the_last_answer(
    raw: str, fields: dict[str, object]
) -> None:
    assert parse_tagged(raw) == fields


def test_a_system_message_and_a_history_are_kept_in_order(load, pictures: list[ImageFile]) -> None:
    model = load("llava")
    long = (
        Message(role="system", parts=("Be brief.",)),
        Message(role="user", parts=(pictures[0], "What?")),
        Message(role="assistant", parts=("Answer: red",)),
        Message(role="user", parts=("And this?", pictures[1])),
    )
    assert not torch.allclose(next_token(model, [long]), next_token(model, [long[:2]]), atol=1e-5)
