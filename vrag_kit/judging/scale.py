"""The scale of a judge: the scores of the worst and the best answer. Columns of answer tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from vrag_kit.errors import SetupError, VragError
from vrag_kit.types import Benchmark, Failure, Judgment, Query, Status

_KEYS = ("query_id", "group")
"""Columns that rows are joined and grouped by: a row without one would drop out."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The ends of a scale: [0, 1] for shares and the rubric, [−1, 1] for truthfulness."""

    worst: float
    best: float

    def __post_init__(self) -> None:
        """Raises `VragError` unless worst is less than best."""
        if not -math.inf < self.worst < self.best < math.inf:
            raise VragError(f"a scale from {self.worst} to {self.best}: expected worst < best.")

    @property
    def width(self) -> float:
        """The difference between the ends: the largest difference of two scores."""
        return self.best - self.worst

    @property
    def differences(self) -> Scale:
        """The scale of the difference of two scores."""
        return Scale(-self.width, self.width)

    @property
    def middle(self) -> float:
        """The midpoint of the scale."""
        return (self.worst + self.best) / 2

    @property
    def nothing(self) -> float:
        """The score of an answer that neither gains nor costs: 0, or the end next to it."""
        return min(max(0.0, self.worst), self.best)

    @property
    def signed(self) -> bool:
        """Whether an incorrect answer costs what a correct one gains, as in truthfulness."""
        return self.middle == 0

    def rescale(self, other: Scale, score: float) -> float:
        """Convert a score of this scale linearly to another: worst to worst, best to best.
        On `SHARES` it becomes (score − worst) / (best − worst).
        """
        if self == other:
            return score
        return other.worst + other.width * ((score - self.worst) / self.width)


SHARES = Scale(0.0, 1.0)
"""The scale of shares, and of tables that were not judged."""
TRUTH = Scale(-1.0, 1.0)
"""From incorrect to correct; a missing answer scores 0."""


def scale_of(table: pd.DataFrame) -> Scale:
    """Return the scale of a table's scores, from its columns score_min and score_max.
    `judge_answers` writes them; without them, or without rows, the scale is `SHARES`.

    Raises `VragError` when rows are on different scales, whose means would be meaningless.
    """
    if "score_min" not in table or table.empty:
        return SHARES
    worst, best = float(table["score_min"].iloc[0]), float(table["score_max"].iloc[0])
    if not ((table["score_min"] == worst).all() and (table["score_max"] == best).all()):
        ends = table[["score_min", "score_max"]].drop_duplicates()
        found = " and ".join(f"[{row.score_min:g}, {row.score_max:g}]" for row in ends.itertuples())
        raise VragError(
            f"the scores of one table are on different scales: {found}. Judge all its answers by"
            " judges of one scale, or take the tables apart."
        )
    return Scale(worst, best)


def ok_answers(benchmark: Benchmark, answers: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the status "ok".

    Raises `VragError` if an answer is no text, or its query is not in `benchmark`.
    """
    good = answers[answers["status"] == "ok"]
    for row, query_id, answer in zip(good.index, good["query_id"], good["answer"], strict=True):
        if not isinstance(answer, str) or query_id not in benchmark.queries:
            raise VragError(
                f"row {row} of the answers: found query {query_id!r} and answer {answer!r} with the"
                f" status 'ok'; expected a query of {benchmark.name} and a text. A table that went"
                " through CSV must be read with keep_default_na=False."
            )
    return good


def query_answers(benchmark: Benchmark, answers: pd.DataFrame) -> list[tuple[Query, str]]:
    """Return (query, answer) of each row of answers."""
    pairs = zip(answers["query_id"], answers["answer"], strict=True)
    return [(benchmark.queries[query_id], answer) for query_id, answer in pairs]


def no_reference_failure(query: Query) -> Judgment:
    """Return a failed verdict: the query has no accepted answer to compare with."""
    words = f"query {query.query_id!r} has no accepted answer to compare with"
    return Judgment(score=None, failure=Failure(Status.ERROR, words))


def require_columns(frame: pd.DataFrame, needed: Sequence[str], where: str) -> None:
    """Raise `VragError` unless `frame` has the columns `needed`, with a query_id and group in
    each row. The message begins with `where`.
    """
    if missing := [name for name in needed if name not in frame]:
        raise SetupError(
            f"{where}: the table has no column {missing[0]!r}; found"
            f" {', '.join(map(str, frame.columns))}, expected {', '.join(needed)}."
        )
    for name in _KEYS:
        if name in needed and (gaps := frame[name].isna()).any():
            row = gaps.idxmax()
            raise VragError(f"{where}: column {name!r}, row {row}: found nothing, expected text.")
