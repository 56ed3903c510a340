"""`PromptProcessor`: counts the tokens of prompts and prepares them for a model. It uses the
checkpoint's own processor, and needs no weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from jinja2 import TemplateError
from PIL import Image

from vrag_kit.benchmarks.images import shrunk_size
from vrag_kit.checkpoints import LibraryObject, Options
from vrag_kit.errors import VragError
from vrag_kit.generation.generators import Size, images_before_text, prompt_images, prompt_text
from vrag_kit.generation.local.loading import Checkpoint, load_processor
from vrag_kit.types import LazyImage, Prompt

if TYPE_CHECKING:
    from vrag_kit.generation.local.vision_cache import ImageFeatures

Inputs = dict[str, Any]  # Any: tensors, and what else a family's forward takes
_UNLIMITED = 1 << 30


@dataclass(slots=True)
class PromptImage:
    """An image of the prompts that are generated together."""

    key: str
    """Equal keys are equal images."""
    content: Image.Image | ImageFeatures
    """Its pixels, or its vision features once they are computed."""


@dataclass(frozen=True, slots=True)
class PromptInput:
    """One prompt of a batch, ready for the processor."""

    number: int
    """Its index among the prompts."""
    text: str
    """The whole prompt, as the chat template renders it."""
    images: list[PromptImage]


class PromptProcessor:
    """The processor and config of a checkpoint."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Load both; raises `VragError` for a checkpoint that cannot be read."""
        self.checkpoint = checkpoint
        self.config, self.processor = load_processor(checkpoint)
        self.processor.tokenizer.padding_side = "left"
        self.budget: Options = {}
        tokens = checkpoint.options.max_image_tokens
        if tokens is not None and checkpoint.family.budget:
            self.budget = checkpoint.family.budget(self.processor, tokens)
        """Options of the image processor that limit the tokens of an image."""
        self._takes_list = self._template_takes_list()
        text = self.config.get_text_config()
        self.context = int(getattr(text, "max_position_embeddings", None) or _UNLIMITED)
        """Maximum number of tokens of prompt and answer together."""
        rope = getattr(text, "rope_parameters", None) or {}
        self.short_context = _UNLIMITED
        if rope.get("rope_type") == "longrope":
            self.short_context = int(rope["original_max_position_embeddings"])
        """Longest prompt with the short position scaling of LongRoPE; in a batch with a longer one
        it would have the long scaling, too.
        """
        self.image_token = _image_token(self.config)
        """Id of the token that stands for images; None if the config names none."""
        special = {getattr(self.processor, "image_token", None)}
        special.update(self.processor.tokenizer.all_special_tokens)
        self._control_tokens: list[str] = sorted(filter(None, special))
        self.image_tokens = cache(self._measure_image)
        """Size of an image → its tokens in a prompt, with the marks around it."""
        self.text_tokens = cache(self._measure_text)
        """Text → tokens of a prompt with this text and no image."""

    def control_token(self, prompt: Prompt) -> str | None:
        """Return a control token of the model that the prompt's text holds; None if none."""
        text = prompt_text(prompt)
        return next((token for token in self._control_tokens if token in text), None)

    def count_tokens(self, prompt: Prompt, sizes: Mapping[str, Size]) -> int:
        """Return the tokens of a prompt; `sizes` has the size of every image by its `where`."""
        side = self.checkpoint.options.max_image_side
        shown = [shrunk_size(sizes[image.where], side) for image in prompt_images(prompt)]
        return self.text_tokens(prompt_text(prompt)) + sum(map(self.image_tokens, shown))

    def prompt_input(
        self, number: int, prompt: Prompt, images: Mapping[str, PromptImage]
    ) -> PromptInput:
        """Render a prompt, whose images `images` has by `image_key`."""
        if self.checkpoint.family.images_first:
            prompt = images_before_text(prompt)
        shown = [images[image_key(image)] for image in prompt_images(prompt)]
        text = self.render([(message.role, message.parts) for message in prompt])
        return PromptInput(number, text, shown)

    def render(self, messages: Sequence[tuple[str, Sequence[object]]]) -> str:
        """Return messages (role, parts) as the chat template renders them; a part that is no text
        is an image, and gets a placeholder.
        """
        conversation = [{"role": role, "content": self._content(parts)} for role, parts in messages]
        template = self.processor.apply_chat_template
        return str(template(conversation, add_generation_prompt=True, tokenize=False))

    def inputs(
        self, batch: Sequence[PromptInput], features: Sequence[ImageFeatures] = ()
    ) -> Inputs:
        """Return the model's inputs for a batch, padded on the left. With the `features` of all its
        images, the inputs have their placeholder tokens and no pixels.
        """
        texts = [prompt.text for prompt in batch]
        tokenizer = self.processor.tokenizer
        options: dict[str, Any] = {"padding": True, "return_tensors": "pt"}
        if tokenizer.bos_token and texts[0].startswith(tokenizer.bos_token):
            options["add_special_tokens"] = False  # the template has them
        if features:
            marks = [each.placeholder for each in features]
            texts, _ = self.processor.get_text_with_replacements(texts, images_replacements=marks)
            return dict(tokenizer(texts, **options))
        pixels = [[image.content for image in prompt.images] for prompt in batch]
        images = pixels if any(pixels) else None
        return dict(self.processor(text=texts, images=images, **options, **self.budget))

    def _content(self, parts: Sequence[object]) -> str | list[dict[str, str]]:
        """The parts of a message as a list or, for templates that take only text, as a text with
        image tokens.
        """
        if not self._takes_list:
            token = self.processor.image_token
            return "".join(part if isinstance(part, str) else token for part in parts)
        return [
            {"type": "text", "text": part} if isinstance(part, str) else {"type": "image"}
            for part in parts
        ]

    def _template_takes_list(self) -> bool:
        """Whether the chat template takes a list of parts; raises `VragError` for one that takes
        neither such a list nor a text with image tokens.
        """
        for takes_list in (True, False):
            self._takes_list = takes_list
            try:
                text = self.render([("user", ["?", object()])])
            except (TypeError, AttributeError, TemplateError):
                continue  # a template that adds a list to a text, or lacks a variable
            if "'type'" not in text:  # else the list was printed
                return takes_list
        words = "its chat template takes neither a list of parts nor a string with image tokens"
        raise VragError(f"{self.checkpoint.owner}: {words}.")

    def _measure_text(self, text: str) -> int:
        rendered = self.render([("user", [text])])
        return len(self.inputs([PromptInput(0, rendered, [])])["input_ids"][0])

    def _measure_image(self, size: Size) -> int:
        """Pass a blank image through the processor: transformers' own count
        (`_get_num_multimodal_tokens`) lacks the marks around an image, and some families.
        """
        image = PromptImage("", Image.new("RGB", size))
        rendered = self.render([("user", [image, "?"])])
        inputs = self.inputs([PromptInput(0, rendered, [image])])
        return len(inputs["input_ids"][0]) - self.text_tokens("?")


def image_key(image: LazyImage) -> str:
    """Return the key of an image: its `where` and `stamp`."""
    return f"{image.where} {image.stamp}"


def _image_token(config: LibraryObject) -> int | None:
    """The token by the config, or by its vision part (Phi-4)."""
    for part in (config, getattr(config, "vision_config", None)):
        if (token := getattr(part, "image_token_id", None)) is not None:
            return int(token)
    return None
