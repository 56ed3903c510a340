"""The encoder of worn pictures before it learns anything: a dual encoder of
transformers, whose picture tower is that of the answerers.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vrag_kit.fieldguide.organisms import KINDS
from vrag_kit.fieldguide.training.train_tower import ARCHITECTURE, CHANNELS, FEATURES, MEAN, STD
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
        TimmWrapperConfig,
        VisionTextDualEncoderConfig,
        VisionTextDualEncoderModel,
    )

    vision = TimmWrapperConfig(  # type: ignore[call-arg]  # the last two are not in its signature
        architecture=ARCHITECTURE,
        model_args={"channels": list(CHANNELS)},
        do_pooling=True,
        hidden_size=FEATURES,
        num_classes=0,
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
        vision, text, projection_dim=DIMENSION
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
    """Write half-precision weights, tokenizer and image processor into `folder`; they are
    computed with in float32: half precision takes a CPU thirty times as long.
    """
    from transformers import CLIPImageProcessor

    height, width = INPUT
    images = CLIPImageProcessor(
        size={"height": height, "width": width},
        do_center_crop=False,
        do_resize=True,
        image_mean=[MEAN] * 3,
        image_std=[STD] * 3,
    )
    images.save_pretrained(folder)
    look_tokenizer().save_pretrained(folder)
    copy.deepcopy(model).half().save_pretrained(folder)
    config = folder / "config.json"
    told = json.loads(config.read_text(encoding="utf-8"))
    told["dtype"] = "float32"
    config.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
