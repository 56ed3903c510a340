"""What a model that answers must offer: the protocol `Generator`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Protocol

from vrag_kit.checkpoints import Options
from vrag_kit.types import Failure, LazyImage, Prompt

Size = tuple[int, int]
"""(width, height) of an upright picture, in pixels."""
PROBABILITY = "probability"
"""In a reply's fields: how probable the model holds these words, in [0, 1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model returned for one prompt, before it becomes an `Answer`."""

    raw: str | None
    """The model's words; None when there are none."""
    failure: Failure | None = None
    """Why there is no usable answer; None when there is one."""
    fields: Options = field(default_factory=dict)
    """Anything to note, such as the resolution that each picture was seen in."""
    tokens: Mapping[str, int] = field(default_factory=dict)
    """Token counts: prompt, completion, visual."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What asking some prompts will take, told before the first is asked."""

    calls: int
    images: int
    tokens: int
    """Of all prompts together; an estimate where the endpoint counts."""
    notes: tuple[str, ...] = ()
    """What to know before the run: the longest prompt, memory, money, and what will not
    fit.
    """
    misfits: int = 0
    """Prompts that the model cannot hold."""
    cost: float | None = None
    """About so many US dollars; None where no price is known."""
    uncounted: str = ""
    """What the cost leaves out: "pictures", or "calls" where no price is known."""
    answer_tokens: int = 0
    """Of all answers together, as long as they are expected; 0 where that is not told."""
    hours: float = 0.0
    """About so many; 0 where how long a call takes is not told."""

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

    Optional are `nests`, told after `prepare`: whether of prompts that come together and
    begin alike, such as 1-in-k's, the common beginning is read once; and `at_once`: how many
    prompts it is handed at once, whatever the batch size.
    """

    name: str
    """Appears in tables, file names and colours."""
    fingerprint: str
    """Changes whenever answers may: weights, processor, precision, endpoint."""
    batched: bool
    """Whether prompts are answered faster together; else each is handed over alone, so
    that its answer is kept at once.
    """

    concurrency: int
    """How many calls of `generate` may run at once."""
    max_cost: float | None
    """Stop when this model's calls have cost so many US dollars in this store; None for
    no such limit.
    """

    @property
    def decoding(self) -> Options:
        """How answers are decoded, as it is sent; part of an answer's key."""

    @property
    def sent(self) -> Options:
        """What else is recorded with each answer and is no part of its key: the
        endpoint, the order of parts.
        """

    @property
    def deterministic(self) -> bool:
        """True when repeating a prompt gives the same words, so that samples would be
        copies.
        """

    def forecast(self, prompts: Sequence[Prompt], sizes: Mapping[str, Size]) -> Forecast:
        """What these prompts will take; `sizes` has every picture's by its `where`.

        Asks nothing and loads no weights.
        """

    def prepare(self) -> None:
        """Get ready: load the weights, or make one call to the endpoint.

        Raises `VragError` when that fails.
        """

    def generate(self, prompts: Sequence[Prompt], *, sample: int = 0) -> list[Reply]:
        """One reply a prompt, in order.

        A prompt that fails gets a reply that says why; the others are answered all the
        same.

        Raises `VragError` when asking on makes no sense, as with a key that is no
        longer accepted.
        """

    def cost(self, tokens: Mapping[str, int]) -> float:
        """US dollars for so many tokens; 0 where nothing is paid."""

    def missing(self) -> str:
        """What this machine lacks to ask the model, such as a key; "" when nothing."""


def images_of(prompt: Prompt) -> list[LazyImage]:
    """The pictures of a prompt, in order."""
    return [part for part in _parts(prompt) if not isinstance(part, str)]


def all_images(prompts: Iterable[Prompt]) -> Iterator[LazyImage]:
    """The pictures of some prompts, in order, with repeats."""
    return chain.from_iterable(images_of(prompt) for prompt in prompts)


def text_of(prompt: Prompt) -> str:
    """The words of a prompt, in order."""
    return "".join(part for part in _parts(prompt) if isinstance(part, str))


def images_before_text(prompt: Prompt) -> Prompt:
    """The same prompt with each message's pictures before its text, both in their
    order.
    """
    messages = []
    for message in prompt:
        images = [part for part in message.parts if not isinstance(part, str)]
        texts = [part for part in message.parts if isinstance(part, str)]
        messages.append(replace(message, parts=(*images, *texts)))
    return tuple(messages)


def _parts(prompt: Prompt) -> Iterator[str | LazyImage]:
    return chain.from_iterable(message.parts for message in prompt)
