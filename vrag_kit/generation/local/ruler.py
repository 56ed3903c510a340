"""How a model will see pictures, told by its processor before any weights are loaded:
resolution, tiles, and tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import TemplateError
from PIL import Image

from vrag_kit.errors import VragError
from vrag_kit.generation.generator import Size


@dataclass(frozen=True, slots=True)
class Shown:
    """What becomes of a picture of some size."""

    width: int  # of what the model sees, or of one tile, in pixels
    height: int
    tiles: int  # 1 where a picture stays whole
    tokens: int  # that it takes in the prompt, marks around it included
    outside: int = 0  # vision tokens that the text attends to beside the prompt (Llama)

    def __iter__(self) -> Any:
        """As it is recorded: width, height, tiles, visual tokens."""
        return iter((self.width, self.height, self.tiles, self.tokens + self.outside))


class Ruler:
    """Measures prompts by passing blank pictures through the processor, one of each
    size.
    """

    def __init__(
        self, processor: Any, config: Any, budget: Mapping[str, Any], *, string_template: bool
    ) -> None:
        self._processor, self._config, self._budget, self._string = (
            processor,
            config,
            dict(budget),
            string_template,
        )
        self._shown: dict[Size, Shown] = {}
        self._lengths: dict[str, int] = {}

    def shown(self, size: Size) -> Shown:
        """What becomes of a picture of this size."""
        if size not in self._shown:
            self._shown[size] = self._measure(size)
        return self._shown[size]

    def text(self, words: str) -> int:
        """Tokens of a prompt of these words and no picture, the chat template's
        included.
        """
        if words not in self._lengths:
            self._lengths[words] = len(self._inputs([words])["input_ids"][0])
        return self._lengths[words]

    def _measure(self, size: Size) -> Shown:
        inputs = self._inputs([Image.new("RGB", size), "?"])
        tokens = len(inputs["input_ids"][0]) - self.text("?")
        images = self._processor.image_processor
        if "image_grid_thw" in inputs:
            _, rows, columns = (int(n) for n in inputs["image_grid_thw"][0])
            return Shown(columns * images.patch_size, rows * images.patch_size, 1, tokens)
        pixels = inputs.get("pixel_values", inputs.get("image_pixel_values"))
        height, width = (int(n) for n in pixels.shape[-2:])
        if "aspect_ratio_mask" in inputs:  # Llama: tiles that are attended to beside the text
            tiles, vision = int(inputs["aspect_ratio_mask"].sum()), self._config.vision_config
            return Shown(
                width,
                height,
                tiles,
                tokens,
                tiles * ((vision.image_size // vision.patch_size) ** 2 + 1),
            )
        if "image_sizes" in inputs and pixels.ndim == 4:  # Pixtral: whole, in its own shape
            height, width = (int(n) for n in inputs["image_sizes"][0])
            return Shown(width, height, 1, tokens)
        return Shown(
            width, height, int(pixels.shape[0] if pixels.ndim == 4 else pixels.shape[1]), tokens
        )

    def _inputs(self, parts: Sequence[str | Image.Image]) -> dict[str, Any]:
        return processed(
            self._processor,
            [[{"role": "user", "content": content(parts, self._processor, string=self._string)}]],
            [part for part in parts if not isinstance(part, str)],
            self._budget,
        )


def content(parts: Sequence[Any], processor: Any, *, string: bool) -> Any:
    """Parts as the chat template takes them: a list of parts, or for templates that
    know only text, a string with the processor's image token.
    """
    if string:
        return "".join(part if isinstance(part, str) else processor.image_token for part in parts)
    return [
        (
            {"type": "text", "text": part}
            if isinstance(part, str)
            else {"type": "image", "image": part}
        )
        for part in parts
    ]


def processed(
    processor: Any, conversations: Sequence[Any], pictures: Sequence[Any], budget: Mapping[str, Any]
) -> dict[str, Any]:
    """What the model takes for some conversations whose `pictures` are, in order, those
    of all of them; padded on the left.
    """
    if any(
        isinstance(message["content"], str)
        for conversation in conversations
        for message in conversation
    ):
        texts = [
            processor.apply_chat_template(conversation, add_generation_prompt=True, tokenize=False)
            for conversation in conversations
        ]
        return dict(
            processor(
                text=texts,
                images=list(pictures) or None,
                padding=True,
                return_tensors="pt",
                **budget,
            )
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


def takes_only_strings(processor: Any, owner: str) -> bool:
    """Whether the chat template cannot take a list of parts, so that a string with
    image tokens must stand in for it.

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


def _renders(processor: Any, content: Any) -> bool:
    """Whether the template makes a prompt of this content, and not one that spells out
    the parts as they are.
    """
    try:
        text = processor.apply_chat_template([{"role": "user", "content": content}], tokenize=False)
    except (
        TypeError,
        TemplateError,
    ):  # what a template raises that adds a list to a text, or finds a thing undefined
        return False
    return "'type'" not in text
