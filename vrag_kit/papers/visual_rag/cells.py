"""Cells that statements are checked on: published tables, or judged answers with intervals over
groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd

from vrag_kit.analysis.estimates import estimate
from vrag_kit.judging.scale import SHARES, Scale, scale_of
from vrag_kit.papers.visual_rag.gcue import share_of_benefit
from vrag_kit.papers.visual_rag.printed import PAPER_NAMES, PAPER_QUERIES

Arm = tuple[str, str, int]
"""Model (or retriever) by its name in the paper, setting, and k (in Table 6: m)."""
Pair = tuple[Arm, Arm]
"""Two arms; the second is subtracted from the first."""
BASELINE = "baseline"  # of gCUE at λ = 0.5
MISSED = "missed"  # no clue within k, of a retriever
AMONG = 10  # images among which Table 6 has several clues


@dataclass(frozen=True, slots=True)
class CellEstimate:
    """Estimate that a statement is checked on, with its interval; in points or as a ratio."""

    value: float
    low: float  # the interval's ends; the value itself where it is printed
    high: float
    n: int  # queries


def minimum(numbers: Sequence[CellEstimate]) -> CellEstimate:
    """Returns the smallest of several estimates, with the interval of the minimum."""
    return _number(np.min(_fields(numbers), axis=0), numbers)


def maximum(numbers: Sequence[CellEstimate]) -> CellEstimate:
    """Returns the largest of several estimates, with the interval of the maximum."""
    return _number(np.max(_fields(numbers), axis=0), numbers)


def _fields(numbers: Sequence[CellEstimate]) -> np.ndarray:
    """Values, lower and upper ends, shape (numbers, 3); NaN stays NaN in a min."""
    return np.array([(number.value, number.low, number.high) for number in numbers])


def _number(fields: np.ndarray, numbers: Sequence[CellEstimate]) -> CellEstimate:
    n = min(number.n for number in numbers)
    return CellEstimate(float(fields[0]), float(fields[1]), float(fields[2]), n)


class Cells(Protocol):
    """Means of arms, and their differences and ratios.

    Intervals of estimates from one call hold simultaneously at 95 %, so the smallest and the
    largest have a valid interval too.
    """

    arms: tuple[Arm, ...]

    def means(self, arms: Sequence[Arm]) -> list[CellEstimate]:
        """Returns means in percent."""

    def differences(self, pairs: Sequence[Pair]) -> list[CellEstimate]:
        """Returns differences in points."""

    def ratios(self, pairs: Sequence[Pair], whole: Pair) -> list[CellEstimate]:
        """Returns differences as shares of the difference `whole`; NaN unless the interval of
        `whole` is above 0.
        """


class PublishedCells:
    """Cells of a published table, or otherwise exact; every interval is the number itself."""

    def __init__(self, means: Mapping[Arm, float], n: int) -> None:
        self.arms = tuple(means)
        self._means = means
        self._n = n

    def means(self, arms: Sequence[Arm]) -> list[CellEstimate]:
        return [self._number(self._means[arm]) for arm in arms]

    def differences(self, pairs: Sequence[Pair]) -> list[CellEstimate]:
        return [self._number(self._difference(pair)) for pair in pairs]

    def ratios(self, pairs: Sequence[Pair], whole: Pair) -> list[CellEstimate]:
        possible = self._difference(whole)
        if not possible > 0:
            return [self._number(np.nan) for _ in pairs]
        return [self._number(self._difference(pair) / possible) for pair in pairs]

    def _difference(self, pair: Pair) -> float:
        return round(self._means[pair[0]] - self._means[pair[1]], 6)

    def _number(self, value: float) -> CellEstimate:
        return CellEstimate(float(value), float(value), float(value), self._n)


class MeasuredCells:
    """Cells computed from our answers, paired over the queries with a value in all arms of a
    number.
    """

    def __init__(self, values: Mapping[Arm, pd.Series], scale: Scale) -> None:
        """`values` maps each arm to its values, indexed by (query_id, group)."""
        self.arms = tuple(values)
        self._values = values
        self._scale = scale

    def means(self, arms: Sequence[Arm]) -> list[CellEstimate]:
        level = _together(len(arms))
        return [_estimate(self._values[arm], self._scale, level) for arm in arms]

    def differences(self, pairs: Sequence[Pair]) -> list[CellEstimate]:
        level = _together(len(pairs))
        scale = self._scale.differences
        return [_estimate(self._difference(pair), scale, level) for pair in pairs]

    def ratios(self, pairs: Sequence[Pair], whole: Pair) -> list[CellEstimate]:
        possible = self._difference(whole)
        level, scale = _together(len(pairs)), self._scale.differences
        numbers = []
        for pair in pairs:
            both = pd.DataFrame({"x": self._difference(pair), "y": possible}).dropna()
            found, benefit = share_of_benefit(both["x"], both["y"], scale, level=level)
            numbers.append(CellEstimate(found.value, found.ci_low, found.ci_high, benefit.n))
        return numbers

    def _difference(self, pair: Pair) -> pd.Series:
        first, second = pair
        return self._values[first] - self._values[second]


def _estimate(values: pd.Series, scale: Scale, level: float) -> CellEstimate:
    known = values.dropna()
    groups = known.index.get_level_values("group").to_numpy()
    found = estimate(known.to_numpy(float), groups, scale=scale, level=level)
    return CellEstimate(100 * found.value, 100 * found.ci_low, 100 * found.ci_high, found.n)


def _together(count: int) -> float:
    """The level of each of several intervals that hold all at once in 95 % (Bonferroni)."""
    return 1 - 0.05 / max(1, count)


_ENDS = (("zero_shot", 0), ("non_clue", 1))  # of which the baseline is the middle


def published_cells(tables: Mapping[int | str, pd.DataFrame], number: int) -> PublishedCells:
    """Returns the published cells of Table 2 (`MISSED` only), 3, 6, 7 or 8."""
    table = tables[number]
    if number == 2:
        hits = table[table["metric"] == "hit"]
        rows = hits.assign(model=hits["retriever"], setting=MISSED, value=100 - hits["value"])
    else:
        rows = table
    keys = zip(rows["model"], rows["setting"], _places(rows, number), strict=True)
    means: dict[Arm, float] = dict(zip(keys, rows["value"].astype(float), strict=True))
    for model in dict.fromkeys(arm[0] for arm in means):
        ends = [means[(model, *end)] for end in _ENDS if (model, *end) in means]
        if number == 3 and len(ends) == 2:
            means[model, BASELINE, 0] = sum(ends) / 2
    return PublishedCells(means, PAPER_QUERIES)


def _places(rows: pd.DataFrame, number: int) -> list[int]:
    """k of each row; in Table 6 the number of clues where they are counted."""
    places = rows["m"].fillna(0).where(rows["m"] > 0, rows["k"]) if number == 6 else rows["k"]
    return [int(place) for place in places]


def judged_cells(judged: pd.DataFrame, number: int) -> MeasuredCells:
    """Computes our cells of Table 3, 6, 7 or 8 from judged answers; draws are averaged.

    As in Table 6, cells with m clues and distractors are those with 10 images.
    """
    column = "abstained" if number == 8 else "score"
    if number == 6:
        judged = judged[(judged["setting"] != "m_in_k") | (judged["k"] == AMONG)]
    rows = judged.assign(model=judged["model"].replace(PAPER_NAMES), place=_places(judged, number))
    values: dict[Arm, pd.Series] = {}
    for place, part in rows.groupby("place", sort=False):
        for key, arm in part.groupby(["model", "setting"], sort=False):
            found = arm.groupby(_QUERY)[column].mean()
            values[str(key[0]), str(key[1]), int(str(place))] = found
    for model in dict.fromkeys(arm[0] for arm in values):
        ends = [values[(model, *end)] for end in _ENDS if (model, *end) in values]
        if len(ends) == 2:
            values[model, BASELINE, 0] = (ends[0] + ends[1]) / 2
    return MeasuredCells(values, SHARES if number == 8 else scale_of(judged))


_QUERY = ["query_id", "group"]


def retrieval_cells(scores: pd.DataFrame, *, same_data: bool = False) -> Cells:
    """Computes the share of queries without a clue (`MISSED`) at every k, from the scores of runs
    (`score_runs`). It is exact on the paper's own queries (`same_data`): the statements are about
    these, and retrieval is deterministic.
    """
    hits = scores[scores["metric"] == "hit"].assign(value=1 - scores["value"])
    values: dict[Arm, pd.Series] = {}
    for (retriever, k), part in hits.groupby(["retriever", "k"], sort=False):
        values[str(retriever), MISSED, int(str(k))] = part.set_index(_QUERY)["value"]
    if same_data:
        shares = {arm: 100 * float(missed.mean()) for arm, missed in values.items()}
        return PublishedCells(shares, min(map(len, values.values()), default=0))
    return MeasuredCells(values, SHARES)
