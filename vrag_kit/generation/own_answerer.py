"""Custom models: adapt a user's class that answers prompts to `Generator`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from vrag_kit.checkpoints import Options
from vrag_kit.errors import VragError, short_repr
from vrag_kit.generation.generator import CostEstimate, Reply, Size, iter_images, prompt_text
from vrag_kit.options import Entry
from vrag_kit.own_classes import CustomObject, catch_custom_errors, load_custom
from vrag_kit.plain import JsonView
from vrag_kit.types import Failure, Prompt, Status

_OURS = ("max_images",)
"""The option of an entry that counts for every model; see `ask_models`."""
_LETTERS = 4
"""Of a token, about."""
_FAILED = 'Reply(raw=None, failure=Failure(Status.ERROR, "why"))'
"""How a class says that a call failed."""
_SILENT = Failure(Status.EMPTY, "the model ended without a word")


class CustomGenerator(Protocol):
    """The protocol of a custom class that answers prompts.

    Optional are `name`, `fingerprint`, `batched` (true: `generate` gets several prompts at once;
    false by default), `deterministic` (false: samples of one prompt differ, and a parameter
    `sample` of `generate` gets the sample's number; true by default), and `missing()`: what this
    machine lacks to query it, "" for nothing.
    """

    def generate(self, prompts: Sequence[Prompt]) -> Sequence[str | Reply]:
        """Return a text for each prompt, or a `Reply`, which can record a failed call.

        An empty text, "", counts as an incorrect answer.
        """


class CustomGeneratorAdapter:
    """Adapts an object of a custom class to `Generator`."""

    def __init__(self, own: CustomObject) -> None:
        """Wrap `own`, which has the method of `CustomGenerator`."""
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

    def forecast(self, prompts: Sequence[Prompt], sizes: Mapping[str, Size]) -> CostEstimate:
        """Count calls and images; estimate tokens from the length of the text alone."""
        letters = sum(len(prompt_text(prompt)) for prompt in prompts)
        images = sum(1 for _ in iter_images(prompts))
        return CostEstimate(calls=len(prompts), images=images, tokens=letters // _LETTERS)

    def prepare(self) -> None:
        """Do nothing: a custom class prepares itself on its first call."""

    def generate(self, prompts: Sequence[Prompt], *, sample: int = 0) -> list[Reply]:
        """Return one reply per prompt. Raises `VragError` for a wrong number of replies, for a
        reply that is neither a text nor a `Reply`, and for an error of the custom class.
        """
        told = {"sample": sample} if self._counts_samples else {}
        hint = f" To record a failed call and go on, return {_FAILED}."
        with catch_custom_errors(f"model {self.name}: generate", self._made, hint=hint):
            found = self._made.generate(prompts, **told)
            replies = [] if isinstance(found, str | bytes | Mapping) else list(found)
        if len(replies) != len(prompts):
            raise VragError(
                f"model {self.name}: generate returned {short_repr(found)} for {len(prompts)}"
                " prompts;"
                " expected a list with a reply for each, in order."
            )
        return [self._reply(each) for each in replies]

    def cost(self, tokens: Mapping[str, int]) -> float:
        """Return 0: the cost is not known."""
        return 0.0

    def missing(self) -> str:
        """Return what the custom class reports as missing; "" if it does not."""
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


def load_custom_generator(
    entry: Entry | CustomGenerator, how: JsonView
) -> CustomGeneratorAdapter | None:
    """Load the model of an entry that names a custom class, or adapt a custom object. Returns None
    for a checkpoint or an endpoint. The class gets those of `how` (device, decoding,
    max_new_tokens) that it has parameters for. Raises as `load_custom`.
    """
    own = load_custom(entry, "model", ("generate",), ours=_OURS, offered=how)
    return None if own is None else CustomGeneratorAdapter(own.require_fingerprint("model"))
