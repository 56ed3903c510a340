"""`PromptProcessor`: measures and prepares prompts for a checkpoint, without its weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PIL import Image

from vrag_kit.benchmarks.images import shrunk_size
from vrag_kit.checkpoints import LibraryObject
from vrag_kit.generation.generator import CostEstimate, Size, prompt_images, prompt_text
from vrag_kit.generation.local.checkpoint import Checkpoint
from vrag_kit.generation.local.families import image_budget_options
from vrag_kit.generation.local.memory import memory_note, weight_bytes
from vrag_kit.generation.local.token_counter import (
    ChatMessage,
    ImageTokens,
    TokenCounter,
    chat_content,
    takes_only_strings,
)
from vrag_kit.generation.local.vision_cache import ImageFeatures
from vrag_kit.generation.local.weights import load_processor
from vrag_kit.types import LazyImage, Prompt

Pictures = dict[str, Image.Image | ImageFeatures]
"""Key → a decoded image, or its cached features."""


@dataclass(frozen=True, slots=True)
class PromptInput:
    """One prompt of a batch, as the chat template takes it."""

    number: int
    """Its index among the prompts."""
    conversation: list[ChatMessage]
    images: list[str]
    """Keys of its images, in order."""
    shown: list[ImageTokens]
    """How the model sees each image."""

    def tokens(self, prompt: int) -> dict[str, int]:
        """Return the token counts, given the number of the prompt's tokens."""
        if not self.shown:
            return {"prompt": prompt}
        visual = sum(shown.tokens + shown.outside for shown in self.shown)
        return {"prompt": prompt, "visual": visual}

    def fields(self) -> dict[str, list[list[int]]]:
        """Return for each image: width and height seen (of a tile), tiles, visual tokens."""
        return {"images": [list(shown) for shown in self.shown]} if self.shown else {}


class PromptProcessor:
    """The config and processor of a checkpoint."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Load both; raises `VragError` for a checkpoint that cannot be read."""
        self.checkpoint = checkpoint
        self.config, self.processor = load_processor(checkpoint)
        self.processor.tokenizer.padding_side = "left"
        self.budget = image_budget_options(
            checkpoint.family, self.processor, checkpoint.max_image_tokens
        )
        self.string = takes_only_strings(self.processor, checkpoint.owner)
        self.ruler = TokenCounter(
            self.processor, self.config, self.budget, string_template=self.string
        )
        text = self.config.get_text_config()
        self.context = int(getattr(text, "max_position_embeddings", None) or 1 << 30)
        """Maximum number of tokens of prompt and answer together."""
        self.near = _near(text)
        """Longest prompt with the short position scaling of LongRoPE; in a batch with a longer one
        it has the long scaling, too.
        """
        self.image_token = _image_token(self.config)
        """Id of the token that stands for images; None if the config names none."""
        special = {getattr(self.processor, "image_token", None)}
        special.update(self.processor.tokenizer.all_special_tokens)
        self._control: list[str] = sorted(token for token in special if token)

    def weight_bytes(self) -> int:
        """Estimate the bytes of the weights."""
        loading = self.checkpoint.loading
        return weight_bytes(
            self.checkpoint.folder,
            self.config,
            dtype=loading.dtype,
            quantization=loading.quantization,
        )

    def control_token(self, prompt: Prompt) -> str | None:
        """Return a control token of the model that the prompt's text holds; None if none."""
        words = prompt_text(prompt)
        return next((token for token in self._control if token in words), None)

    def asked(self, number: int, prompt: Prompt, pictures: Pictures) -> PromptInput:
        """Prepare a prompt for the chat template, and measure its images."""
        keys = [image_key(part) for part in prompt_images(prompt)]
        left = iter(keys)
        conversation = []
        for message in prompt:
            parts = [
                part if isinstance(part, str) else pictures[next(left)] for part in message.parts
            ]
            shown = chat_content(parts, self.processor, string=self.string)
            conversation.append({"role": message.role, "content": shown})
        return PromptInput(
            number,
            conversation,
            keys,
            [self.ruler.count_image_tokens(pictures[k].size) for k in keys],
        )

    def forecast(
        self, prompts: Sequence[Prompt], sizes: Mapping[str, Size], longest_answer: int
    ) -> CostEstimate:
        """Measure prompts exactly, by the processor; report those that do not fit, and the memory
        needed.
        """
        images = [len(prompt_images(prompt)) for prompt in prompts]
        lengths = [self._length(prompt, sizes) for prompt in prompts]
        longest = max(range(len(prompts)), key=lengths.__getitem__)
        count = f"{images[longest]} image" if images[longest] == 1 else f"{images[longest]} images"
        notes = [
            f"the longest prompt, with {count}, takes {lengths[longest]:,} tokens; the model holds"
            f" {self.context:,}"
        ]
        device = self.checkpoint.loading.device
        most = lengths[longest] + longest_answer
        if note := memory_note(self.config, self.weight_bytes(), most, device):
            notes.append(note)
        room = self.context - longest_answer
        misfits = [n for n, length in zip(images, lengths, strict=True) if length > room]
        if misfits:
            notes.append(_misfit_note(misfits))
        return CostEstimate(
            calls=len(prompts),
            images=sum(images),
            tokens=sum(lengths),
            notes=tuple(notes),
            misfits=len(misfits),
        )

    def _length(self, prompt: Prompt, sizes: Mapping[str, Size]) -> int:
        """Tokens of a prompt."""
        side = self.checkpoint.max_image_side
        shown = [
            self.ruler.count_image_tokens(shrunk_size(sizes[each.where], side))
            for each in prompt_images(prompt)
        ]
        return self.ruler.count_text_tokens(prompt_text(prompt)) + sum(
            each.tokens for each in shown
        )


def image_key(image: LazyImage) -> str:
    """Return the cache key of an image: its `where` and `stamp`."""
    return f"{image.where} {image.stamp}"


def _near(text: LibraryObject) -> int:
    """Tokens up to which a model of two ways to tell positions takes the first, by the
    config of its text part; endless where it has one way.
    """
    rope = getattr(text, "rope_parameters", None) or {}
    if rope.get("rope_type") != "longrope":
        return 1 << 30
    return int(rope["original_max_position_embeddings"])


def _image_token(config: LibraryObject) -> int | None:
    """The token by the config, or by its part of vision (Phi-4)."""
    for part in (config, getattr(config, "vision_config", None)):
        if (token := getattr(part, "image_token_id", None)) is not None:
            return int(token)
    return None


def _misfit_note(misfits: Sequence[int]) -> str:
    """What to do about prompts that do not fit, of so many images."""
    advice = "take a model with a longer context"
    if min(misfits):
        advice = "set max_image_tokens or max_image_side lower, or max_images, in the model's entry"
    return (
        f"{len(misfits):,} prompts do not fit, from {min(misfits)} images on: they will fail as"
        f' "too long"; {advice}'
    )
