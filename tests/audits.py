"""What tests of the papers' audits read off them, and tables with a planted error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from conftest import ROOT

from vrag_kit.papers.audit import FINDINGS

Tables = Mapping[int | str, pd.DataFrame]


def run_notebook(name: str, folder: Path) -> dict[str, Any]:
    """Runs the cells of an audit's notebook, which saves its tables below the folder; returns what
    they define.
    """
    names: dict[str, Any] = {"display": lambda *_: None}  # Any: what cells define
    notebook = json.loads((ROOT / "notebooks" / name).read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(line for line in cell["source"] if line[0] != "%"), names)
            names["figures_dir"] = str(folder)
    return names


def found(
    checks: pd.DataFrame, check: str, *, digits: int
) -> dict[tuple[str, str], tuple[float, float]]:
    """The contradictions of one check: (table, cell) → (reported, recomputed to `digits`)."""
    rows = checks.query("finding == 'contradicts' and check == @check")
    told = {}
    for row in rows.itertuples():
        told[row.table, row.cell] = (row.reported, round(row.recomputed, digits))
    return told


def with_error(
    tables: Tables, number: int, place: int, *, column: str = "value", error: float
) -> dict[int | str, pd.DataFrame]:
    """The tables, one printed number of which is larger by `error`."""
    table = tables[number].copy()
    table.loc[place, column] += error
    return {**tables, number: table}


def summary(checks: pd.DataFrame) -> pd.DataFrame:
    """The number of each finding, in the order of `FINDINGS`, of each check."""
    counts = pd.crosstab(checks["check"], checks["finding"])
    return counts.reindex(index=checks["check"].unique(), columns=list(FINDINGS), fill_value=0)
