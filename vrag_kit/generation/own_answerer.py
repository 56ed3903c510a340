"""A model of one's own that answers, with all that the kit wants of one."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from vrag_kit.checkpoints import Options
from vrag_kit.errors import VragError, short
from vrag_kit.generation.generator import Forecast, Reply, Size, all_images, text_of
from vrag_kit.options import Entry
from vrag_kit.own_classes import Own, open_own, own_code
from vrag_kit.plain import JsonView
from vrag_kit.types import Failure, Prompt, Status

_OURS = ("max_images",)
"""The option of an entry that counts for every model; see `ask_models`."""
_LETTERS = 4
"""Of a token, about."""
_FAILED = 'Reply(raw=None, failure=Failure(Status.ERROR, "why"))'
"""How a class says that a call failed."""
_SILENT = Failure(Status.EMPTY, "the model ended without a word")


class AnswererClass(Protocol):
    """What a class must have whose objects answer.

    Optional are `name`, `fingerprint`, `batched` (true: prompts come several at once;
    false unless it says so), `deterministic` (false: samples of one prompt differ, and
    where `generate` has a parameter `sample`, it is told which this is; true unless it
    says so), and `missing()`: what this machine lacks to ask it, "" for nothing.
    """

    def generate(self, prompts: Sequence[Prompt]) -> Sequence[str | Reply]:
        """For each prompt its words, or a `Reply`, which can say that a call failed.

        Words that are none, "", are an answer, and a bad one.
        """


class OwnAnswerer:
    """Fits an object of somebody's own class to `Generator`."""

    def __init__(self, own: Own) -> None:
        """`own` has the method of `AnswererClass`."""
        self._made = own.made
        self._counts_samples = "sample" in inspect.signature(own.made.generate).parameters
        self.name = own.name
        self.fingerprint = own.fingerprint
        self.batched = bool(getattr(own.made, "batched", False))
        self.concurrency = 1
        self.max_cost: float | None = None
        self.decoding: Options = {}
        self.sent: Options = {}
        self.deterministic = bool(getattr(own.made, "deterministic", True))

    def forecast(self, prompts: Sequence[Prompt], sizes: Mapping[str, Size]) -> Forecast:
        """Calls and pictures; tokens by the letters of the text alone."""
        letters = sum(len(text_of(prompt)) for prompt in prompts)
        images = sum(1 for _ in all_images(prompts))
        return Forecast(calls=len(prompts), images=images, tokens=letters // _LETTERS)

    def prepare(self) -> None:
        """Nothing: its class gets ready when it is first asked."""

    def generate(self, prompts: Sequence[Prompt], *, sample: int = 0) -> list[Reply]:
        """One reply a prompt; raises `VragError` for another number, for what is neither
        a text nor a `Reply`, and for what its class raises.
        """
        told = {"sample": sample} if self._counts_samples else {}
        hint = f" To record a failed call and go on, return {_FAILED}."
        with own_code(f"model {self.name}: generate", self._made, hint=hint):
            found = self._made.generate(prompts, **told)
            replies = [] if isinstance(found, str | bytes | Mapping) else list(found)
        if len(replies) != len(prompts):
            raise VragError(
                f"model {self.name}: generate returned {short(found)} for {len(prompts)} prompts;"
                " expected a list with a reply for each, in order."
            )
        return [self._reply(each) for each in replies]

    def cost(self, tokens: Mapping[str, int]) -> float:
        """Not known: 0."""
        return 0.0

    def missing(self) -> str:
        """As its class says; "" where it says nothing."""
        missing = getattr(self._made, "missing", None)
        return "" if missing is None else str(missing())

    def _reply(self, found: object) -> Reply:
        reply = Reply(raw=found) if isinstance(found, str) else found
        if isinstance(reply, Reply):
            silent = reply.failure is None and not (reply.raw or "").strip()
            return replace(reply, failure=_SILENT) if silent else reply
        raise VragError(
            f"model {self.name}: generate returned {found!r} for a prompt; expected a text, or"
            f" {_FAILED}, of vrag_kit.generation, where a call failed."
        )


def own_answerer(entry: Entry | AnswererClass, how: JsonView) -> OwnAnswerer | None:
    """The model of an entry that names one's own class, or of an object; None for a
    checkpoint's or endpoint's. Of `how` (device, decoding, max_new_tokens) the class is
    given what it has parameters for. Raises as `open_own`.
    """
    own = open_own(entry, "model", ("generate",), ours=_OURS, offered=how)
    return None if own is None else OwnAnswerer(own.to_keep("model"))
