"""The answerer of conversations before it learns anything, and what is done with its
lessons.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from vrag_kit.fieldguide.training.answerer import SPECIAL
from vrag_kit.fieldguide.training.talk_layers import THETA, WIDTH, give_talk_layers
from vrag_kit.fieldguide.training.talk_lessons import Lesson
from vrag_kit.fieldguide.training.talk_tokens import CONTEXT
from vrag_kit.fieldguide.training.teaching import Encoded, Guesses, guesses
from vrag_kit.fieldguide.training.train_tower import ARCHITECTURE, CHANNELS, FEATURES, to_input
from vrag_kit.fieldguide.training.worn_stock import EACH, INPUT, SHARD, read_shard
from vrag_kit.files import write_file

if TYPE_CHECKING:
    from transformers import FastVlmForConditionalGeneration, PreTrainedTokenizerFast

LAYERS, HEADS = 5, 8
PLACES = (INPUT[0] // 32) * (INPUT[1] // 32)
"""Tokens of the language model for one picture."""


def build_talker(tokenizer: PreTrainedTokenizerFast, seed: int) -> FastVlmForConditionalGeneration:
    """A FastVLM model whose language model already looks things up."""
    from transformers import (
        FastVlmConfig,
        FastVlmForConditionalGeneration,
        Qwen2Config,
        TimmWrapperConfig,
    )

    sizes = {
        "vocab_size": len(tokenizer),
        "hidden_size": WIDTH,
        "intermediate_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "max_position_embeddings": CONTEXT,
        "rope_parameters": {"rope_type": "default", "rope_theta": THETA},
    }
    ends = {"pad_token_id": 0, "bos_token_id": None, "eos_token_id": tokenizer.eos_token_id}
    text = Qwen2Config.from_dict({**sizes, **ends, "tie_word_embeddings": True})
    vision = TimmWrapperConfig(  # type: ignore[call-arg]  # the last two are not in its signature
        architecture=ARCHITECTURE,
        model_args={"channels": list(CHANNELS)},
        do_pooling=False,
        hidden_size=FEATURES,
        num_classes=0,
    )
    config = FastVlmConfig(
        vision_config=vision,
        text_config=text,
        image_token_index=SPECIAL.index("<image>"),
        tie_word_embeddings=True,
        image_seq_length=PLACES,
    )
    model = FastVlmForConditionalGeneration(config)
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
            labels += [*[-100] * len(asked), *said]
        rows.append((ids, labels))
    shape = (len(rows), max(len(ids) for ids, _ in rows))
    tokens = torch.zeros(shape, dtype=torch.long)
    wanted = torch.full(shape, -100)
    mask = torch.zeros(shape, dtype=torch.long)
    for i, (ids, labels) in enumerate(rows):
        tokens[i, : len(ids)] = torch.tensor(ids)
        wanted[i, : len(ids)] = torch.tensor(labels)
        mask[i, : len(ids)] = 1
    return Encoded(tokens, wanted, mask)


class SeenWorn:
    """What a tower sees in all pictures of a worn stock: computed once and kept."""

    def __init__(self, tower: torch.nn.Module, shards: int, folder: Path) -> None:
        files = [folder / f"seen-{shard:04d}.npy" for shard in range(shards)]
        for shard, file in enumerate(files):
            if not file.is_file():
                content = io.BytesIO()
                np.save(content, _seen(tower, read_shard(folder, shard).pixels))
                write_file(file, content.getvalue())
        self._files = [np.load(file) for file in files]

    def of(self, batch: Sequence[Lesson]) -> torch.Tensor:
        """float32, shape (lessons, PLACES, FEATURES)."""
        rows = []
        for lesson in batch:
            shard, place = divmod(lesson.picture, SHARD * EACH)
            rows.append(self._files[shard][place])
        return torch.from_numpy(np.stack(rows)).float()


@torch.inference_mode()
def _seen(tower: torch.nn.Module, pixels: np.ndarray) -> np.ndarray:
    """float16, shape (pictures, PLACES, FEATURES)."""
    flat = pixels.reshape(-1, *pixels.shape[2:])
    parts = []
    for start in range(0, len(flat), 100):
        some = torch.from_numpy(flat[start : start + 100]).permute(0, 3, 1, 2)
        parts.append(tower(to_input(some)).flatten(2).permute(0, 2, 1).half())
    seen: np.ndarray = torch.cat(parts).numpy()
    return seen


def said(model: Any, tokenizer: Any, batch: Sequence[Lesson], seen: SeenWorn) -> Guesses:
    """What the model says at each answer."""
    return guesses(model, encoded(tokenizer, batch), seen.of(batch))
