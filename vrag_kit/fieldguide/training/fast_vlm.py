"""FastVLM models of transformers as all answerers have them: the model before it learns
anything, its processor, and how it is written.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vrag_kit.fieldguide.training.tower import image_processor, tower_config

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import (
        FastVlmForConditionalGeneration,
        LlavaProcessor,
        PreTrainedTokenizerFast,
    )

SPECIAL = ("<pad>", "<image>", "<|user|>", "<|assistant|>", "<|system|>", "<|end|>")
"""The first tokens of each vocabulary."""
CELL = 32
"""Side in pixels of what becomes one token."""


def fast_vlm(
    tokenizer: PreTrainedTokenizerFast, sizes: Mapping[str, object], size: tuple[int, int]
) -> FastVlmForConditionalGeneration:
    """The model with random weights: a Qwen2 of these sizes behind the tower, for pictures
    of this height and width.
    """
    from transformers import FastVlmConfig, FastVlmForConditionalGeneration, Qwen2Config

    own = {
        "vocab_size": len(tokenizer),
        "pad_token_id": 0,
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "tie_word_embeddings": True,
    }
    config = FastVlmConfig(
        vision_config=tower_config(pooled=False),
        text_config=Qwen2Config.from_dict({**sizes, **own}),
        image_token_index=SPECIAL.index("<image>"),
        tie_word_embeddings=True,
        image_seq_length=places(size),
    )
    return FastVlmForConditionalGeneration(config)


def places(size: tuple[int, int]) -> int:
    """Tokens of the language model for a picture of this height and width."""
    height, width = size
    return (height // CELL) * (width // CELL)


def tokenizer_of(tokens: Tokenizer, context: int) -> PreTrainedTokenizerFast:
    """A tokenizer that has the special tokens, as transformers takes it."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]  # transformers is untyped
        tokenizer_object=tokens,
        pad_token="<pad>",
        eos_token="<|end|>",
        additional_special_tokens=list(SPECIAL[1:5]),
        model_max_length=context,
        padding_side="left",
    )


def processor_of(
    tokenizer: PreTrainedTokenizerFast, chat: str, size: tuple[int, int]
) -> LlavaProcessor:
    """The processor of a tokenizer, with a chat template, for pictures of this height and
    width.
    """
    from transformers import LlavaProcessor

    return LlavaProcessor(  # type: ignore[no-untyped-call]  # transformers has no types here
        image_processor(*size),
        tokenizer,
        patch_size=CELL,
        vision_feature_select_strategy="full",
        chat_template=chat,
        image_token="<image>",
    )


def save(model: Any, folder: Path) -> None:
    """Write config and half-precision weights of a FastVLM model."""
    model.generation_config.update(
        do_sample=False,
        max_new_tokens=16,
        eos_token_id=model.config.text_config.eos_token_id,
        pad_token_id=0,
    )
    save_halved(model, folder, ("text_config", "vision_config"))


def save_halved(model: Any, folder: Path, parts: Sequence[str] = ()) -> None:
    """Write half-precision weights, and the config, which says, also of these parts, that
    they are computed with in float32: half precision takes a CPU thirty times as long.
    """
    copy.deepcopy(model).half().save_pretrained(folder)
    file = folder / "config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    for part in (config, *(config[name] for name in parts)):
        part["dtype"] = "float32"
    file.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
