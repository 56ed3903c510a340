"""Prompts that are asked of one model after another: what no model changes is made once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from vrag_kit.generation.generator import all_images
from vrag_kit.generation.keys import Picture, asked_text
from vrag_kit.types import LazyImage, Prompt


class Questions:
    """Some prompts, with what their answers' keys need of them."""

    def __init__(self, prompts: Sequence[Prompt]) -> None:
        self.prompts = prompts
        self._pictures: Mapping[str, Picture] | None = None
        self._texts: list[bytes] = []

    def are(self, prompts: Sequence[Prompt]) -> bool:
        """Whether these are the very same prompts, in the same order."""
        same = len(prompts) == len(self.prompts)
        return same and all(a is b for a, b in zip(prompts, self.prompts, strict=True))

    @cached_property
    def images(self) -> list[LazyImage]:
        """Their pictures, each once."""
        return list({image.where: image for image in all_images(self.prompts)}.values())

    def texts(self, pictures: Mapping[str, Picture]) -> list[bytes]:
        """The `asked_text` of each; put together again where a picture is another one
        than before.
        """
        if self._pictures != pictures:
            self._texts = [asked_text(each, pictures) for each in self.prompts]
            self._pictures = pictures
        return self._texts
