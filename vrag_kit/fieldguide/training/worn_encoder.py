"""The encoder of worn pictures before it learns anything: a dual encoder of
transformers, whose picture tower is that of the answerers.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vrag_kit.fieldguide.organisms import KINDS
from vrag_kit.fieldguide.training.fast_vlm import save_halved
from vrag_kit.fieldguide.training.tower import image_processor, tower_config
from vrag_kit.fieldguide.training.worn_stock import INPUT
from vrag_kit.fieldguide.traits import COLORS, PATTERNS

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast, VisionTextDualEncoderModel

DIMENSION = 64
_TEXT_WIDTH = 64
_TEXT_LAYERS = 2
_TEXT_LENGTH = 32
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]")


def build_encoder(vocabulary: int) -> VisionTextDualEncoderModel:
    """The model with random weights."""
    from transformers import (
        BertConfig,
        VisionTextDualEncoderConfig,
        VisionTextDualEncoderModel,
    )

    text = BertConfig(
        vocab_size=vocabulary,
        hidden_size=_TEXT_WIDTH,
        num_hidden_layers=_TEXT_LAYERS,
        num_attention_heads=2,
        intermediate_size=2 * _TEXT_WIDTH,
        max_position_embeddings=_TEXT_LENGTH,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    config = VisionTextDualEncoderConfig.from_vision_text_configs(
        tower_config(pooled=True), text, projection_dim=DIMENSION
    )
    return VisionTextDualEncoderModel(config)


def look_tokenizer() -> PreTrainedTokenizerFast:
    """A token for each word of a look."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = (*_SPECIAL, ",", "with", *COLORS, *KINDS, *PATTERNS)
    numbers = {word: number for number, word in enumerate(words)}
    tokens = Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
    tokens.pre_tokenizer = pre_tokenizers.Whitespace()
    tokens.post_processor = processors.TemplateProcessing(
        single="[CLS] $A", special_tokens=[("[CLS]", numbers["[CLS]"])]
    )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]  # transformers is untyped
        tokenizer_object=tokens,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        model_max_length=_TEXT_LENGTH,
    )


def save_encoder(model: Any, folder: Path) -> None:
    """Write half-precision weights, tokenizer and image processor into `folder`."""
    image_processor(*INPUT).save_pretrained(folder)
    look_tokenizer().save_pretrained(folder)
    save_halved(model, folder)
