"""`Generator`: the protocol of a model that answers prompts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Protocol

from vrag_kit.checkpoints import Options
from vrag_kit.types import Failure, LazyImage, Prompt

Size = tuple[int, int]
"""(width, height) of an upright image, in pixels."""
PROBABILITY = "probability"
"""Field of a reply: the model's probability of its own text, in [0, 1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's reply to one prompt, before it becomes an `Answer`."""

    raw: str | None
    """The generated text; None when there is none."""
    failure: Failure | None = None
    """Why there is no usable answer; None when there is one."""
    fields: Options = field(default_factory=dict)
    """Further data to store, such as the resolution at which each image was seen."""
    tokens: Mapping[str, int] = field(default_factory=dict)
    """Token counts: prompt, completion, visual."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEstimate:
    """The estimated cost of asking some prompts, computed before the first call."""

    calls: int
    images: int
    tokens: int
    """Tokens of all prompts; an estimate if the endpoint counts them."""
    notes: tuple[str, ...] = ()
    """Notes to read before the run: the longest prompt, memory, money, and prompts that do not fit.
    """
    misfits: int = 0
    """Prompts that do not fit into the model's context."""
    cost: float | None = None
    """Estimated US dollars; None if no price is known."""
    uncounted: str = ""
    """What the cost leaves out: "pictures", or "calls" where no price is known."""
    answer_tokens: int = 0
    """Expected tokens of all answers; 0 if there is no estimate."""
    hours: float = 0.0
    """Estimated hours; 0 if the duration of a call is not known."""

    def __str__(self) -> str:
        answers = f" and {self.answer_tokens:,} of answers" if self.answer_tokens else ""
        return "\n  ".join(
            [
                (
                    f"forecast: {self.calls:,} calls, {self.images:,} images, about {self.tokens:,}"
                    f" tokens of prompt{answers}"
                ),
                *self.notes,
            ]
        )


class Generator(Protocol):
    """A multimodal model that answers prompts.

    Optional are `nests`, valid after `prepare`: whether the shared prefix of prompts in one call,
    such as those of 1-in-k, is computed once; and `at_once`: how many prompts a call gets, whatever
    the batch size.
    """

    name: str
    """The name in tables, file names and colours."""
    fingerprint: str
    """Changes whenever answers may change: weights, processor, precision, endpoint."""
    batched: bool
    """Whether prompts are answered faster in batches; otherwise each is passed alone, so that its
    answer is stored at once.
    """

    concurrency: int
    """How many calls of `generate` may run at once."""
    max_cost: float | None
    """US dollars of this model's calls in one store at which asking stops; None for no limit."""

    @property
    def decoding(self) -> Options:
        """Decoding parameters as they are sent; part of an answer's key."""

    @property
    def sent(self) -> Options:
        """Other data recorded with each answer and not part of its key: the endpoint, the order of
        parts.
        """

    @property
    def deterministic(self) -> bool:
        """Whether a repeated prompt gives the same text, so that samples would be copies."""

    def forecast(self, prompts: Sequence[Prompt], sizes: Mapping[str, Size]) -> CostEstimate:
        """Estimate the cost of prompts; `sizes` has the size of every image by its `where`.

        Sends no request and loads no weights.
        """

    def prepare(self) -> None:
        """Prepare for the first prompt: load the weights, or make one call to the endpoint.

        Raises `VragError` when that fails.
        """

    def generate(self, prompts: Sequence[Prompt], *, sample: int = 0) -> list[Reply]:
        """Return one reply per prompt, in order.

        A prompt that fails gets a reply with a failure; the others are answered all the same.

        Raises `VragError` when further calls cannot succeed, as with a key that is no longer
        accepted.
        """

    def cost(self, tokens: Mapping[str, int]) -> float:
        """Return the cost of these tokens in US dollars; 0 if nothing is paid."""

    def missing(self) -> str:
        """Return what this machine lacks to query the model, such as a key; "" if nothing."""


def prompt_images(prompt: Prompt) -> list[LazyImage]:
    """Return the images of a prompt, in order."""
    return [part for part in _parts(prompt) if not isinstance(part, str)]


def iter_images(prompts: Iterable[Prompt]) -> Iterator[LazyImage]:
    """Iterate over the images of some prompts, in order, with repeats."""
    return chain.from_iterable(prompt_images(prompt) for prompt in prompts)


def prompt_text(prompt: Prompt) -> str:
    """Return the text parts of a prompt, joined in order."""
    return "".join(part for part in _parts(prompt) if isinstance(part, str))


def images_before_text(prompt: Prompt) -> Prompt:
    """Return the prompt with each message's images before its text, both in their order."""
    messages = []
    for message in prompt:
        images = [part for part in message.parts if not isinstance(part, str)]
        texts = [part for part in message.parts if isinstance(part, str)]
        messages.append(replace(message, parts=(*images, *texts)))
    return tuple(messages)


def _parts(prompt: Prompt) -> Iterator[str | LazyImage]:
    return chain.from_iterable(message.parts for message in prompt)
