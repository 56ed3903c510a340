"""`TokenCounter`: measures texts and images by the processor, before weights are loaded. It
determines resolution, tiles and tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from jinja2 import TemplateError
from PIL import Image

from vrag_kit.checkpoints import LibraryObject, Options
from vrag_kit.errors import VragError
from vrag_kit.generation.generator import Size

Inputs = dict[str, Any]  # Any: tensors, and what else a family's forward takes
ChatMessage = dict[str, Any]  # Any: as chat templates take messages and their parts


@dataclass(frozen=True, slots=True)
class ImageTokens:
    """How the model sees an image of some size: resolution, tiles and tokens."""

    width: int  # of what the model sees, or of one tile, in pixels
    height: int
    tiles: int  # 1 where a picture stays whole
    tokens: int  # that it takes in the prompt, marks around it included
    outside: int = 0  # vision tokens that the text attends to beside the prompt (Llama)

    def __iter__(self) -> Iterator[int]:
        """Iterate over what is recorded: width, height, tiles, visual tokens."""
        return iter((self.width, self.height, self.tiles, self.tokens + self.outside))


class TokenCounter:
    """Counts tokens by passing blank images through the processor, one of each size."""

    def __init__(
        self,
        processor: LibraryObject,
        config: LibraryObject,
        budget: Options,
        *,
        string_template: bool,
    ) -> None:
        self._processor = processor
        self._config = config
        self._budget = dict(budget)
        self._string = string_template
        self._shown: dict[Size, ImageTokens] = {}
        self._lengths: dict[str, int] = {}

    def count_image_tokens(self, size: Size) -> ImageTokens:
        """Return the resolution, tiles and tokens of an image of this size."""
        if size not in self._shown:
            self._shown[size] = self._measure(size)
        return self._shown[size]

    def count_text_tokens(self, words: str) -> int:
        """Count the tokens of a prompt with this text and no image, and the chat template's."""
        if words not in self._lengths:
            self._lengths[words] = len(self._inputs([words])["input_ids"][0])
        return self._lengths[words]

    def _measure(self, size: Size) -> ImageTokens:
        inputs = self._inputs([Image.new("RGB", size), "?"])
        tokens = len(inputs["input_ids"][0]) - self.count_text_tokens("?")
        images = self._processor.image_processor
        if "image_grid_thw" in inputs:
            rows, columns = (int(n) for n in inputs["image_grid_thw"][0][1:])
            return ImageTokens(columns * images.patch_size, rows * images.patch_size, 1, tokens)
        pixels = inputs["pixel_values" if "pixel_values" in inputs else "image_pixel_values"]
        height, width = (int(n) for n in pixels.shape[-2:])
        if "aspect_ratio_mask" in inputs:  # Llama: tiles that are attended to beside the text
            tiles = int(inputs["aspect_ratio_mask"].sum())
            vision = self._config.vision_config
            a_tile = (vision.image_size // vision.patch_size) ** 2 + 1
            return ImageTokens(width, height, tiles, tokens, tiles * a_tile)
        if "image_sizes" in inputs and pixels.ndim == 4:  # Pixtral: whole, in its own shape
            height, width = (int(n) for n in inputs["image_sizes"][0])
            return ImageTokens(width, height, 1, tokens)
        tiles = int(pixels.shape[0] if pixels.ndim == 4 else pixels.shape[1])
        return ImageTokens(width, height, tiles, tokens)

    def _inputs(self, parts: Sequence[str | Image.Image]) -> Inputs:
        shown = chat_content(parts, self._processor, string=self._string)
        conversation = [{"role": "user", "content": shown}]
        pictures = [part for part in parts if not isinstance(part, str)]
        return process_batch(self._processor, [conversation], pictures, self._budget)


def chat_content(
    parts: Sequence[object], processor: LibraryObject, *, string: bool
) -> str | list[ChatMessage]:
    """Return parts as the chat template takes them: a list of parts or, for templates that accept
    only text, a string with the processor's image token.
    """
    if string:
        token = processor.image_token
        return "".join(part if isinstance(part, str) else token for part in parts)
    return [_part(part) for part in parts]


def process_batch(
    processor: LibraryObject,
    conversations: Sequence[list[ChatMessage]],
    pictures: Sequence[object],
    budget: Options,
) -> Inputs:
    """Return the model's inputs for some conversations, padded on the left. `pictures` are the
    images of all of them, in order.
    """
    messages = chain.from_iterable(conversations)
    if any(isinstance(message["content"], str) for message in messages):
        texts = [
            processor.apply_chat_template(conversation, add_generation_prompt=True, tokenize=False)
            for conversation in conversations
        ]
        images = list(pictures) or None
        return dict(
            processor(text=texts, images=images, padding=True, return_tensors="pt", **budget)
        )
    return dict(
        processor.apply_chat_template(
            conversations,
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            processor_kwargs={"padding": True, **budget},
        )
    )


def _part(part: object) -> ChatMessage:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "image", "image": part}


def takes_only_strings(processor: LibraryObject, owner: str) -> bool:
    """Return whether the chat template takes only a string with image tokens, no list.

    Raises `VragError`, naming `owner`, for a template that takes neither.
    """
    if _renders(processor, [{"type": "text", "text": "?"}, {"type": "image"}]):
        return False
    if getattr(processor, "image_token", None) and _renders(processor, f"?{processor.image_token}"):
        return True
    raise VragError(
        f"{owner}: its chat template takes neither a list of parts nor a string with image tokens."
        " Look at chat_template.jinja, or fetch the checkpoint again."
    )


def _renders(processor: LibraryObject, content: str | list[ChatMessage]) -> bool:
    """Whether the template makes a prompt of this content, and not one that spells out
    the parts as they are.
    """
    try:
        text = processor.apply_chat_template([{"role": "user", "content": content}], tokenize=False)
    except (TypeError, TemplateError):
        return False  # a template that adds a list to a text, or finds a thing undefined
    return "'type'" not in text
