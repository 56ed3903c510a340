"""Audit of the paper: each published number that follows from others is recomputed, as `checks.csv`
says, and its text is compared with its tables.

The audit is a table with one row per checked quantity. It shows that two published numbers
contradict each other, not which of them is incorrect, nor why. Differences explained by rounding
are no contradictions, nor are numbers that are unpublished or based on other queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from vrag_kit.analysis.agreement import STRICT, agreement
from vrag_kit.papers.audit import AGREES, CELL, CONTRADICTS, audit_rows, cell_labels, run_checks
from vrag_kit.papers.published import published
from vrag_kit.papers.statements import SUPPORTED
from vrag_kit.papers.visual_rag.abstention import READINGS, expand_confusion
from vrag_kit.papers.visual_rag.ndcg_bound import ndcg_bounds
from vrag_kit.papers.visual_rag.published import PAPER_QUERIES
from vrag_kit.papers.visual_rag.statements import STATEMENTS, published_arms, statement_numbers

Tables = Mapping[int | str, pd.DataFrame]
MACRO_F1 = 0.92
"""Agreement of person and judge as macro-F1 (Table 9)."""
RUN_TABLES = (13, 14, 15, 16)
"""Numbers of the tables with the five runs of each cell (footnotes 4 and 6)."""
_DIGITS = {"avg": ("mean", 0.0051), "std": ("sd", 0.0006)}
"""Maps a published statistic of runs to ours, and half a unit of its last digit with a margin."""
_SINGLE_RUNS: tuple[tuple[int, str, list[str], float], ...] = (
    (3, "setting", ["zero_shot", "non_clue", "top_k"], PAPER_QUERIES),
    (5, "dataset", ["iNat21"], PAPER_QUERIES),
    (5, "dataset", ["iNat24"], np.nan),
    (6, "setting", ["zero_shot", "rag_best"], np.nan),
    (6, "setting", ["text_rag"], PAPER_QUERIES),
    (6, "setting", ["m_gt"], np.nan),
    (6, "setting", ["m_in_10"], np.nan),
)
"""Cells of one run that share their queries: table, column, its values, and how many queries are
stated. The paper states neither how many have species in iNat24 (Table 5), nor how many are in the
subset of Table 6.
"""


def published_tables() -> dict[int | str, pd.DataFrame]:
    """Returns the audited tables of the Visual-RAG paper: number → table, and "section3". They are
    as `published` gives them, but Table 2's nDCG has its printed name, "ndcg".
    """
    names = (2, 3, 5, 6, 7, 8, 9, *RUN_TABLES, "section3")
    tables: dict[int | str, pd.DataFrame] = {name: published("visual_rag", name) for name in names}
    return tables | {2: tables[2].replace({"metric": {"ndcg_visual_rag": "ndcg"}})}


def audit(tables: Tables | None = None) -> pd.DataFrame:
    """Runs every check of the audit. Columns: check, table, cell, reported, recomputed, tolerance,
    finding, note.

    Values are in the unit of the table. `finding` is one of `FINDINGS`: "agrees", "consistent with
    rounding", "not comparable" (`note` says why), "contradicts". Where odd cells are counted,
    `reported` is 0, the expected count. For an upper bound, any number up to it agrees. A statement
    of the text has no published number: its `note` gives the range in which `recomputed` must lie.
    `tables` are `published_tables()` by default, and must have all of those.
    """
    tables = published_tables() if tables is None else tables
    frames = _runs(tables) | _repeats(tables)
    frames |= {"queries": _queries(tables), "t9": _macro_f1(tables[9]), "ndcg": _bounds(tables)}
    checks = [*run_checks("visual_rag", frames), *_statements(tables)]
    return pd.concat(checks, ignore_index=True)


def run_statistics(table: pd.DataFrame) -> pd.DataFrame:
    """Computes statistics of the cells with runs in one of Tables 13 to 16: model, setting, k, runs
    (a tuple), mean, sd (by n − 1), sd_population (by n), avg and std (published, or NaN).
    """
    ordered = table[table["run"].notna()].sort_values("run", kind="stable")
    runs = ordered.groupby(CELL, sort=False, dropna=False)["value"]
    cells = runs.agg(runs=tuple, mean="mean", sd="std", sd_population=lambda each: each.std(ddof=0))
    summary = table[table["statistic"].isin(_DIGITS)]
    wide = summary.pivot(index=CELL, columns="statistic", values="value")
    return cells.reset_index().merge(wide.reindex(columns=list(_DIGITS)), on=CELL, how="left")


def query_counts(percentages: Sequence[float] | pd.Series) -> pd.DataFrame:
    """Ranks candidates for the number n of queries behind means of one run each, best first: from
    200 to 375 (much smaller ones fit in part, if they have a factor in common with the true one).
    Columns: n, fits, by_chance.

    `fits` counts the percentages, published with two decimals, that are a multiple of 0.5/n up to
    rounding, as most verdicts are 0, 0.5 or 1 (a cell that does not fit proves nothing);
    `by_chance` is the count expected for numbers unrelated to n. Ties are in ascending order of n.
    """
    values, n = np.asarray(percentages, dtype=float), np.arange(200, 376)
    steps, rounding = 100 * 0.5 / n, 0.0051
    distance = np.abs(values[:, None] - steps * np.round(values[:, None] / steps))
    fits, by_chance = (distance <= rounding).sum(axis=0), len(values) * 2 * rounding / steps
    table = pd.DataFrame({"n": n, "fits": fits, "by_chance": by_chance})
    return table.sort_values("fits", ascending=False, kind="stable", ignore_index=True)


def _runs(tables: Tables) -> dict[str, pd.DataFrame]:
    """Statistics of the runs in Tables 13 to 16, and beside Table 3."""
    frames = {}
    for number in RUN_TABLES:
        cells = run_statistics(tables[number])
        cells = cells.assign(name=cell_labels(cells), table=number, cells=len(cells))
        cells["of_n"] = ((cells["std"] - cells["sd_population"]).abs() <= _DIGITS["std"][1]).sum()
        for statistic in _DIGITS:
            cells[f"{statistic}_note"] = _fits_runs_of(cells, statistic)
        frames[f"t{number}"] = cells
        frames[f"t3_t{number}"] = cells.merge(tables[3], on=CELL)
    every = pd.concat([frames[f"t{number}"] for number in RUN_TABLES])
    first = every.groupby("runs")[["name", "table"]].transform("first")
    text = "the same {} runs, in the same order, as {} (Table {})".format
    notes = map(text, every["runs"].str.len(), first["name"], first["table"])
    every["same_runs"] = np.where(every["runs"].duplicated(), list(notes), "")
    return frames | {f"t{number}": part for number, part in every.groupby("table")}


def _fits_runs_of(cells: pd.DataFrame, statistic: str) -> list[str]:
    """Of a printed statistic that does not fit its runs: which cells of the same model it fits."""
    (ours, within), notes = _DIGITS[statistic], []
    for row in cells.to_dict("records"):
        close = (cells[ours] - row[statistic]).abs() <= within
        fits = list(cells["name"][close & (cells["model"] == row["model"])])
        note = f"fits the runs of {'; '.join(fits) or 'no cell of this model'}"
        if pd.isna(row[statistic]):
            note = "lost from the text, or not printed"
        notes.append("" if row["name"] in fits else note)
    return notes


def _repeats(tables: Tables) -> dict[str, pd.DataFrame]:
    """Numbers that two tables print, or two rows of one; shares as counts of answers; and the
    totals of the text, in one row.
    """
    best = tables[6][tables[6]["setting"].isin(["zero_shot", "rag_best"])].drop(columns="m")
    parts = {
        5: tables[5].query("dataset == 'iNat21'").drop(columns="dataset"),
        7: tables[7].query("setting == 'one_in_k'"),
        13: tables[13].query("statistic == 'single'"),
        6: best.replace({"setting": {"rag_best": "top_k"}}),
    }
    frames = {}
    for number, part in parts.items():
        frames[f"t{number}_t3"] = part.merge(tables[3], on=CELL, suffixes=("", "_main"))
    first = tables[2].query("k == 1").pivot(index="retriever", columns="metric", values="value")
    frames["t2_first"] = first.reset_index()
    for name, cells in (("t2_hits", tables[2].query("metric == 'hit'")), ("t8", tables[8])):
        count = cells["value"] * PAPER_QUERIES / 100
        frames[name] = cells.assign(count=count, of_five_runs=5 * count)
    names = {"clue share of pairs": "share", "query-image pairs": "pairs"}
    names["clues a query, mean"] = "clues"
    totals = tables["section3"].set_index("statistic")[["value"]].T.rename(columns=names)
    return frames | {"totals": totals.assign(hand_judged=tables[9]["count"].sum())}


def _queries(tables: Tables) -> pd.DataFrame:
    """How many queries cells of one run rest on: the number that they fit best, the paper's where
    that is among them; and how well it and the next best fit. Table 3 shows how well this works.
    """
    rows = []
    for number, column, names, stated in _SINGLE_RUNS:
        table = tables[number].replace({"setting": {"m_in_k": "m_in_10"}})
        values = table["value"][table[column].isin(names)]
        counts = query_counts(values)
        best = counts[counts["fits"] == counts["fits"].max()].set_index("n")
        n = PAPER_QUERIES if PAPER_QUERIES in best.index else best.index[0]
        following = counts[counts["n"] != n].iloc[0]
        note = (
            f"{best['fits'][n]} of {len(values)} cells are whole multiples of 0.5/{n},"
            f" {best['by_chance'][n]:.1f} by chance; next best {following['n']:.0f} with"
            f" {following['fits']:.0f}"
        )
        silent = "n is not stated: " if np.isnan(stated) else ""
        rows.append((number, ", ".join(names), stated, n, silent + note))
    return pd.DataFrame(rows, columns=["table", "cells", "stated", "n", "remark"])


def _macro_f1(table: pd.DataFrame) -> pd.DataFrame:
    """The printed macro-F1 and the nearest one under the readings of "partial" that make it a
    wildcard, as the paper says it does, and under any reading.
    """
    scores = agreement(expand_confusion(table), READINGS).query("metric == 'macro_f1'")
    values = scores.set_index("label_mapping")["value"].loc[list(READINGS)]
    wild = [name != STRICT and not name.startswith("partial is") for name in values.index]
    nearest = []
    for kind, part in ((" with a wildcard", values[wild]), ("", values)):
        best = str((part - MACRO_F1).abs().idxmin())
        nearest.append((f"{len(part)} label mappings{kind}", part[best], f"nearest: {best}"))
    rows = pd.DataFrame(nearest, columns=["readings", "value", "remark"])
    return rows.assign(reported=MACRO_F1)


def _bounds(tables: Tables) -> pd.DataFrame:
    """nDCG@30 of Table 2 against the largest value that any ranking could have: the most generous
    of the bounds.
    """
    clues = tables["section3"].set_index("statistic")["value"]["clues a query, mean"]
    bounds = ndcg_bounds(tables[2], clues=clues)
    notes = "at most " + bounds["bound"].map("{:.1f}".format) + " given " + bounds["given"]
    notes = notes.where(bounds["bound"].notna(), "no ranking has " + bounds["given"])
    by_retriever = bounds.assign(remark=notes).groupby("retriever", sort=False)
    rows = by_retriever.agg({"reported": "first", "bound": "max", "remark": "; ".join})
    return rows.reset_index()


def _statements(tables: Tables) -> Iterator[pd.DataFrame]:
    """What the text says of its tables: see `STATEMENTS`."""
    for statement in STATEMENTS:
        arms = published_arms(tables[statement.table], int(statement.table))
        numbers = statement_numbers(statement, arms)
        found = [number.value for number in numbers.values()]
        check, where = "text vs. tables", list(numbers)
        table = audit_rows(check, statement.table, where, np.nan, found, np.nan)
        holds = [statement.verdict(*number[:3]) == SUPPORTED for number in numbers.values()]
        note = f"section {statement.section}: {statement.says}, expected {statement.expected}"
        yield table.assign(finding=np.where(holds, AGREES, CONTRADICTS), note=note)
