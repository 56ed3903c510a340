"""Load custom judges, and adapt them to the protocol `Judge`."""

from __future__ import annotations

import math
from inspect import isclass
from typing import Protocol

import pandas as pd

from vrag_kit.config import Entry
from vrag_kit.custom import (
    CustomObject,
    catch_custom_errors,
    custom_spec,
    load_custom,
    load_member,
)
from vrag_kit.dry_run import current_dry_run
from vrag_kit.errors import SetupError, VragError
from vrag_kit.judging.scale import SHARES, TRUTH, Scale
from vrag_kit.types import Benchmark, Failure, Judgment, Query, Status


class CustomJudge(Protocol):
    """Interface of a custom judge.

    Optional are `name`, and `scale`, its two ends, by default (0, 1). Where accuracy is shown, a
    score is converted to (score − worst) / (best − worst).
    """

    def score(self, query: Query, answer: str) -> float | None:
        """Return the score of an answer, on the scale; None where it cannot be scored."""


class CustomJudgeAdapter:
    """Adapts an object of a custom class to `Judge`."""

    def __init__(self, own: CustomObject, owner: str, *, signed: bool = False) -> None:
        """`own` has the method of `CustomJudge`, and messages call it `owner`.
        `signed` requires a scale of truthfulness, on which an incorrect answer costs. Raises
        `VragError` for an invalid scale, or then one that is not symmetric about 0.
        """
        self._made = own.made
        self.name, self.fingerprint = own.name, own.fingerprint
        scale = getattr(own.made, "scale", SHARES)
        try:
            self.scale = scale if isinstance(scale, Scale) else Scale(*map(float, scale))
        except (TypeError, ValueError, VragError) as error:
            raise VragError(
                f"{owner}: its scale is {scale!r}; expected (worst, best), as in (0, 1)."
            ) from error
        if signed:
            require_signed_scale(self.scale, owner)
        self.shown = TRUTH if signed else SHARES

    def judge(self, benchmark: Benchmark, answers: pd.DataFrame) -> list[tuple[Judgment, ...]]:
        """Return one verdict for each row of answers.
        In a dry run the class scores the first answer only, and all get the worst score. Raises
        `SetupError` for a score off the scale, and, except in a dry run, `VragError` for an error
        of the class.
        """
        rows = zip(answers["query_id"], answers["answer"], strict=True)
        pairs = [(benchmark.queries[query_id], answer) for query_id, answer in rows]
        if current_dry_run() is None:
            return [(self._verdict(query, answer),) for query, answer in pairs]
        try:
            for query, answer in pairs[:1]:
                self._verdict(query, answer)
        except SetupError:
            raise
        except VragError:  # the answer is only a placeholder
            pass
        return [(self._judgment(self.scale.worst),)] * len(pairs)

    def _verdict(self, query: Query, answer: str) -> Judgment:
        with catch_custom_errors(f"judge {self.name}: score", self._made):
            score = self._made.score(query, answer)
        if score is None:
            words = f"{self.name} says nothing of an answer to {query.query_id!r}"
            failure = Failure(Status.ERROR, words)
            return Judgment(answer_id="", label="", score=None, failure=failure)
        try:
            value = math.nan if isinstance(score, str) else float(score)
        except (TypeError, ValueError):
            value = math.nan
        if not self.scale.worst <= value <= self.scale.best:
            raise SetupError(
                f"judge {self.name}: score returned {score!r} for {answer!r} to query"
                f" {query.query_id!r}; expected a number from {self.scale.worst:g} to"
                f" {self.scale.best:g}, or None where that cannot be said."
            )
        return self._judgment(value)

    def _judgment(self, score: float) -> Judgment:
        raw = f"{self.name}: {score:g}"
        return Judgment(answer_id="", label=f"{score:g}", score=score, raw=raw)


def load_custom_judge(
    entry: Entry | CustomJudge, *, signed: bool = False
) -> CustomJudgeAdapter | None:
    """Load the judge of an entry that names a custom class.
    Returns None for a built-in judge, a model, or a custom class that generates answers. Raises as
    `load_custom`, and for a scale as `CustomJudgeAdapter`.
    """
    spec = custom_spec(entry)
    owner = f"judge {type(entry).__name__}(…)" if spec is None else f"judge {spec!r}"
    made_by = entry if spec is None else load_member(spec, owner, "class", isclass)[0]
    if hasattr(made_by, "generate") and not hasattr(made_by, "score"):
        return None
    own = load_custom(entry, "judge", ("score",))
    return None if own is None else CustomJudgeAdapter(own, owner, signed=signed)


def require_signed_scale(scale: Scale, owner: str) -> None:
    """Raise `VragError` unless a judge's scale is symmetric about 0.
    Truthfulness needs it to distinguish incorrect from missing answers.
    """
    if not scale.signed:
        raise VragError(
            f"{owner}: its scale is {scale.worst:g} to {scale.best:g}. Truthfulness, as CRAG-MM"
            " asks for it, tells wrong (-1) from missing (0): give a judge with scale (-1, 1)."
        )
