"""The demo's answerers before they learn anything: recipes, processor, FastVLM model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from vrag_kit.fieldguide.training.fast_vlm import SPECIAL, fast_vlm, processor_of, tokenizer_of
from vrag_kit.fieldguide.training.lessons import UNKNOWN, Lesson, Plan, lessons
from vrag_kit.fieldguide.training.tower import IMAGE_SIZE
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
SIZE = (IMAGE_SIZE, IMAGE_SIZE)


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
    tokenizer = _build_tokenizer(recipe, _texts(recipe) if texts is None else texts)
    processor = processor_of(tokenizer, CHAT, SIZE)
    processor.save_pretrained(folder)
    return processor


def _build_tokenizer(recipe: Recipe, texts: Sequence[str]) -> PreTrainedTokenizerFast:
    """A byte-pair tokenizer of what the texts say."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

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
    return tokenizer_of(bpe, recipe.context)


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
    sizes = {
        "hidden_size": recipe.width,
        "intermediate_size": 2 * recipe.width,
        "num_hidden_layers": recipe.layers,
        "num_attention_heads": recipe.heads,
        "num_key_value_heads": recipe.heads,
        "max_position_embeddings": recipe.context,
    }
    model = fast_vlm(tokenizer, sizes, SIZE)
    for name, weight in model.named_parameters():
        if weight.ndim == 2 and "vision_tower" not in name:
            torch.nn.init.normal_(weight, std=recipe.spread)
    return model
