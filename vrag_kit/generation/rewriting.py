"""Query rewriting: a model rewrites questions for search, without image and earlier turns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vrag_kit.config import GREEDY, Entry
from vrag_kit.generation.ask import Task, ask_prompts
from vrag_kit.generation.generators import Generator, load_generator
from vrag_kit.generation.prompts import ParsedFields, PromptSet, strip_thoughts
from vrag_kit.generation.store import AnswerStore
from vrag_kit.types import Failure, Prompt
from vrag_kit.workspace import Workspace

REWRITTEN = "rewritten"
NO_ENTITY = "no_entity"
UNPARSED = "unparsed"
MOST_TOKENS = 256
"""Maximum tokens of a reply."""
_KEYS = {"entity_name", "updated_question"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteResult:
    """The result of rewriting one question."""

    text: str
    """The search query: the rewritten question, or the original if there is none."""
    outcome: str
    """"rewritten", "no_entity" (the model names none), "unparsed" (not the requested JSON object).
    """
    failure: Failure | None = None
    """Why the model did not answer; None when it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriter:
    """A model that rewrites questions; its replies are stored, and parsed each time."""

    generator: Generator
    prompts: PromptSet
    """The prompt set, with a template for each setting."""
    at: Workspace
    """The workspace whose answer store keeps its replies."""

    def rewrite(self, prompts: Sequence[Prompt], questions: Sequence[str]) -> list[RewriteResult]:
        """Return the result for each question, whose prompt asks for a rewriting."""
        if not prompts:
            return []
        task = Task(what="rewritten questions", read=parse_rewriting, silence_counts=True)
        with AnswerStore(self.at.answers_file) as store:
            replies = ask_prompts(self.generator, prompts, store, at=self.at, task=task)
        results = []
        for question, reply in zip(questions, replies, strict=True):
            text = str(reply.fields.get("question", question))
            outcome = str(reply.fields["outcome"]) if reply.status.is_answer else ""
            failure = None if outcome else reply.failure
            results.append(RewriteResult(text=text, outcome=outcome, failure=failure))
        return results


def load_rewriter(entry: Entry, at: Workspace, *, prompts: PromptSet) -> Rewriter:
    """Load a rewriter with the model that `entry` names, as `load_generator` takes it. It decodes
    greedily unless its entry says otherwise; its replies are stored like answers. Raises
    `VragError` as `load_generator` does.
    """
    decoding = {**GREEDY, "max_new_tokens": MOST_TOKENS}
    generator = load_generator(entry, decoding=decoding, at=at)
    return Rewriter(generator=generator, prompts=prompts, at=at)


def parse_rewriting(raw: str) -> ParsedFields:
    """Return the field outcome and, if there is a new one, question.

    Text without a brace may precede the JSON object `{"entity_name": …, "updated_question": …}`;
    only the end of a code fence may follow it. It has these two keys, once each. An empty name, or
    null, is "no_entity"; anything else is "unparsed".
    """
    words = strip_thoughts(raw)
    try:
        found, end = _DECODER.raw_decode(words, max(words.find("{"), 0))
        json.dumps(found, ensure_ascii=False).encode()  # rejects half of a surrogate pair
    except (ValueError, RecursionError):
        return {"outcome": UNPARSED}
    is_object = isinstance(found, dict) and set(found) == _KEYS
    if not is_object or words[end:].strip() not in ("", "```"):
        return {"outcome": UNPARSED}
    name, question = found["entity_name"], found["updated_question"]
    if name is None or not str(name).strip():
        return {"outcome": NO_ENTITY}
    if not isinstance(name, str) or not isinstance(question, str) or not question.strip():
        return {"outcome": UNPARSED}
    return {"outcome": REWRITTEN, "question": " ".join(question.split())}


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:  # Any: what JSON holds
    """Return a JSON object; raises ValueError for a repeated key."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key is repeated")
    return dict(pairs)


_DECODER = json.JSONDecoder(object_pairs_hook=_object)
