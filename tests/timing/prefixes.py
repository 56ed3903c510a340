"""What a curve over k costs where prompts that begin alike are read once:
`python -m tests.timing.prefixes [cuda]`.

For a tiny checkpoint of each family, and a larger one of Qwen2.5-VL's shape with random
weights (with `cuda` for one of 7 B parameters alone): the time for k = 3 to 20 against
that of k = 20 alone, with and without sharing, first token and whole answers; and how many
greedy answers differ from separately read prompts'. Ratios of medians within one run;
nothing is asserted.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from transformers import AutoProcessor

from tests import tiny_models
from tests.timing import seconds
from vrag_kit.benchmarks import ImageFile
from vrag_kit.generation import LocalGenerator, load_generator
from vrag_kit.types import Message, Prompt

KS = (3, 5, 7, 10, 15, 20)
QUESTIONS, TOKENS = 2, 16
LARGER = (384, 1536, 8, 6, 2)
SEVEN_B = (3584, 18944, 28, 28, 4)
SHAPE = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
)
ROW = "{:<26} {:>9} {:>9} {:>9} {:>9}"


def curves(folder: Path, side: int) -> list[Prompt]:
    """For each question its prompts of k pictures, the shorter ones first."""
    draw = np.random.default_rng(0)
    prompts = []
    for question in range(QUESTIONS):
        pictures = []
        for number in range(max(KS)):
            pixels = draw.integers(0, 255, (side, side, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"{question}-{number}.png")
            pictures.append(ImageFile(folder / f"{question}-{number}.png"))
        prompts += [
            (Message(role="user", parts=(f"What color is it in {question}?", *pictures[:k])),)
            for k in KS
        ]
    return prompts


def measure(title: str, folder: Path, prompts: list[Prompt], device: str) -> None:
    """One row of the table."""
    row = [title]
    for tokens in (1, TOKENS):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            model = load_generator(
                {"model": str(folder), "device": device},
                decoding={"temperature": 0, "max_new_tokens": tokens},
            )
            model.prepare()
        if not model.shares_prefixes:
            print(f"{title}: {said.getvalue()}")
            return
        largest = prompts[len(KS) - 1 :: len(KS)]
        alone, together, apart = seconds(
            asking(model, largest, shares_prefixes=False),
            asking(model, prompts, shares_prefixes=True),
            asking(model, prompts, shares_prefixes=False),
        )
        row += [f"{together / alone:.2f}", f"{apart / alone:.2f}"]
    model.loaded.shares_prefixes = True
    shared = model.generate(prompts)
    model.loaded.shares_prefixes = False
    other = sum(a.raw != b.raw for a, b in zip(shared, model.generate(prompts), strict=True))
    print(ROW.format(*row), f"{other:>6} of {len(prompts)}", flush=True)


def asking(
    model: LocalGenerator, prompts: list[Prompt], *, shares_prefixes: bool
) -> Callable[[], object]:
    """Asks a curve's prompts together, one question after the other."""
    step = len(prompts) // QUESTIONS

    def ask() -> None:
        model.loaded.shares_prefixes = shares_prefixes
        for start in range(0, len(prompts), step):
            model.generate(prompts[start : start + step])

    return ask


def larger(folder: Path, sizes: Sequence[int], dtype: torch.dtype, device: str) -> Path:
    """A checkpoint of Qwen2.5-VL's classes with a text part of these sizes."""
    shape = dict(zip(SHAPE, sizes, strict=True))
    tiny_models._TEXT.update(shape, max_position_embeddings=32_768)
    tiny_models._QWEN_VISION["out_hidden_size"] = shape["hidden_size"]
    half = shape["hidden_size"] // shape["num_attention_heads"] // 2
    first, second = half // 4, half * 3 // 8
    tiny_models._ROPE["mrope_section"] = [first, second, half - first - second]
    torch.set_default_dtype(dtype)
    with torch.device(device):
        built = tiny_models.build("qwen2_5_vl", folder)
    torch.set_default_dtype(torch.float32)
    processor = AutoProcessor.from_pretrained(built)
    processor.image_processor.size = {"shortest_edge": 16**2, "longest_edge": 512**2}
    processor.save_pretrained(built)
    return built


def main() -> None:
    device = "cuda" if "cuda" in sys.argv else "cpu"
    print(
        f"{torch.get_num_threads()} threads, {device}; time over that of k = 20 alone (aim at most"
        " 1.5 for 1 token, shared)"
    )
    print(f"{'':<26} {'1 token':>19} {f'{TOKENS} tokens':>19}  answers")
    print(ROW.format("", *["shared", "apart"] * 2), " differ", flush=True)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if device == "cuda":
            built = larger(folder / "7b", SEVEN_B, torch.bfloat16, device)
            for side in (128, 256, 512):
                title = f"7 B, {(side // 16) ** 2} tokens an image"
                measure(title, built, curves(folder, side), device)
            return
        prompts = curves(folder, 56)
        for family in tiny_models.FAMILIES:
            with contextlib.redirect_stderr(io.StringIO()):
                tiny_models.build(family, folder / family)
            measure(family, folder / family, prompts, device)
        built = larger(folder / "larger", LARGER, torch.float32, device)
        measure("a larger qwen2_5_vl", built, curves(folder, 64), device)


if __name__ == "__main__":
    main()
