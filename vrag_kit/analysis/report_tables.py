"""Formats numbers with their intervals for cells of tables: "0.80 [0.74, 0.86]"."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from vrag_kit.errors import VragError

LEVEL = 0.05
"""The significance level: a difference counts as one where its p is below it."""
NOTHING = "–"
"""The text of a cell without a value."""


def ci_cells(
    table: pd.DataFrame, *, decimals: int = 1, n: bool = False, suffix: str = ""
) -> pd.Series:
    """Formats each row's value, ci_low and ci_high, with a `suffix` of their names, by `format_ci`,
    followed by the row's n where `n`.
    """
    columns = [f"{name}{suffix}" for name in ("value", "ci_low", "ci_high")]
    rows = table[columns].itertuples(index=False)
    cells = pd.Series([format_ci(*row, decimals=decimals) for row in rows], table.index)
    return cells + " (n = " + table["n"].astype(str) + ")" if n else cells


def report_table(
    table: pd.DataFrame,
    *,
    rows: Sequence[str],
    columns: Sequence[str] = ("metric",),
    cells: pd.Series | None = None,
    empty: str = NOTHING,
) -> pd.DataFrame:
    """Formats a table with `rows` down and `columns` across, in its order. `cells` are their texts;
    by default `ci_cells` with n, Holm's p where there is one, and the number of failures where
    there are some. `empty` stands where the table has no such row.
    """
    if cells is None:
        cells = ci_cells(table, n=True)
        if "p_holm" in table:
            cells += ", p " + table["p_holm"].map(format_p)
        if "n_failed" in table:
            failed = table["n_failed"].map("; {:.0f} failed".format)
            cells += failed.where(table["n_failed"] > 0, "")
    wide = table.assign(cell=cells).pivot_table(
        index=list(rows), columns=list(columns), values="cell", aggfunc="first", sort=False
    )
    return wide.fillna(empty)


def format_ci(value: float, low: float, high: float, *, decimals: int = 1) -> str:
    """Formats a value with its interval, "0.8 [0.7, 0.9]"; "0.8 (no interval)" where an end is
    missing, "–" where the value is.

    An end that is not 0 never reads as 0: it has as many decimals as that takes, since 0 decides
    whether a difference is significant.
    """
    if math.isnan(value):
        return NOTHING
    mean = f"{round(value, decimals) + 0.0:.{decimals}f}"  # never −0.0
    if math.isnan(low) or math.isnan(high):
        return f"{mean} (no interval)"
    return f"{mean} [{format_ci_bound(low, decimals)}, {format_ci_bound(high, decimals)}]"


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
    """
    units = set(claims["unit"]) - {"percent"}
    unit = ", ".join(sorted(units)) or "points"
    table = claims.loc[:, :"value"].drop(columns="value")
    table[f"difference in {unit}"] = ci_cells(claims)
    for name in ("n", "n_failed"):
        if name == "n" or (name in claims and claims[name].any()):
            table[name] = [NOTHING if pd.isna(count) else f"{count:.0f}" for count in claims[name]]
    for name in ("p", "p_holm"):
        table[name] = claims[name].map(format_p)
    return table


def format_p(p: float) -> str:
    """Formats p with two digits, or as many as distinguish it from 0.05; "< 0.0001" below 0.0001,
    "–" where there is none. Halves, as exact tests give them, are rounded up: 0.125 reads 0.13.
    """
    if math.isnan(p):
        return NOTHING
    if p < 1e-4:
        return "< 0.0001"
    up, digits = p * (1 + 1e-12), 2
    while float(f"{up:.{digits}g}") == LEVEL and abs(p - LEVEL) > 1e-9:
        digits += 1
    return f"{up:.{digits}g}"


