"""Descriptions of the answers that only one of two sides has, and that are not compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from vrag_kit.analysis.run_comparison import Choice, format_setting, match_answers

_MOST = 8
"""Things of a side that are named; of more the number."""


def unmatched_counts(
    a: pd.DataFrame,
    b: pd.DataFrame,
    *,
    choose_a: Choice | None = None,
    choose_b: Choice | None = None,
) -> list[str]:
    """Describes the answers that `paired_answers` leaves out because the other side lacks them, one
    line per side: "only in A: moody (03, 04); steady in 04". Whole data sets and models come first,
    then models in an experiment, then conditions, then the number of single answers; [] where each
    has its counterpart. Raises as `match_answers`.
    """
    matched = match_answers(a, b, choose_a=choose_a, choose_b=choose_b)
    lines = []
    for side, mine, other in zip("AB", matched.sides, matched.sides[::-1], strict=True):
        left = mine[_lacking(mine, other, matched.keys)]
        if told := list(_descriptions(left, other, matched.by)):
            more = [f"and {len(told) - _MOST} more"] if len(told) > _MOST else []
            lines.append(f"only in {side}: {'; '.join([*told[:_MOST], *more])}")
    return lines


def _descriptions(left: pd.DataFrame, other: pd.DataFrame, by: Sequence[str]) -> Iterator[str]:
    """The widest first, each answer once."""
    for columns in (["benchmark"], ["model"], ["model", "experiment"], by):
        names = [name for name in columns if name in by]
        if names:
            lacking = _lacking(left, other, names)
            yield from _groups(left[lacking], names, by)
            left = left[~lacking]
    if len(left):
        asked = left["query_id"].nunique()
        yield f"{len(left):,} more, to {asked:,} question{'s' * (asked > 1)}"


def _groups(lacking: pd.DataFrame, names: Sequence[str], by: Sequence[str]) -> Iterator[str]:
    """In words: "moody (03, 04)", "steady in 04", "steady, top-k, k = 20 in 04"."""
    whole = len(names) == 1
    what = [name for name in names if name != "experiment" and (whole or name != "benchmark")]
    for _, part in lacking.groupby(what or list(names), sort=False, dropna=False):
        values = part[what].to_dict("records")[0] if what else {}
        words = ", ".join(
            filter(None, (format_setting(str(name), each) for name, each in values.items()))
        )
        where = ", ".join(map(_short, part["experiment"].unique())) if "experiment" in by else ""
        if words and where:
            yield f"{words} ({where})" if whole else f"{words} in {where}"
        else:
            yield words or where


def _short(experiment: object) -> str:
    """The number of a notebook, as 03 of "visual_rag/03_baselines"; else its name."""
    name = Path(str(experiment)).name
    number = name.partition("_")[0]
    return number if number.isdigit() else name


def _lacking(table: pd.DataFrame, other: pd.DataFrame, names: Sequence[str]) -> np.ndarray:
    """Which rows have no counterpart in these columns: bool."""
    mine, others = (pd.MultiIndex.from_frame(each[list(names)]) for each in (table, other))
    return ~mine.isin(others)
