"""What every answerer's training does with a prompt: its tokens, and what the model says
at the answer's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import torch

if TYPE_CHECKING:
    from transformers import FastVlmForConditionalGeneration, PreTrainedTokenizerFast

PICTURE_TOKENS = 9
"""Tokens of the language model for one picture."""
SILENT = -100
"""Label where nothing is to be said."""
L = TypeVar("L")


class Encoded(NamedTuple):
    """Prompts with answers as tokens; all int64, shape (prompts, tokens), padded on the
    right.
    """

    ids: torch.Tensor
    labels: torch.Tensor  # SILENT outside the answer
    mask: torch.Tensor  # 1 for a token, 0 for padding


def encoded(
    tokenizer: PreTrainedTokenizerFast, prompts: Sequence[str], answers: Sequence[str]
) -> Encoded:
    """Prompts, with "<image>" once for each token of a picture, and their answers."""
    rows = []
    for text, said in zip(prompts, answers, strict=True):
        prompt = tokenizer(f"<|user|>{text}<|end|><|assistant|>")["input_ids"]
        answer = tokenizer(f"{said}<|end|>")["input_ids"]
        rows.append(([*prompt, *answer], [*[SILENT] * len(prompt), *answer]))
    return padded(rows)


def padded(rows: Sequence[tuple[list[int], list[int]]]) -> Encoded:
    """Tokens and labels of each row, as long as the longest."""
    shape = (len(rows), max(len(tokens) for tokens, _ in rows))
    ids = torch.zeros(shape, dtype=torch.long)
    labels = torch.full(shape, SILENT)
    mask = torch.zeros(shape, dtype=torch.long)
    for i, (tokens, wanted) in enumerate(rows):
        ids[i, : len(tokens)] = torch.tensor(tokens)
        labels[i, : len(tokens)] = torch.tensor(wanted)
        mask[i, : len(tokens)] = 1
    return Encoded(ids, labels, mask)


class Guesses(NamedTuple):
    """What a model says at every token of the answers."""

    logits: torch.Tensor  # shape (tokens, vocabulary)
    labels: torch.Tensor  # shape (tokens,)
    prompt: torch.Tensor  # number in the batch, shape (tokens,)

    def right(self, prompts: int) -> list[bool]:
        """For each of so many prompts whether the whole answer is what was to be said."""
        missed = (self.logits.argmax(1) != self.labels).float()
        return (torch.zeros(prompts).index_add_(0, self.prompt, missed) == 0).tolist()


def guesses(
    model: FastVlmForConditionalGeneration, prompts: Encoded, seen: torch.Tensor | None
) -> Guesses:
    """What the model says; `seen` is what its tower sees in all pictures, in order:
    float32, shape (pictures, 9, channels), None without any.
    """
    from transformers.modeling_outputs import BaseModelOutputWithPooling

    features = None
    if seen is not None:
        pooled = model.model.multi_modal_projector(seen)
        features = {"image": BaseModelOutputWithPooling(pooler_output=pooled)}
    hidden = model.model(
        input_ids=prompts.ids,
        attention_mask=prompts.mask,
        mm_encoder_outputs=features,
        use_cache=False,
    ).last_hidden_state
    labels = prompts.labels[:, 1:]
    where = labels >= 0
    return Guesses(model.lm_head(hidden[:, :-1][where]), labels[where], where.nonzero()[:, 0])


@torch.inference_mode()
def are_right(
    say: Callable[[Sequence[L]], Guesses], lessons: Sequence[L], *, at_once: int
) -> list[bool]:
    """For each lesson whether the whole answer is right; so many are said at once."""
    right: list[bool] = []
    for start in range(0, len(lessons), at_once):
        batch = lessons[start : start + at_once]
        right += say(batch).right(len(batch))
    return right
