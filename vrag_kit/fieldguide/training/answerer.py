"""The demo's answerers before they learn anything: recipes, processor, FastVLM model."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from vrag_kit.fieldguide.training.lessons import UNKNOWN, Lesson, Plan, lessons
from vrag_kit.fieldguide.training.train_tower import (
    ARCHITECTURE,
    CHANNELS,
    FEATURES,
    IMAGE_SIZE,
    MEAN,
    STD,
)
from vrag_kit.generation.rendering import render
from vrag_kit.papers.visual_rag.wording import WORDING
from vrag_kit.types import Evidence, Query

if TYPE_CHECKING:
    from transformers import (
        FastVlmForConditionalGeneration,
        LlavaProcessor,
        PreTrainedTokenizerFast,
    )

CHAT = (
    "{% for message in messages %}<|{{ message['role'] }}|>{% if message['content'] is string %}{{"
    " message['content'] }}{% else %}{% for part in message['content'] %}{% if part['type'] =="
    " 'image' %}<image>{% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}<|end|>{%"
    " endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SPECIAL = ("<pad>", "<image>", "<|user|>", "<|assistant|>", "<|system|>", "<|end|>")


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one answerer is built and trained."""

    plan: Plan
    alone: int = 600  # steps of one photograph a prompt, in bare words
    bare: int = 600  # steps of the plan, in bare words
    worded: int = 1500  # steps of the plan, in the paper's wording
    # further steps with passages of text: one passage first, then up to four, then up to ten
    reading: int = 900
    width: int = 192
    layers: int = 4
    heads: int = 4
    vocabulary: int = 1536
    learning_rate: float = 1e-3
    # standard deviation of the first weights: with the usual 0.02 attention stays flat for
    # hundreds of steps
    spread: float = 0.06
    context: int = 2048
    seed: str = "answerer"

    @property
    def steps(self) -> int:
        """All steps before the reading."""
        return self.alone + self.bare + self.worded


RECIPES = {
    "field-guide-vlm-few": Recipe(Plan(told=5, guess=3, single=18, several=9, most=3, seldom=8)),
    "field-guide-vlm-many": Recipe(Plan(told=5, guess=3, single=11, several=11, most=20)),
}


def words_of(lesson: Lesson) -> str:
    """What a prompt says: in the paper's wording, or from the question on."""
    template = lesson.template or "text_passages"
    words = _prompt(template, lesson.question, lesson.passages)
    return words if lesson.template else words[words.index("Question: ") :]


def _prompt(template: str, question: str, passages: Sequence[str] = ()) -> str:
    """A prompt's words, in a template of the paper's wording."""
    evidence = [Evidence(doc_id=f"p{n}", text=text) for n, text in enumerate(passages)]
    query = Query(query_id="any", text=question)
    return str(render(WORDING.template(template), query, evidence)[0].parts[0])


def build_processor(
    recipe: Recipe, folder: Path, texts: Sequence[str] | None = None
) -> LlavaProcessor:
    """Write tokenizer, chat template and image processor to `folder`; returns the
    processor. The vocabulary is made for `texts`; None: for the guide's language and
    the paper's wording.
    """
    from transformers import CLIPImageProcessor, LlavaProcessor

    images = CLIPImageProcessor(
        size={"height": IMAGE_SIZE, "width": IMAGE_SIZE},
        do_center_crop=False,
        do_resize=True,
        image_mean=[MEAN] * 3,
        image_std=[STD] * 3,
    )
    processor = LlavaProcessor(  # type: ignore[no-untyped-call]  # transformers has no types here
        images,
        _build_tokenizer(recipe, _texts(recipe) if texts is None else texts),
        patch_size=32,
        vision_feature_select_strategy="full",
        chat_template=CHAT,
        image_token="<image>",
    )
    processor.save_pretrained(folder)
    return processor


def _build_tokenizer(recipe: Recipe, texts: Sequence[str]) -> PreTrainedTokenizerFast:
    """A byte-pair tokenizer of what the texts say."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=recipe.vocabulary,
        special_tokens=list(SPECIAL),
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    bpe.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]  # no types here either
        tokenizer_object=bpe,
        pad_token="<pad>",
        eos_token="<|end|>",
        additional_special_tokens=list(SPECIAL[1:5]),
        model_max_length=recipe.context,
        padding_side="left",
    )


def _texts(recipe: Recipe) -> list[str]:
    """What the tokenizer is made for: questions, answers, and the paper's wording."""
    words = Plan(told=0, guess=12, single=0, several=0, most=2)
    texts = []
    for number in range(400):
        taught = lessons(words, [], f"{recipe.seed}/words/{number}", most=2, worded=True)
        for lesson in taught:
            texts += [lesson.question, f"Answer: {lesson.answer}"]
    templates = ("no_image", "clue_image", "one_image", "several_images")
    prompts = [_prompt(template, "") for template in templates]
    return [*texts, *prompts * 40, f"Answer: {UNKNOWN}"]


def build_model(
    recipe: Recipe, tokenizer: PreTrainedTokenizerFast
) -> FastVlmForConditionalGeneration:
    """A FastVLM model with random weights."""
    from transformers import (
        FastVlmConfig,
        FastVlmForConditionalGeneration,
        Qwen2Config,
        TimmWrapperConfig,
    )

    sizes = {
        "vocab_size": len(tokenizer),
        "hidden_size": recipe.width,
        "intermediate_size": 2 * recipe.width,
        "num_hidden_layers": recipe.layers,
        "max_position_embeddings": recipe.context,
    }
    heads = {"num_attention_heads": recipe.heads, "num_key_value_heads": recipe.heads}
    ends = {"pad_token_id": 0, "bos_token_id": None, "eos_token_id": tokenizer.eos_token_id}
    text = Qwen2Config.from_dict({**sizes, **heads, **ends, "tie_word_embeddings": True})
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
        image_seq_length=(IMAGE_SIZE // 32) ** 2,
    )
    model = FastVlmForConditionalGeneration(config)
    for name, weight in model.named_parameters():
        if weight.ndim == 2 and "vision_tower" not in name:
            torch.nn.init.normal_(weight, std=recipe.spread)
    return model


def save(model: Any, folder: Path) -> None:
    """Write config and half-precision weights; they are computed with in float32, as
    the config says.
    """
    model.generation_config.update(
        do_sample=False,
        max_new_tokens=16,
        eos_token_id=model.config.text_config.eos_token_id,
        pad_token_id=0,
    )
    copy.deepcopy(model).half().save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    for part in (config, config["text_config"], config["vision_config"]):
        part["dtype"] = "float32"
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
