"""The answerer of conversations before it learns anything, and what is done with its
lessons.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from vrag_kit.fieldguide.training.fast_vlm import fast_vlm, places
from vrag_kit.fieldguide.training.shards import see_shards, seen_file
from vrag_kit.fieldguide.training.talk_layers import THETA, WIDTH, give_talk_layers
from vrag_kit.fieldguide.training.talk_lessons import Lesson
from vrag_kit.fieldguide.training.talk_tokens import CONTEXT
from vrag_kit.fieldguide.training.teaching import SILENT, Encoded, Guesses, guesses, padded
from vrag_kit.fieldguide.training.worn_stock import EACH, INPUT, SHARD, read_shard

if TYPE_CHECKING:
    from transformers import FastVlmForConditionalGeneration, PreTrainedTokenizerFast

LAYERS, HEADS = 5, 8
PLACES = places(INPUT)
"""Tokens of the language model for one picture."""


def build_talker(tokenizer: PreTrainedTokenizerFast, seed: int) -> FastVlmForConditionalGeneration:
    """A FastVLM model whose language model already looks things up."""
    sizes = {
        "hidden_size": WIDTH,
        "intermediate_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "max_position_embeddings": CONTEXT,
        "rope_parameters": {"rope_type": "default", "rope_theta": THETA},
    }
    model = fast_vlm(tokenizer, sizes, INPUT)
    give_talk_layers(model, tokenizer.convert_ids_to_tokens(list(range(len(tokenizer)))), seed)
    return model


def encoded(tokenizer: PreTrainedTokenizerFast, batch: Sequence[Lesson]) -> Encoded:
    """The lessons as tokens; labels at each answer and the end of it."""
    rows = []
    for lesson in batch:
        ids: list[int] = []
        labels: list[int] = []
        for prompt, answer in zip(lesson.prompts, lesson.answers, strict=True):
            asked = tokenizer(prompt.replace("<image>", "<image>" * PLACES))["input_ids"]
            said = tokenizer(f" {answer}<|end|>")["input_ids"]
            ids += [*asked, *said]
            labels += [*[SILENT] * len(asked), *said]
        rows.append((ids, labels))
    return padded(rows)


class SeenWorn:
    """What a tower sees in all pictures of a worn stock: computed once and kept."""

    def __init__(self, tower: torch.nn.Module, shards: int, folder: Path) -> None:
        see_shards(tower, partial(_pictures, folder), shards, folder)
        self._files = [np.load(seen_file(folder, shard)) for shard in range(shards)]

    def of(self, batch: Sequence[Lesson]) -> torch.Tensor:
        """float32, shape (lessons, PLACES, FEATURES)."""
        rows = []
        for lesson in batch:
            shard, place = divmod(lesson.picture, SHARD * EACH)
            rows.append(self._files[shard][place])
        return torch.from_numpy(np.stack(rows)).float()


def _pictures(folder: Path, shard: int) -> np.ndarray:
    """Those of a file of the stock, species after species."""
    pixels = read_shard(folder, shard).pixels
    return pixels.reshape(-1, *pixels.shape[2:])


def said(model: Any, tokenizer: Any, batch: Sequence[Lesson], seen: SeenWorn) -> Guesses:
    """What the model says at each answer."""
    return guesses(model, encoded(tokenizer, batch), seen.of(batch))
