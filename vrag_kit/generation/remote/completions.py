"""Parse an endpoint's chat completions into a `Reply`: text, refusal, tokens."""

from __future__ import annotations

from typing import Any

from vrag_kit.generation.generator import Reply
from vrag_kit.types import Failure, Status

Completion = Any
"""A chat completion as the client returns it: servers omit, add and misspell fields, so that none
of its types can be relied on.
"""
NOT_ANSWERED = (Status.TIMEOUT, Status.RATE_LIMITED, Status.ERROR)
"""Failures that a retry, or another server, may resolve."""


def parse_completion(completion: Completion, limit: int) -> Reply:
    """Parse a chat completion into a reply; `limit` is the longest answer, in tokens.

    Raises ValueError for a completion whose text has no known form.
    """
    tokens = count_tokens(completion)
    if not isinstance(completion.choices, list) or not completion.choices:
        failure = Failure(Status.ERROR, "the endpoint's reply holds no choice")
        return Reply(raw=None, failure=failure, tokens=tokens)
    choice = completion.choices[0]
    if getattr(choice, "message", None) is None:
        raise ValueError("its choice holds no message")
    raw = _words(getattr(choice.message, "content", None))
    served = getattr(completion, "model", None)
    return Reply(
        raw=raw,
        failure=_failure(choice, raw, limit),
        fields={"served": served} if served else {},
        tokens=tokens,
    )


def count_tokens(completion: Completion) -> dict[str, int]:
    """Return the token counts that the endpoint reports. Reasoning tokens are part of the
    completion, even where the endpoint omits them there, and cached tokens are part of the prompt.
    """
    usage = getattr(completion, "usage", None)
    prompt = getattr(usage, "prompt_tokens", None)
    answer = getattr(usage, "completion_tokens", None)
    total = getattr(usage, "total_tokens", None)
    if not isinstance(prompt, int) or not isinstance(answer, int):
        return {}
    if isinstance(total, int):
        answer = max(answer, total - prompt)
    tokens = {"prompt": prompt, "completion": answer}
    details = getattr(usage, "completion_tokens_details", None)
    thinking = getattr(details, "reasoning_tokens", None)
    if isinstance(thinking, int):
        tokens["reasoning"] = thinking
    cached = getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None)
    if isinstance(cached, int):
        tokens["cached"] = cached
    return tokens


def utf8_safe(words: str) -> str:
    """Return text that UTF-8 can encode: half a surrogate pair becomes a question mark."""
    return words.encode("utf-8", "replace").decode("utf-8")


def _failure(choice: Completion, raw: str | None, limit: int) -> Failure | None:
    """Why a choice is no usable answer; None when it is one."""
    refusal = getattr(choice.message, "refusal", None)
    if refusal:
        return Failure(Status.REFUSED, utf8_safe(str(refusal)))
    if choice.finish_reason == "content_filter":
        return Failure(Status.REFUSED, "content filter")
    if choice.finish_reason == "length":
        return Failure(Status.TRUNCATED, f"cut off at {limit} tokens")
    return None if raw else Failure(Status.EMPTY, "the model ended without a word")


def _words(content: Completion) -> str | None:
    """The words of a message: a text, or the texts among its parts."""
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(text for text in texts if isinstance(text, str))
    if content is not None and not isinstance(content, str):
        raise ValueError(f"its words are {str(content)[:40]!r}")
    return utf8_safe((content or "").strip()) or None
