"""A model that is asked nothing: it notes its prompts and gives words of its own, each
other than the last.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from vrag_kit.forecast import STAND_IN, stand_in_words
from vrag_kit.generation.generator import Forecast, Generator, Reply, Size
from vrag_kit.types import Prompt

_counter = itertools.count(1)


class StandIn:
    """Takes the place of a model in a forecast; implements `Generator`."""

    def __init__(self, model: Generator, mark: str) -> None:
        """`mark` is that of the forecast."""
        self._mark = mark
        self.model = model
        """Whose place this is; it says what asking would take."""
        self.prompts: list[Prompt] = []
        """What it was asked, in order."""
        self.sizes: dict[str, Size] = {}
        """Of the pictures in them, by their `where`."""
        self.may_repair = 0
        """How many prompts are asked once more where the reply cannot be read."""
        self.name = model.name
        self.fingerprint = model.fingerprint
        self.decoding = model.decoding
        self.sent = model.sent
        self.deterministic = model.deterministic
        self.batched = True
        self.at_once = 2000
        self.concurrency = 1
        self.max_cost: float | None = None  # the sum is held against it in the end

    def forecast(self, prompts: Sequence[Prompt], sizes: Mapping[str, Size]) -> Forecast:
        """Nothing is asked now; see `whole_forecast`."""
        self.sizes.update(sizes)
        return Forecast(calls=0, images=0, tokens=0)

    def whole_forecast(self) -> Forecast:
        """What all prompts that came by would take."""
        forecast = self.model.forecast(self.prompts, self.sizes)
        if not self.may_repair:
            return forecast
        note = (
            f"not counted: at most {self.may_repair:,} calls more, for replies that cannot be read"
        )
        return replace(forecast, notes=(*forecast.notes, note))

    def prepare(self) -> None:
        """Nothing is loaded."""

    def generate(self, prompts: Sequence[Prompt], *, sample: int = 0) -> list[Reply]:
        """Words about as many as an answer's; no two replies are alike, so that a judge
        would be asked about each.
        """
        self.prompts += prompts
        return [
            Reply(raw=f"Answer: {stand_in_words(next(_counter))}", fields={STAND_IN: self._mark})
            for _ in prompts
        ]

    def cost(self, tokens: Mapping[str, int]) -> float:
        """Nothing is paid."""
        return 0.0

    def missing(self) -> str:
        """As the model does."""
        return self.model.missing()
