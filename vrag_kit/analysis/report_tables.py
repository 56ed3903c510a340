"""Formats numbers with their intervals for cells of tables: "0.80 [0.74, 0.86]"."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal

import pandas as pd

from vrag_kit.errors import VragError

LEVEL = 0.05
"""The significance level: a difference counts as one where its p is below it."""
NOTHING = "–"
"""The text of a cell without a value."""


def ci_cells(table: pd.DataFrame, *, decimals: int = 1, n: bool = False) -> pd.Series:
    """Formats each row's value, ci_low and ci_high by `format_ci`, followed by the row's n where
    `n`.
    """
    columns = ["value", "ci_low", "ci_high"]
    rows = table[columns].itertuples(index=False)
    cells = pd.Series([format_ci(*row, decimals=decimals) for row in rows], table.index)
    return cells + " (n = " + table["n"].astype(str) + ")" if n else cells


def report_table(
    table: pd.DataFrame, *, rows: Sequence[str], columns: Sequence[str] = ("metric",)
) -> pd.DataFrame:
    """Formats a table with `rows` down and `columns` across, in its order. Cells are `ci_cells`
    with n, Holm's p where there is one, and the number of failures where there are some; "–" where
    the table has no such row.
    """
    cells = ci_cells(table, n=True)
    if "p_holm" in table:
        cells += ", p " + table["p_holm"].map(format_p)
    if "n_failed" in table:
        failed = table["n_failed"].map("; {:.0f} failed".format)
        cells += failed.where(table["n_failed"] > 0, "")
    wide = table.assign(cell=cells).pivot_table(
        index=list(rows), columns=list(columns), values="cell", aggfunc="first", sort=False
    )
    return wide.fillna(NOTHING)


def format_ci(value: float, low: float, high: float, *, decimals: int = 1) -> str:
    """Formats a value with its interval, "0.8 [0.7, 0.9]"; "0.8 (no interval)" where an end is
    missing, "–" where the value is.

    An end that is not 0 never reads as 0: it has as many decimals as that takes, since 0 decides
    whether a difference is significant.
    """
    if math.isnan(value):
        return NOTHING
    told = f"{round(value, decimals) + 0.0:.{decimals}f}"  # never −0.0
    if math.isnan(low) or math.isnan(high):
        return f"{told} (no interval)"
    return f"{told} [{format_ci_bound(low, decimals)}, {format_ci_bound(high, decimals)}]"


def format_ci_bound(end: float, decimals: int = 1) -> str:
    """Formats an end of an interval with `decimals`, or with more where it would otherwise read as
    0. What differs from 0 by less than a billionth is 0.
    """
    if abs(end) < 1e-9:
        return f"{0:.{decimals}f}"
    while not float(f"{end:.{decimals}f}"):
        decimals += 1
    return f"{end:.{decimals}f}"


def differences_table(claims: pd.DataFrame) -> pd.DataFrame:
    """Formats `to_percent(paired_differences(…))` as a table: the columns before value, the
    difference with its interval, n, n_failed where some failed, p and p_holm.

    The difference is named by its unit ("points" where that is percent). p has two digits, or as
    many as distinguish it from 0.05, and reads "< 0.0001" below that; what a row lacks reads "–".
    Raises `VragError` where the table has more than one unit.
    """
    units = list(claims["unit"].unique())
    if len(units) > 1:
        raise VragError(
            f"differences_table: found the units {' and '.join(units)}, expected one. Take one"
            " measure at a time."
        )
    unit = "points" if units in ([], ["percent"]) else units[0]
    before = list(claims.columns[: claims.columns.get_loc("value")])
    table = claims[before].assign(**{f"difference in {unit}": ci_cells(claims)})
    for name in ("n", "n_failed"):
        if name == "n" or (name in claims and claims[name].any()):
            table[name] = [NOTHING if pd.isna(count) else f"{count:.0f}" for count in claims[name]]
    for name in ("p", "p_holm"):
        table[name] = claims[name].map(format_p)
    return table


def format_p(p: float) -> str:
    """Formats p with two digits, or as many as distinguish it from 0.05; "< 0.0001" below that, "–"
    where there is none. Half a digit is rounded up, so an exact p reads the same however it was
    summed: 1/8, and what differs from it by less than a billionth, as 0.13.
    """
    if math.isnan(p):
        return NOTHING
    if p < 1e-4:
        return "< 0.0001"
    digits = 2
    while float(_half_up(p, digits)) == LEVEL and abs(p - LEVEL) > 1e-9:
        digits += 1
    return _half_up(p, digits)


def _half_up(p: float, digits: int) -> str:
    exact = Decimal(f"{p:.9g}")
    last = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return f"{float(exact.quantize(last, ROUND_HALF_UP)):.{digits}g}"
