"""A prompt of the papers as a lesson's words: "<image>" stands where a picture does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image

    from vrag_kit.types import Message


@dataclass(frozen=True, slots=True)
class _Placeholder:
    """Stands for a picture in a prompt; nobody opens it."""

    where: str = "a picture of the stock"
    stamp: str = ""

    def data(self) -> bytes:
        raise NotImplementedError

    def open(self) -> Image.Image:
        raise NotImplementedError


PICTURE = _Placeholder()
"""Any picture of a stock: lessons hold its number instead."""


def in_words(message: Message) -> str:
    """What a message says, with "<image>" for each of its pictures."""
    return "".join(part if isinstance(part, str) else "<image>" for part in message.parts)
