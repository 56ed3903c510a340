"""Questions said anew by a model, so that they can be searched for: without the picture
that they are asked about, and without the turns before.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vrag_kit.forecast import STAND_IN
from vrag_kit.generation.answers import AnswerStore
from vrag_kit.generation.asking import ask_prompts
from vrag_kit.generation.asking_options import Asking, Round
from vrag_kit.generation.generator import Generator
from vrag_kit.generation.loading import load_generator
from vrag_kit.generation.reading import Fields
from vrag_kit.generation.wording import Wording
from vrag_kit.options import Entry
from vrag_kit.types import Answer, Failure, Prompt

REWRITTEN = "rewritten"
UNSURE = "unsure"
UNREADABLE = "unreadable"
MOST_TOKENS = 256
"""Longest reply."""
_KEYS = {"entity_name", "updated_question"}
_THOUGHT = re.compile(r"<think>.*?(?:</think>|$)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """What became of one question."""

    text: str
    """What is searched for: the new question, or the old one where there is none."""
    outcome: str
    """"rewritten", "unsure" (the model names no entity), "unreadable" (not one JSON
    object as it was asked for).
    """
    failure: Failure | None = None
    """Why the model did not answer at all; None when it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriter:
    """A model that says questions anew; its words are kept, and read anew each time."""

    generator: Generator
    wording: Wording
    """Setting → what the model is told and shown."""
    store: Path
    """The file of answers in which its words are kept."""
    how: Asking
    lease: float = 30.0
    """As that of an `AnswerStore`."""

    def rewrite(self, prompts: Sequence[Prompt], questions: Sequence[str]) -> list[Rewritten]:
        """What became of each question, whose prompt asks for it to be said anew.

        Prints how many stay as they are.
        """
        if not prompts:
            return []
        this = Round(what="rewritten questions", read=read_rewriting, silence_counts=True)
        with AnswerStore(self.store, lease=self.lease) as store:
            replies = ask_prompts(self.generator, prompts, store, how=self.how, this=this)
        pairs = zip(questions, replies, strict=True)
        found = [_rewritten(question, reply) for question, reply in pairs]
        counts = Counter(each.outcome for each in found if each.failure is None)
        stay = counts[UNSURE] + counts[UNREADABLE]
        if stay and not any(reply.fields.get(STAND_IN) for reply in replies):
            print(
                f"rewriting by {self.generator.name}: {stay:,} of {len(found):,} questions are"
                f" searched as they are ({counts[UNSURE]:,} without an entity,"
                f" {counts[UNREADABLE]:,} unreadable)",
                flush=True,
            )
        return found


def load_rewriter(
    entry: Entry,
    answers_dir: Path | str,
    *,
    wording: Wording,
    run_with: Mapping[str, Any] | None = None,  # Any: as a notebook's parameters have it
) -> Rewriter:
    """The model that `entry` names as `load_generator` takes it, which decodes greedily
    unless its entry says otherwise; its words are kept in `answers_dir`, as answers are.

    Of `run_with` device, batch_size and retry_failures count here too. Raises
    `VragError` as `load_generator` does.
    """
    default = Asking(decoding="greedy", max_new_tokens=MOST_TOKENS)
    how = Asking.beside_answerers(run_with or {}, default)
    generator = load_generator(
        entry,
        device=how.device,
        decoding=how.decoding,
        max_new_tokens=how.max_new_tokens,
        concurrency=how.batch_size,
    )
    store = Path(answers_dir) / "answers.sqlite"
    return Rewriter(generator=generator, wording=wording, store=store, how=how)


def read_rewriting(raw: str) -> Fields:
    """outcome, and question where there is a new one.

    Words may stand before the JSON object `{"entity_name": …, "updated_question": …}`,
    but no brace; behind it nothing but the end of a code fence. It has these two keys,
    once each. An empty name, or null, is unsure; all else is unreadable.
    """
    words = _THOUGHT.sub("", raw)
    begin = words.find("{")
    try:
        found, end = _DECODER.raw_decode(words, max(begin, 0))
        json.dumps(found, ensure_ascii=False).encode()  # half a character is none
    except (ValueError, RecursionError):
        return {"outcome": UNREADABLE}
    if words[end:].strip() not in ("", "```") or not isinstance(found, dict):
        return {"outcome": UNREADABLE}
    if set(found) != _KEYS:
        return {"outcome": UNREADABLE}
    name, question = found["entity_name"], found["updated_question"]
    if name is None or (isinstance(name, str) and not name.strip()):
        return {"outcome": UNSURE}
    if not isinstance(name, str) or not isinstance(question, str) or not question.strip():
        return {"outcome": UNREADABLE}
    return {"outcome": REWRITTEN, "question": " ".join(question.split())}


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:  # Any: what JSON holds
    """A JSON object; raises ValueError for a key that is there twice."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)


_DECODER = json.JSONDecoder(object_pairs_hook=_once_each)


def _rewritten(question: str, reply: Answer) -> Rewritten:
    if not reply.status.is_answer:
        return Rewritten(text=question, outcome="", failure=reply.failure)
    text = str(reply.fields.get("question", question))
    return Rewritten(text=text, outcome=str(reply.fields["outcome"]))
