"""Cost limits: a cap on what a model's answers in a store may cost."""

from __future__ import annotations

import threading
import time
from math import ceil

from vrag_kit.errors import VragError
from vrag_kit.generation.generator import CostEstimate, Generator, Reply
from vrag_kit.generation.store import AnswerStore

_FRESH = 30.0
"""Seconds after which other processes' spending is looked up again."""


class Budget:
    """Tracks what a model's answers in a store have cost, in US dollars, and enforces its cap.
    Spending of other processes is included within half a minute.
    """

    def __init__(self, generator: Generator, store: AnswerStore) -> None:
        self._generator = generator
        self._store = store
        self._lock = threading.Lock()
        self._spent = 0.0
        self._read_at = float("-inf")

    def check_estimate(self, estimate: CostEstimate) -> None:
        """Raise `VragError` when an estimate exceeds what may still be spent."""
        cap = self._generator.max_cost
        if cap is None or estimate.cost is None:
            return
        spent = self._store.total_cost(self._generator.name)
        if spent + estimate.cost > cap:
            raise VragError(
                f"{self._generator.name}: this will cost about {estimate.cost:,.2f} US dollars,"
                f" after {spent:,.2f} so far, and max_cost is {cap:g}. Nothing was asked. Set"
                " max_cost in the model's entry, as in {model: …, max_cost:"
                f" {ceil(spent + estimate.cost)}}}, or ask for less."
            )

    def check(self) -> None:
        """Raise `VragError` when the cap is reached."""
        cap = self._generator.max_cost
        if cap is None:
            return
        with self._lock:
            if time.monotonic() - self._read_at > _FRESH:
                self._spent = self._store.total_cost(self._generator.name)
                self._read_at = time.monotonic()
            if self._spent >= cap:
                raise VragError(
                    f"{self._generator.name}: stopped, its answers in {self._store.path.name} have"
                    f" cost {self._spent:.2f} US dollars and max_cost is {cap:g}. Answers are kept;"
                    " raise max_cost in the model's entry to go on."
                )

    def spend(self, reply: Reply) -> None:
        """Add the cost of a reply that was just stored."""
        if cost := self._generator.cost(reply.tokens):
            with self._lock:
                self._spent += cost
