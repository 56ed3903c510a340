"""What a model that answers must offer: a name, a fingerprint, its decoding, and `generate`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from vrag_kit.types import Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model returned for one prompt, before it becomes an `Answer`."""

    raw: str | None
    """The model's words; None when there are none."""
    status: str = "ok"
    """"ok", or why there is no usable answer."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Anything to note, such as truncated: True."""
    tokens: Mapping[str, int] = field(default_factory=dict)
    """Token counts: prompt, completion."""


class Generator(Protocol):
    """A multimodal model that answers prompts."""

    name: str
    """Appears in tables, file names and colours."""
    fingerprint: str
    """Changes whenever answers may: weights, processor, precision."""
    decoding: Mapping[str, Any]
    """How answers are decoded, as it is sent; part of an answer's key."""

    def generate(self, prompts: Sequence[Prompt], *, sample: int = 0) -> list[Reply]:
        """One reply a prompt, in order. A prompt that fails gets a reply that says why; the others are answered all the same."""


def read_answer(raw: str) -> dict[str, Any]:
    """What is to be judged: the text after the last "Answer:"; all of it when there is none, marked `untagged`."""
    pieces = re.split(r"answer\s*:", raw, flags=re.IGNORECASE)
    return {"answer": pieces[-1].strip(), **({"untagged": True} if len(pieces) == 1 else {})}
