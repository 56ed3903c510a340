"""What every answerer's training does with a prompt: its tokens, and what the model says
at the answer's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch

if TYPE_CHECKING:
    from transformers import FastVlmForConditionalGeneration, PreTrainedTokenizerFast

PICTURE_TOKENS = 9
"""Tokens of the language model for one picture."""


class Encoded(NamedTuple):
    """Prompts with answers as tokens; all int64, shape (prompts, tokens), padded on the
    right.
    """

    ids: torch.Tensor
    labels: torch.Tensor  # −100 outside the answer
    mask: torch.Tensor  # 1 for a token, 0 for padding


def encoded(
    tokenizer: PreTrainedTokenizerFast, prompts: Sequence[str], answers: Sequence[str]
) -> Encoded:
    """Prompts, with "<image>" once for each token of a picture, and their answers."""
    rows = []
    for text, said in zip(prompts, answers, strict=True):
        prompt = tokenizer(f"<|user|>{text}<|end|><|assistant|>")["input_ids"]
        rows.append((prompt, tokenizer(f"{said}<|end|>")["input_ids"]))
    shape = (len(rows), max(len(prompt) + len(answer) for prompt, answer in rows))
    ids = torch.zeros(shape, dtype=torch.long)
    labels = torch.full(shape, -100)
    mask = torch.zeros(shape, dtype=torch.long)
    for i, (prompt, answer) in enumerate(rows):
        n = len(prompt) + len(answer)
        ids[i, :n] = torch.tensor(prompt + answer)
        mask[i, :n] = 1
        labels[i, len(prompt) : n] = torch.tensor(answer)
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
