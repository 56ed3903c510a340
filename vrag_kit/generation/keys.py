"""What an answer is kept under: a hash of everything that determines it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vrag_kit.plain import Json, JsonView
from vrag_kit.types import LazyImage, Message, Prompt

StoredPrompt = list[dict[str, Any]]  # Any: what JSON holds
"""A prompt as it is stored: messages with role and parts, pictures as {"image": where,
"pixels": hash}.
"""


@dataclass(frozen=True, slots=True)
class Picture:
    """What is known of a picture without decoding it again."""

    pixels: str
    """Hash of its upright RGB pixels."""
    size: tuple[int, int]
    """Width and height, upright."""


def stored_prompt(prompt: Prompt, pictures: Mapping[str, Picture]) -> StoredPrompt:
    """A prompt as it is stored; `pictures` has each of its images by `where`."""
    return [_stored_message(message, pictures) for message in prompt]


def answer_key(fingerprint: str, prompt: StoredPrompt, decoding: JsonView, sample: int) -> str:
    """The id of an answer: a hash of the model's fingerprint, every part of the prompt
    in order (pictures by their pixels), the decoding and the sample.
    """
    asked = [{"role": each["role"], "parts": _determining(each["parts"])} for each in prompt]
    determining = [fingerprint, asked, dict(decoding), sample]
    text = json.dumps(determining, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _stored_message(message: Message, pictures: Mapping[str, Picture]) -> Json:
    def stored(part: str | LazyImage) -> str | dict[str, str]:
        if isinstance(part, str):
            return part
        return {"image": part.where, "pixels": pictures[part.where].pixels}

    return {"role": message.role, "parts": [stored(part) for part in message.parts]}


def _determining(parts: list[str | dict[str, str]]) -> list[str | dict[str, str]]:
    """Parts without the names of files: the same pixels are the same question."""
    return [part if isinstance(part, str) else {"pixels": part["pixels"]} for part in parts]
