"""Audit of Tables 13 to 16: whether published means and deviations follow from the runs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from vrag_kit.papers.audit import CELL, ROUNDING, SAME, audit_rows, cell_labels
from vrag_kit.papers.visual_rag.statements import Tables


def run_statistics(table: pd.DataFrame) -> pd.DataFrame:
    """Computes statistics of the cells with runs in one of Tables 13 to 16: model, setting, k, runs
    (a tuple), mean, sd (by n − 1), sd_population (by n), avg and std (published, or NaN).
    """
    runs = (
        table[table["run"].notna()]
        .sort_values("run", kind="stable")
        .groupby(CELL, sort=False, dropna=False)["value"]
    )
    cells = pd.DataFrame(
        {
            "runs": runs.agg(tuple),
            "mean": runs.mean(),
            "sd": runs.std(ddof=1),
            "sd_population": runs.std(ddof=0),
        }
    ).reset_index()
    for statistic in ROUNDING:
        summary = table[table["statistic"] == statistic].rename(columns={"value": statistic})
        cells = cells.merge(summary[[*CELL, statistic]], on=CELL, how="left")
    return cells


def audit_runs(tables: Tables) -> Iterable[pd.DataFrame]:
    """Checks the means and deviations of Tables 13 to 16, Table 3 against the means, and identical
    runs in two cells.
    """
    seen: dict[tuple[float, ...], str] = {}
    for number in (13, 14, 15, 16):
        cells = run_statistics(tables[number])
        yield _summary(number, cells, "average of the runs", "avg", "mean")
        yield _summary(number, cells, "standard deviation of the runs (n − 1)", "std", "sd")
        fits = ((cells["std"] - cells["sd_population"]).abs() <= ROUNDING["std"].exact).sum()
        where = [f"any of {len(cells)} cells"]
        yield audit_rows(
            "standard deviations that match n, not n − 1", number, where, 0, fits, SAME
        )
        if number in (13, 15):
            yield _main_table(number, cells, tables[3])
        notes = _repeated(number, cells, seen)
        doubles = [bool(note) for note in notes]
        rows = audit_rows("cells with identical runs", number, cells, 0, doubles, SAME)
        yield rows.assign(note=notes)


def _summary(
    number: int, cells: pd.DataFrame, check: str, printed: str, computed: str
) -> pd.DataFrame:
    """One printed summary of the runs of a table against what they give."""
    rows = audit_rows(check, number, cells, cells[printed], cells[computed], ROUNDING[printed])
    return rows.assign(note=_same_as(cells, printed, computed))


def _main_table(number: int, cells: pd.DataFrame, main: pd.DataFrame) -> pd.DataFrame:
    both, check = cells.merge(main, on=CELL), "Table 3 = average of the runs"
    return audit_rows(check, f"3, {number}", both, both["value"], both["mean"], ROUNDING["avg"])


def _repeated(number: int, cells: pd.DataFrame, seen: dict[tuple[float, ...], str]) -> list[str]:
    """For each cell where else its runs were `seen`, or ""; what is new is added there."""
    notes = []
    for runs, where in zip(cells["runs"], cell_labels(cells), strict=True):
        same = f"the same {len(runs)} runs, in the same order, as {seen.get(runs)}"
        notes.append(same if runs in seen else "")
        seen.setdefault(runs, f"{where} (Table {number})")
    return notes


def _same_as(cells: pd.DataFrame, printed: str, computed: str) -> list[str]:
    """For a printed summary that does not fit its runs: which cells of the same model
    it does fit.
    """
    names, notes = pd.Series(cell_labels(cells)), []
    for own, (_, row) in zip(names, cells.iterrows(), strict=True):
        close = (cells[computed] - row[printed]).abs() <= ROUNDING[printed].exact
        fits = names[(cells["model"] == row["model"]) & close]
        if np.isnan(row[printed]):
            notes.append("lost from the text, or not printed")
        elif own in set(fits):
            notes.append("")
        elif len(fits):
            notes.append(f"fits the runs of {'; '.join(fits)}")
        else:
            notes.append("fits the runs of no cell of this model")
    return notes
