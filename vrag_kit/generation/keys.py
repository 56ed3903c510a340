"""Keys of stored answers: a hash of everything that determines an answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from vrag_kit.plain import Json, JsonView
from vrag_kit.types import Message, Prompt

StoredPrompt = list[dict[str, Any]]  # Any: what JSON holds
"""A stored prompt: messages with role and parts, images as {"image": where, "pixels": hash}."""
_JSON = json.JSONEncoder(sort_keys=True, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class ImageInfo:
    """The pixel hash and size of an image, cached to avoid decoding it again."""

    pixels: str
    """Hash of its upright RGB pixels."""
    size: tuple[int, int]
    """Width and height, upright."""


def serialize_prompt(prompt: Prompt, pictures: Mapping[str, ImageInfo]) -> StoredPrompt:
    """Return a prompt in its stored form; `pictures` has each of its images by `where`."""
    return [_stored_message(message, pictures) for message in prompt]


@dataclass(frozen=True, slots=True)
class AnswerKeys:
    """Computes the keys of one model's answers, for one sample."""

    fingerprint: str
    """The model's fingerprint."""
    decoding: JsonView
    sample: int

    def answer_ids(self, asked: Iterable[bytes]) -> list[str]:
        """Return the answer ids of prompts, given as `prompt_key_json` returns them. An id is a
        hash of the model's fingerprint, every part of the prompt in order (images by their pixels),
        the decoding and the sample.
        """
        before = f"[{_JSON.encode(self.fingerprint)}, ".encode()
        behind = f", {_JSON.encode(dict(self.decoding))}, {_JSON.encode(self.sample)}]".encode()
        return [hashlib.sha256(before + text + behind).hexdigest() for text in asked]


def prompt_key_json(prompt: Prompt, pictures: Mapping[str, ImageInfo]) -> bytes:
    """Return what determines the answer in a prompt, as JSON in UTF-8. `pictures` has each of its
    images by `where`. File names are not included: equal pixels make equal keys.
    """
    return f"[{', '.join(_asked_message(message, pictures) for message in prompt)}]".encode()


def _asked_message(message: Message, pictures: Mapping[str, ImageInfo]) -> str:
    """A message's JSON, put together by hand: there are many pictures, and all alike."""
    parts = [
        _JSON.encode(part)
        if isinstance(part, str)
        else f'{{"pixels": "{pictures[part.where].pixels}"}}'  # a hash: nothing to escape
        for part in message.parts
    ]
    return f'{{"parts": [{", ".join(parts)}], "role": {_JSON.encode(message.role)}}}'


def _stored_message(message: Message, pictures: Mapping[str, ImageInfo]) -> Json:
    parts: list[str | dict[str, str]] = []
    for part in message.parts:
        if isinstance(part, str):
            parts.append(part)
        else:
            where = part.where
            parts.append({"image": where, "pixels": pictures[where].pixels})
    return {"role": message.role, "parts": parts}
