"""Parts of the audit in `16_paper_audit`: statistics of published runs, the number of queries
behind percentages, and the paper's text against its tables.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from vrag_kit.papers.audit import AGREES, CELL, CONTRADICTS, audit_rows
from vrag_kit.papers.published import published
from vrag_kit.papers.statements import SUPPORTED
from vrag_kit.papers.visual_rag.published import PAPER_QUERIES
from vrag_kit.papers.visual_rag.statements import STATEMENTS, published_arms, statement_numbers

RUN_TABLES = (13, 14, 15, 16)
"""Numbers of the tables with the five runs of each cell (footnotes 4 and 6)."""


def published_tables() -> dict[int | str, pd.DataFrame]:
    """Returns the audited tables of the Visual-RAG paper: number → table, and "section3". They are
    as `published` gives them, but Table 2's nDCG has its printed name, "ndcg".
    """
    names = (2, 3, 5, 6, 7, 8, 9, *RUN_TABLES, "section3")
    tables: dict[int | str, pd.DataFrame] = {name: published("visual_rag", name) for name in names}
    return tables | {2: tables[2].replace({"metric": {"ndcg_visual_rag": "ndcg"}})}


def run_statistics(tables: Mapping[int | str, pd.DataFrame]) -> pd.DataFrame:
    """Computes statistics of the cells with runs in Tables 13 to 16: table, model, setting, k, runs
    (a tuple), mean, sd (by n − 1), sd_population (by n), avg and std (published, or NaN).
    """
    chosen = {number: tables[number] for number in RUN_TABLES}
    table = pd.concat(chosen, names=["table"]).reset_index("table")
    cell = ["table", *CELL]
    ordered = table[table["run"].notna()].sort_values(["table", "run"], kind="stable")
    runs = ordered.groupby(cell, sort=False)["value"]
    cells = runs.agg(runs=tuple, mean="mean", sd="std", sd_population=lambda each: each.std(ddof=0))
    printed = table[table["statistic"].isin(["avg", "std"])]
    wide = printed.pivot(index=cell, columns="statistic", values="value")
    statistics: pd.DataFrame = cells.join(wide.reindex(columns=["avg", "std"])).reset_index()
    return statistics


def query_counts(percentages: pd.Series) -> pd.DataFrame:
    """Ranks candidates for the number n of queries behind means of one run each, best first: from
    200 to 375 (much smaller ones fit in part, if they have a factor in common with the true one).
    Columns: n, fits, by_chance, cells.

    `fits` counts the percentages, published with two decimals, that are a multiple of 0.5/n up to
    rounding, as most verdicts are 0, 0.5 or 1 (a cell that does not fit proves nothing);
    `by_chance` is the count expected for numbers unrelated to n, `cells` the number of percentages.
    Of ties the paper's 374 is first, then the smallest n.
    """
    values, n = np.asarray(percentages, dtype=float), np.arange(200, 376)
    steps, rounding = 100 * 0.5 / n, 0.0051
    distance = np.abs(values[:, None] - steps * np.round(values[:, None] / steps))
    fits, by_chance = (distance <= rounding).sum(axis=0), len(values) * 2 * rounding / steps
    table = pd.DataFrame({"n": n, "fits": fits, "by_chance": by_chance, "cells": len(values)})
    order = np.lexsort((n, n != PAPER_QUERIES, -fits))
    return table.iloc[order].reset_index(drop=True)


def check_text(tables: Mapping[int | str, pd.DataFrame]) -> pd.DataFrame:
    """Compares what the paper's text says of its tables (`STATEMENTS`) with the tables: one row per
    number, as in `audit_rows`. Nothing is printed for these numbers: `note` has the statement and
    the range in which `recomputed` must lie.
    """
    rows = []
    for statement in STATEMENTS:
        arms = published_arms(tables[statement.table], int(statement.table))
        numbers = statement_numbers(statement, arms)
        found = [number.value for number in numbers.values()]
        table = audit_rows("text vs. tables", statement.table, list(numbers), np.nan, found, np.nan)
        holds = [statement.verdict(*number[:3]) == SUPPORTED for number in numbers.values()]
        note = f"section {statement.section}: {statement.says}, expected {statement.expected}"
        rows.append(table.assign(finding=np.where(holds, AGREES, CONTRADICTS), note=note))
    return pd.concat(rows, ignore_index=True)
