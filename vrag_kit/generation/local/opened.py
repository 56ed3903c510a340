"""A checkpoint with its processor: prompts measured and laid out without weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PIL import Image

from vrag_kit.benchmarks.images import shrunk
from vrag_kit.checkpoints import Made
from vrag_kit.generation.generator import Forecast, Size, images_of, text_of
from vrag_kit.generation.local.checkpoint import Checkpoint
from vrag_kit.generation.local.families import budget_of
from vrag_kit.generation.local.memory import memory_note, weight_bytes
from vrag_kit.generation.local.ruler import (
    ChatMessage,
    Ruler,
    Shown,
    content,
    takes_only_strings,
)
from vrag_kit.generation.local.vision import Seen
from vrag_kit.generation.local.weights import read_processor
from vrag_kit.types import LazyImage, Prompt

Pictures = dict[str, Image.Image | Seen]
"""Key → a decoded picture, or what was seen of it before."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One prompt of a batch."""

    number: int
    """Its place among the prompts."""
    conversation: list[ChatMessage]
    images: list[str]
    """Keys of its pictures, in order."""
    shown: list[Shown]
    """How it sees each."""

    def tokens(self, prompt: int) -> dict[str, int]:
        """Token counts, of which `prompt` are the prompt's."""
        if not self.shown:
            return {"prompt": prompt}
        visual = sum(shown.tokens + shown.outside for shown in self.shown)
        return {"prompt": prompt, "visual": visual}

    def fields(self) -> dict[str, list[list[int]]]:
        """Of each picture: width and height seen (of a tile), tiles, visual tokens."""
        return {"images": [list(shown) for shown in self.shown]} if self.shown else {}


class Opened:
    """Config and processor of a checkpoint."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Raises `VragError` for a checkpoint that cannot be read."""
        self.checkpoint = checkpoint
        self.config, self.processor = read_processor(checkpoint)
        self.processor.tokenizer.padding_side = "left"
        self.budget = budget_of(checkpoint.family, self.processor, checkpoint.max_image_tokens)
        self.string = takes_only_strings(self.processor, checkpoint.owner)
        self.ruler = Ruler(self.processor, self.config, self.budget, string_template=self.string)
        text = self.config.get_text_config()
        self.context = int(getattr(text, "max_position_embeddings", None) or 1 << 30)
        """Tokens of prompt and answer together that the model can hold."""
        self.near = _near(text)
        """Longest prompt whose positions are told finely; in a batch with a longer one they
        are told coarsely, too.
        """
        self.image_token = _image_token(self.config)
        """Id of the token that stands for pictures; None where the config names none."""
        special = {getattr(self.processor, "image_token", None)}
        special.update(self.processor.tokenizer.all_special_tokens)
        self._control: list[str] = sorted(token for token in special if token)

    def weight_bytes(self) -> int:
        """Bytes that the weights will take."""
        loading = self.checkpoint.loading
        return weight_bytes(
            self.checkpoint.folder,
            self.config,
            dtype=loading.dtype,
            quantization=loading.quantization,
        )

    def control_token(self, prompt: Prompt) -> str | None:
        """The first control token of the model that the words of a prompt hold."""
        words = text_of(prompt)
        return next((token for token in self._control if token in words), None)

    def asked(self, number: int, prompt: Prompt, pictures: Pictures) -> Asked:
        """A prompt as the chat template takes it, with what becomes of its pictures."""
        keys = [key_of(part) for part in images_of(prompt)]
        left = iter(keys)
        conversation = []
        for message in prompt:
            parts = [
                part if isinstance(part, str) else pictures[next(left)] for part in message.parts
            ]
            shown = content(parts, self.processor, string=self.string)
            conversation.append({"role": message.role, "content": shown})
        return Asked(number, conversation, keys, [self.ruler.shown(pictures[k].size) for k in keys])

    def forecast(
        self, prompts: Sequence[Prompt], sizes: Mapping[str, Size], longest_answer: int
    ) -> Forecast:
        """Prompts measured exactly, by the processor; which of them the model cannot
        hold; and what must fit into memory.
        """
        images = [len(images_of(prompt)) for prompt in prompts]
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
        return Forecast(
            calls=len(prompts),
            images=sum(images),
            tokens=sum(lengths),
            notes=tuple(notes),
            misfits=len(misfits),
        )

    def _length(self, prompt: Prompt, sizes: Mapping[str, Size]) -> int:
        """Tokens of a prompt."""
        side = self.checkpoint.max_image_side
        shown = [self.ruler.shown(shrunk(sizes[each.where], side)) for each in images_of(prompt)]
        return self.ruler.text(text_of(prompt)) + sum(each.tokens for each in shown)


def key_of(image: LazyImage) -> str:
    """What a picture is remembered under: where it lies, and its state."""
    return f"{image.where} {image.stamp}"


def _near(text: Made) -> int:
    """Tokens up to which a model of two ways to tell positions takes the first, by the
    config of its text part; endless where it has one way.
    """
    rope = getattr(text, "rope_parameters", None) or {}
    if rope.get("rope_type") != "longrope":
        return 1 << 30
    return int(rope["original_max_position_embeddings"])


def _image_token(config: Made) -> int | None:
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
