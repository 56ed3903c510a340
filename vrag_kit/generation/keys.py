"""What an answer is kept under: a hash of everything that determines it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from vrag_kit.plain import Json, JsonView
from vrag_kit.types import Message, Prompt

StoredPrompt = list[dict[str, Any]]  # Any: what JSON holds
"""A prompt as it is stored: messages with role and parts, pictures as {"image": where,
"pixels": hash}.
"""
_JSON = json.JSONEncoder(sort_keys=True, ensure_ascii=False)


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


@dataclass(frozen=True, slots=True)
class AnswerKeys:
    """What the answers of one model are kept under, sample by sample."""

    fingerprint: str
    """The model's."""
    decoding: JsonView
    sample: int

    def of(self, asked: Iterable[bytes]) -> list[str]:
        """The ids of the answers to prompts, as `asked_text` has them: each a hash of the
        model's fingerprint, every part of the prompt in order (pictures by their
        pixels), the decoding and the sample.
        """
        before = f"[{_JSON.encode(self.fingerprint)}, ".encode()
        behind = f", {_JSON.encode(dict(self.decoding))}, {_JSON.encode(self.sample)}]".encode()
        return [hashlib.sha256(before + text + behind).hexdigest() for text in asked]


def asked_text(prompt: Prompt, pictures: Mapping[str, Picture]) -> bytes:
    """The JSON, in UTF-8, of what determines the answer in a prompt; `pictures` has each of its
    images by `where`. Names of files are not in it: the same pixels are the same question.
    """
    return f"[{', '.join(_asked_message(message, pictures) for message in prompt)}]".encode()


def _asked_message(message: Message, pictures: Mapping[str, Picture]) -> str:
    """A message's JSON, put together by hand: there are many pictures, and all alike."""
    parts = [
        _JSON.encode(part)
        if isinstance(part, str)
        else f'{{"pixels": "{pictures[part.where].pixels}"}}'  # a hash: nothing to escape
        for part in message.parts
    ]
    return f'{{"parts": [{", ".join(parts)}], "role": {_JSON.encode(message.role)}}}'


def _stored_message(message: Message, pictures: Mapping[str, Picture]) -> Json:
    parts: list[str | dict[str, str]] = []
    for part in message.parts:
        if isinstance(part, str):
            parts.append(part)
        else:
            where = part.where
            parts.append({"image": where, "pixels": pictures[where].pixels})
    return {"role": message.role, "parts": parts}
