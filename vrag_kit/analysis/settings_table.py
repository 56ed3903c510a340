"""Tables of answer quality in the layout of papers: settings down, models across."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd

from vrag_kit.analysis.report_tables import format_ci
from vrag_kit.errors import VragError

_TOLD_BY = (
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


_PLACES = {0: "first", 1: "second", 2: "third", -2: "second to last", -1: "last"}
"""`clue_position` → its name; others are named by number."""


def settings_table(
    results: pd.DataFrame, paper: pd.DataFrame | None = None, *, same_data: bool = False
) -> pd.DataFrame:
    """Formats results as a table: rows (setting, k), or (stratum, setting, k) where `results` are
    by stratum, and columns models. Cells read "mean [low, high]", with n where it may differ
    between rows, and the empty, truncated or failed answers, if any.

    Where `results` are of several sources, as of a notebook's file in `load_results`, the source
    comes first in the rows ("Visual-RAG, reported"), in place of a stratum that follows from it.

    Cells also give the means if all failed answers were incorrect, or correct, and if those that a
    provider refused were incorrect. Both are in percent: `results` as `to_percent(mean_scores(…))`
    of one metric, `paper` in the same form. The paper's columns hold the same rows; they are marked
    as on different data, unless `same_data`. Raises `VragError` where two different numbers of
    `results` would be in one cell.
    """
    apart = _apart(results)
    ours = results.assign(cell=[_cell(row, apart) for row in results.to_dict("records")])
    _check_single(ours, apart)
    tables = [_best(ours)]
    if paper is not None:
        mark = "(reported)" if same_data else "(reported, other data)"
        keys = ["setting", "k", *(["m"] if "m" in results and "m" in paper else [])]
        there = [*(name for name in apart if name == "source"), *keys]
        cells = paper["value"].map("{:.2f}".format)
        theirs = _best(paper.assign(model=paper["model"] + f" {mark}", cell=cells))
        tables.append(theirs.merge(tables[0][there].drop_duplicates(), on=keys))
    both = pd.concat(tables, ignore_index=True)
    both = both.assign(setting=[_name(row) for row in both.to_dict("records")])
    both["k"] = both["k"].astype(object).where(both["k"].notna(), "")
    rows = [*apart, "setting", "k"]
    wide = both.pivot_table(index=rows, columns="model", values="cell", aggfunc="first", sort=False)
    return wide.fillna("")


def _apart(results: pd.DataFrame) -> list[str]:
    """What stands before setting and k in the rows: the source, where there are several,
    and the stratum, unless the source tells it.
    """
    sources = "source" in results and results["source"].nunique() > 1
    strata = "stratum" in results and results["stratum"].fillna("").ne("").any()
    if sources and strata:
        strata = results.groupby("source")["stratum"].nunique().gt(1).any()
    return [*(["source"] if sources else []), *(["stratum"] if strata else [])]


def _check_single(ours: pd.DataFrame, apart: list[str]) -> None:
    """Raise `VragError` where two different cells have one place."""
    place = [*apart, *(name for name in ("model", "setting", "k", "m") if name in ours)]
    alike = ours.duplicated([*place, "cell"], keep=False)
    twice = ours[ours.duplicated(place, keep=False) & ~alike]
    if twice.empty:
        return
    where = ", ".join(f"{name} {twice[name].iloc[0]}" for name in place)
    found = {name: list(twice[name].unique()) for name in _TOLD_BY if name in twice}
    # "" is of rows that it is no matter of, as a retriever of zero-shot
    found = {name: [str(each) for each in values if each != ""] for name, values in found.items()}
    told = [f"{name}, of {', '.join(each)}" for name, each in found.items() if len(each) > 1]
    hint = f" Choose one {told[0]}." if told else ""
    raise VragError(f"settings_table: found several numbers of {where}; expected one.{hint}")


def _best(table: pd.DataFrame) -> pd.DataFrame:
    """The best top-k of every model in one row, its k in the cell."""
    best = table["setting"] == "rag_best"
    if not best.any():
        return table
    cells = [
        f"{cell} at k = {k}" if chosen else cell
        for cell, k, chosen in zip(table["cell"], table["k"], best, strict=True)
    ]
    return table.assign(cell=cells, k=table["k"].astype(object).mask(best, "best"))


def _cell(row: TableRow, apart: list[str]) -> str:
    cell = format_ci(row["value"], row["ci_low"], row["ci_high"])
    failed = _count(row, "n_failed")
    silent = {"empty": _count(row, "n_empty"), "truncated": _count(row, "n_truncated")}
    notes = [f"{count} {name}" for name, count in silent.items() if count]
    if failed or apart:
        notes.append(f"n = {row['n']}")
    if failed:
        notes.append(f"{failed} failed")
    if failed and pd.notna(row.get("bound_low")):
        notes.append(f"{row['bound_low']:.1f} to {row['bound_high']:.1f} with them")
    if row["value"] - row.get("if_refusals_incorrect", row["value"]) > TINY:
        notes.append(f"{row['if_refusals_incorrect']:.1f} with refusals as wrong")
    return f"{cell} ({', '.join(notes)})" if notes else cell


def _count(row: TableRow, name: str) -> int:
    """A count of a row; 0 where it has none, as a printed one."""
    count = row.get(name, 0)
    return 0 if pd.isna(count) else int(count)


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
    place = _PLACES.get(clue_position, others)
    return results.assign(clue_position=results["setting"].map({"one_in_k": place}).fillna(""))


def _name(row: TableRow) -> str:
    setting, m = str(row["setting"]), row.get("m")
    name = setting_name(setting)
    if pd.isna(m):
        return name
    if setting == "m_gt":
        return f"{m:.0f} GT"
    if setting == "m_in_k":
        return f"{m:.0f}-in-{row['k']:.0f}"
    return name if setting in SETTING_NAMES else f"{name}, m = {m:.0f}"
