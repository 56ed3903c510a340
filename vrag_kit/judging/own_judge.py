"""A judge of one's own, with all that the kit wants of one."""

from __future__ import annotations

import math
from typing import Protocol

import pandas as pd

from vrag_kit.errors import CertainError, VragError
from vrag_kit.forecast import current_forecast
from vrag_kit.judging.scale import SHARES, TRUTH, Scale
from vrag_kit.options import Entry
from vrag_kit.own_classes import Own, open_class, open_own, own_code, own_spec
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

    def __init__(self, own: Own, owner: str, *, signed: bool = False) -> None:
        """`own` has the method of `JudgeClass`, and messages call it `owner`; `signed`
        where truthfulness is asked for, in which a wrong answer costs. Raises `VragError`
        for a scale that is none, or not one of truthfulness then.
        """
        self._made = own.made
        self.name, self.fingerprint = own.name, own.fingerprint
        self.scale = _scale(getattr(own.made, "scale", SHARES), owner)
        if signed:
            check_signed(self.scale, owner)
        self.shown = TRUTH if signed else SHARES

    def judge(self, benchmark: Benchmark, answers: pd.DataFrame) -> list[tuple[Judgment, ...]]:
        """One verdict for each row of answers; in a forecast its class is shown the first
        alone, and all earn the worst. Raises `VragError` for a score that is not on the
        scale, and for what the class raises, but in a forecast.
        """
        if current_forecast() is not None:
            self._check_one(benchmark, answers)
            return [(self._scored(self.scale.worst),) for _ in range(len(answers))]
        pairs = zip(answers["query_id"], answers["answer"], strict=True)
        return [(self._verdict(benchmark.queries[name], answer),) for name, answer in pairs]

    def _check_one(self, benchmark: Benchmark, answers: pd.DataFrame) -> None:
        """Raise `CertainError` for a score of the first answer that is off the scale; its
        words may stand in for an answer, so what the class raises of them is no fault.
        """
        for name, answer in zip(answers["query_id"][:1], answers["answer"][:1], strict=True):
            query = benchmark.queries[name]
            try:
                found = self._made.score(query, answer)
            except Exception:  # whatever code that is not ours does
                return
            try:
                self._read(found, query, answer)
            except VragError as error:
                raise CertainError(str(error)) from error

    def _verdict(self, query: Query, answer: str) -> Judgment:
        with own_code(f"judge {self.name}: score", self._made):
            found = self._made.score(query, answer)
        return self._read(found, query, answer)

    def _read(self, found: object, query: Query, answer: str) -> Judgment:
        """The verdict in what the class returned."""
        if found is None:
            words = f"{self.name} says nothing of an answer to {query.query_id!r}"
            return Judgment(
                answer_id="", label="", score=None, failure=Failure(Status.ERROR, words)
            )
        try:
            value = float(found)  # type: ignore[arg-type]  # of any type, until here
        except (TypeError, ValueError):
            value = math.nan
        if isinstance(found, str):
            value = math.nan  # also "0.5": words are no score
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
    a class of one's own that answers. Raises as `open_own`, and for a scale as `OwnJudge`.
    """
    spec = own_spec(entry)
    owner = f"judge {type(entry).__name__}(…)" if spec is None else f"judge {spec!r}"
    made_by = entry if spec is None else open_class(spec, owner)[0]
    if hasattr(made_by, "generate") and not hasattr(made_by, "score"):
        return None
    own = open_own(entry, "judge", ("score",))
    return None if own is None else OwnJudge(own, owner, signed=signed)


def check_signed(scale: Scale, owner: str) -> None:
    """Raise `VragError` for a judge whose scale does not tell wrong from missing, where
    truthfulness is asked for.
    """
    if not scale.signed:
        raise VragError(
            f"{owner}: its scale is {scale.worst:g} to {scale.best:g}. Truthfulness, as CRAG-MM"
            " asks for it, tells wrong (-1) from missing (0): give a judge with scale (-1, 1)."
        )


def _scale(told: object, owner: str) -> Scale:
    """The scale that a class tells."""
    if isinstance(told, Scale):
        return told
    try:
        return Scale(*map(float, told))  # type: ignore[call-overload]  # of any type, until here
    except (TypeError, ValueError, VragError) as error:
        raise VragError(
            f"{owner}: its scale is {told!r}; expected its ends, the worst first, as in (0, 1)."
        ) from error