def finding(row: Mapping[Hashable, Any], arm: str, baseline: str) -> str:
    """A title for a row of `to_percent(paired_differences(…))`: `arm` against `baseline`.

    "Higher" and "lower" need a 95 % interval that excludes 0; where p_holm is not below 0.05 the
    sentence says that the difference does not last after correction.
    """
    low, high = row["ci_low"], row["ci_high"]
    if pd.isna(row["value"]):
        return f"{arm} and {baseline} have no scores to compare"
    if pd.isna(low):
        return f"the difference of {arm} to {baseline} has no interval"
    if low <= 0 <= high:
        reach = f"{low:+.1f} to {high:+.1f}".replace("-", "−")
        return f"no difference shown between {arm} and {baseline} (95 % interval {reach})"
    word = "higher" if row["value"] > 0 else "lower"
    unit = "points" if row["unit"] == "percent" else row["unit"]
    nearest, furthest = map(format_ci_bound, sorted([abs(low), abs(high)]))
    size = f"{abs(row['value']):.1f} {unit} [{nearest}, {furthest}]"
    lasts = "" if row["p_holm"] < LEVEL else ", but not after correction"
    return f"{arm} is {word} than {baseline} by {size}{lasts}"


_CHOICES = (
    *("folder", "experiment", "metric", "judge", "retriever"),
    *("clue_position", "corpus", "baseline"),
)
"""Columns that may distinguish the numbers of one cell, and that have no rows of their own."""
TINY = 1e-9
"""Means that differ by less are one mean, summed in another order."""
TableRow = dict[Hashable, Any]
"""A row of a table: values of any type, by column."""
SETTING_NAMES = {
    "zero_shot": "zero-shot (no image)",
    "gt_clue": "clue (1 image)",
    "first_clue": "top-ranked clue (1 image)",
    "non_clue": "non-clue (1 image)",
    "top_k": "top-k",
    "one_in_k": "1-in-k",
    "one_in_k_easy": "1-in-k, easy negatives",
    "rag_best": "best top-k",
    "text_rag": "text passages",
    "gold_page": "gold page's passages",
    "m_gt": "m clues alone",
    "m_in_k": "m clues in k",
    "no_rag": "no examples",
    "gt_rag": "gold examples",
    "retrieved_rag": "retrieved examples",
    "mismatched_rag": "mismatched examples",
}


_COUNTED = {"m_gt": "{m:.0f} GT", "m_in_k": "{m:.0f}-in-{k:.0f}"}
"""Setting → its name where the number m of clues is given."""
_POSITIONS = {0: "first", 1: "second", 2: "third", -2: "second to last", -1: "last"}
"""`clue_position` → its name; others are named by number."""


def settings_table(
    results: pd.DataFrame, paper: pd.DataFrame | None = None, *, same_data: bool = False
) -> pd.DataFrame:
    """Formats results as a table: rows (setting, k), or (stratum, setting, k) where `results` are
    of several strata, and columns models. Cells read "mean [low, high]", with n where it may differ
    between rows, and the empty, truncated or failed answers, if any.

    Where `results` are of several sources, as of a notebook's file in `load_results`, the source
    comes first in the rows ("Visual-RAG, reported"), in place of a stratum that follows from it.

    Cells also give the means if all failed answers were incorrect, or correct, and if those that a
    provider refused were incorrect. Both are in percent: `results` as `to_percent(mean_scores(…))`
    of one metric, `paper` in the same form. The paper's columns hold the same rows; they are marked
    as on different data, unless `same_data`. Raises `VragError` where two different numbers of
    `results` would be in one cell.
    """
    parts = _parts(results)
    keys = [name for name in ("setting", "k", "m") if name in results]
    ours = results.assign(cell=_cells(results, with_n=bool(parts)))
    _check_single(ours, [*parts, "model", *keys])
    table = _best(ours)
    if paper is not None:
        mark = "(reported)" if same_data else "(reported, other data)"
        means = paper["value"].map("{:.2f}".format)
        theirs = _best(paper.assign(model=paper["model"] + f" {mark}", cell=means))
        same = [name for name in keys if name in paper]
        places = table[[*(name for name in parts if name == "source"), *same]]
        theirs = theirs.merge(places.drop_duplicates(), on=same)
        table = pd.concat([table, theirs], ignore_index=True)
    table["setting"] = [_name(row) for row in table.to_dict("records")]
    table["k"] = table["k"].astype(object).where(table["k"].notna(), "")
    rows = [*parts, "setting", "k"]
    wide = report_table(table, rows=rows, columns=["model"], cells=table["cell"], empty="")
    return wide.rename_axis(columns="model")


