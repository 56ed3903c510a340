"""A judge of one's own, with all that the kit wants of one."""

from __future__ import annotations

import math
from typing import Protocol

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.forecast import current_forecast
from vrag_kit.judging.scale import SHARES, TRUTH, Scale
from vrag_kit.options import Entry
from vrag_kit.own_classes import Own, open_own
from vrag_kit.own_faults import own_code
from vrag_kit.types import Benchmark, Failure, Judgment, Query, Status


class JudgeClass(Protocol):
    """What a class must have whose objects judge.

    Optional are `name`, and `scale`, the two ends (0, 1) unless it says otherwise; where
    accuracy is shown, a score is (score − worst) / (best − worst).
    """

    def score(self, query: Query, answer: str) -> float | None:
        """How right an answer is, on the scale; None where that cannot be said."""


class OwnJudge:
    """Fits an object of somebody's own class to `Judge`."""

    def __init__(self, own: Own, *, signed: bool = False) -> None:
        """`own` has the method of `JudgeClass`; `signed` where truthfulness is asked for,
        in which a wrong answer costs. Raises `VragError` for a scale that is none.
        """
        self._made = own.made
        self.name = own.name
        scale = getattr(own.made, "scale", SHARES)
        if not isinstance(scale, Scale):
            try:
                scale = Scale(*map(float, scale))
            except (TypeError, ValueError, VragError) as error:
                raise VragError(
                    f"judge {self.name}: its scale is {scale!r}; expected its ends, the worst"
                    " first, as in (0, 1)."
                ) from error
        self.scale: Scale = scale
        self.shown = TRUTH if signed and scale.signed else SHARES

    def judge(self, benchmark: Benchmark, answers: pd.DataFrame) -> list[tuple[Judgment, ...]]:
        """One verdict for each row of answers; in a forecast its class is not asked, and
        all earn the worst. Raises `VragError` for a score that is not on the scale, and
        for what the class raises.
        """
        if current_forecast() is not None:
            return [(self._scored(self.scale.worst),) for _ in range(len(answers))]
        pairs = zip(answers["query_id"], answers["answer"], strict=True)
        return [(self._verdict(benchmark.queries[name], answer),) for name, answer in pairs]

    def _verdict(self, query: Query, answer: str) -> Judgment:
        with own_code(f"judge {self.name}", self._made):
            found = self._made.score(query, answer)
        if found is None:
            words = f"{self.name} says nothing of an answer to {query.query_id!r}"
            return Judgment(
                answer_id="", label="", score=None, failure=Failure(Status.ERROR, words)
            )
        try:
            value = math.nan if isinstance(found, str) else float(found)
        except (TypeError, ValueError):
            value = math.nan
        if not self.scale.worst <= value <= self.scale.best:
            raise VragError(
                f"judge {self.name}: score returned {found!r} for {answer!r} to query"
                f" {query.query_id!r}; expected a number from {self.scale.worst:g} to"
                f" {self.scale.best:g}, or None where that cannot be said."
            )
        return self._scored(value)

    def _scored(self, value: float) -> Judgment:
        words = f"{self.name}: {value:g}"
        return Judgment(answer_id="", label=f"{value:g}", score=value, raw=words)


def own_judge(entry: Entry | JudgeClass, *, signed: bool = False) -> OwnJudge | None:
    """The judge of an entry that names one's own class; None for a word or a model, also
    a class of one's own that answers. Raises as `open_own`, also for a class that does
    neither.
    """
    own = open_own(entry, "judge", (), one_of=("score", "generate"))
    if own is None or not callable(getattr(own.made, "score", None)):
        return None
    return OwnJudge(own, signed=signed)
