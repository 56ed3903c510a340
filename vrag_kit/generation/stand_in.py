"""`DryRunGenerator`: records prompts and returns distinct placeholders, without a model."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from vrag_kit.forecast import STAND_IN, placeholder_text
from vrag_kit.generation.generator import CostEstimate, Generator, Reply, Size
from vrag_kit.types import Prompt

_counter = itertools.count(1)


class DryRunGenerator:
    """Replaces a model in a dry run; implements `Generator`."""

    def __init__(self, model: Generator, mark: str) -> None:
        """`mark` identifies the dry run."""
        self._mark = mark
        self.model = model
        """The replaced model, which estimates the cost."""
        self.prompts: list[Prompt] = []
        """The prompts that it received, in order."""
        self.sizes: dict[str, Size] = {}
        """Sizes of the images in them, by `where`."""
        self.may_repair = 0
        """Number of prompts that are asked again if the reply cannot be parsed."""
        self.name = model.name
        self.fingerprint = model.fingerprint
        self.decoding = model.decoding
        self.sent = model.sent
        self.deterministic = model.deterministic
        self.batched = True
        self.at_once = 2000
        self.concurrency = 1
        self.max_cost: float | None = None  # the sum is held against it in the end

    def forecast(self, prompts: Sequence[Prompt], sizes: Mapping[str, Size]) -> CostEstimate:
        """Record image sizes and return zero costs; see `total_cost_estimate`."""
        self.sizes.update(sizes)
        return CostEstimate(calls=0, images=0, tokens=0)

    def total_cost_estimate(self) -> CostEstimate:
        """Return the estimated cost of all recorded prompts."""
        forecast = self.model.forecast(self.prompts, self.sizes)
        if not self.may_repair:
            return forecast
        note = (
            f"not counted: at most {self.may_repair:,} calls more, for replies that cannot be read"
        )
        return replace(forecast, notes=(*forecast.notes, note))

    def prepare(self) -> None:
        """Do nothing: no weights are loaded."""

    def generate(self, prompts: Sequence[Prompt], *, sample: int = 0) -> list[Reply]:
        """Return placeholders about as long as an answer. No two are equal, so that a judge would
        be asked about each.
        """
        self.prompts += prompts
        return [
            Reply(raw=f"Answer: {placeholder_text(next(_counter))}", fields={STAND_IN: self._mark})
            for _ in prompts
        ]

    def cost(self, tokens: Mapping[str, int]) -> float:
        """Return 0: nothing is paid."""
        return 0.0

    def missing(self) -> str:
        """Return "": a dry run needs nothing. The check looks at `model.missing()`."""
        return ""