def _parts(results: pd.DataFrame) -> list[str]:
    """What stands before setting and k in the rows: source and stratum, where there are several
    that do not follow from one another.
    """
    parts = [name for name in ("source", "stratum") if name in results]
    parts = [name for name in parts if results[name].nunique() > 1]
    follows = len(parts) == 2 and results.groupby("source")["stratum"].nunique().le(1).all()
    return ["source"] if follows else parts


def _check_single(table: pd.DataFrame, place: list[str]) -> None:
    """Raises `VragError` where two different cells have one place."""
    different = table.drop_duplicates([*place, "cell"])
    twice = different[different.duplicated(place, keep=False)]
    if twice.empty:
        return
    where = ", ".join(f"{name} {twice[name].iloc[0]}" for name in place)
    found = twice[twice.columns.intersection(list(_CHOICES), sort=False)].replace("", None)
    name = next((name for name in _CHOICES if name in found and found[name].nunique() > 1), "")
    hint = f" Choose one {name}, of {', '.join(map(str, found[name].unique()))}." if name else ""
    raise VragError(f"settings_table: found several numbers of {where}.{hint}")


def _best(table: pd.DataFrame) -> pd.DataFrame:
    """The best top-k of every model in one row, its k in the cell."""
    best = table["setting"] == "rag_best"
    cells = table["cell"].where(~best, table["cell"] + " at k = " + table["k"].astype(str))
    return table.assign(cell=cells, k=table["k"].astype(object).mask(best, "best"))


_NOTES = (
    ("n_empty", "{n_empty:.0f} empty"),
    ("n_truncated", "{n_truncated:.0f} truncated"),
    ("shows_n", "n = {n:.0f}"),
    ("n_failed", "{n_failed:.0f} failed"),
    ("shows_bounds", "{bound_low:.1f} to {bound_high:.1f} with them"),
    ("refusals_cost", "{if_refusals_incorrect:.1f} with refusals as wrong"),
)
"""Column → what a cell adds where that is above 0."""


def _cells(results: pd.DataFrame, *, with_n: bool) -> list[str]:
    """A cell for each row: the mean with its interval, and what `_NOTES` adds."""
    table, cells = results.assign(**results.select_dtypes("number").astype(float)), []
    for row, cell in zip(table.to_dict("records"), ci_cells(results), strict=True):
        failed, refusals = row.get("n_failed", 0) > 0, row.get("if_refusals_incorrect", math.nan)
        row["shows_n"] = failed or with_n
        row["shows_bounds"] = failed and pd.notna(row.get("bound_low"))
        row["refusals_cost"] = row["value"] - refusals > TINY
        notes = [text.format_map(row) for name, text in _NOTES if row.get(name, 0) > 0]
        cells.append(f"{cell} ({', '.join(notes)})" if notes else cell)
    return cells


def setting_name(setting: str) -> str:
    """The name of a setting in tables and figures, as in `SETTING_NAMES`. A custom setting keeps
    its name, "clue_last" as "clue last".
    """
    return SETTING_NAMES.get(setting, setting.replace("_", " "))


def add_clue_position(results: pd.DataFrame, clue_position: int) -> pd.DataFrame:
    """Adds the column clue_position: the position of the clue in 1-in-k, "first" for 0, "last" for
    −1; "" in other settings.
    """
    others = f"number {clue_position + 1}" if clue_position > 0 else f"at {clue_position}"
    place = _POSITIONS.get(clue_position, others)
    return results.assign(clue_position=results["setting"].map({"one_in_k": place}).fillna(""))


def _name(row: TableRow) -> str:
    setting, m = str(row["setting"]), row.get("m")
    if pd.isna(m) or (setting in SETTING_NAMES and setting not in _COUNTED):
        return setting_name(setting)
    return _COUNTED.get(setting, f"{setting_name(setting)}, m = {{m:.0f}}").format_map(row)
