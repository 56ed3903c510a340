"""Audit of the paper: each published number that follows from others is recomputed.

The audit is a table with one row per checked quantity. It shows that two published numbers
contradict each other, not which of them is incorrect, nor why. Differences explained by rounding
are no contradictions, nor are numbers that are unpublished or based on other queries.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import numpy as np
import pandas as pd

from vrag_kit.analysis.agreement import STRICT, agreement
from vrag_kit.papers.audit import (
    AGREES,
    CELL,
    CONTRADICTS,
    LAST_DIGIT,
    NOT_COMPARABLE,
    ROUNDING,
    SAME,
    Tolerance,
    audit_rows,
)
from vrag_kit.papers.published import published
from vrag_kit.papers.statements import SUPPORTED
from vrag_kit.papers.visual_rag.audit_runs import audit_runs
from vrag_kit.papers.visual_rag.cells import published_cells
from vrag_kit.papers.visual_rag.ndcg_bound import HALF_UNIT, ndcg_bounds
from vrag_kit.papers.visual_rag.partial_labels import READINGS, expand_confusion
from vrag_kit.papers.visual_rag.printed import PAPER_QUERIES
from vrag_kit.papers.visual_rag.query_counts import query_counts
from vrag_kit.papers.visual_rag.statements import STATEMENTS, Tables

RUNS = 5
"""Runs per cell (footnotes 4 and 6)."""
JUDGED_BY_HAND = 200
"""Number of answers that a person judged too (section 5.1)."""
MACRO_F1 = 0.92
"""Agreement of person and judge as macro-F1 (Table 9)."""


def published_tables() -> dict[int | str, pd.DataFrame]:
    """Returns the audited tables of the Visual-RAG paper: number → table, and "section3". They are
    as `published` gives them, but Table 2's nDCG has its printed name, "ndcg".
    """
    names = (2, 3, 5, 6, 7, 8, 9, 13, 14, 15, 16, "section3")
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
    several = (audit_runs, _repeats, _counts)
    checks = list(chain.from_iterable(check(tables) for check in several))
    single = (_queries, _macro_f1, _bounds, _statements)
    checks += [check(tables) for check in single]
    return pd.concat(checks, ignore_index=True)


def _repeats(tables: Tables) -> Iterable[pd.DataFrame]:
    """Numbers that two tables print, or two rows of one."""
    single = tables[13]["statistic"] == "single"
    best = tables[6][tables[6]["setting"].isin(["zero_shot", "rag_best"])].drop(columns="m")
    parts = {
        5: tables[5][tables[5]["dataset"] == "iNat21"].drop(columns="dataset"),
        7: tables[7][tables[7]["setting"] == "one_in_k"],
        13: tables[13][single],
        6: best.replace({"setting": {"rag_best": "top_k"}}),
    }
    for number, part in parts.items():
        both = part.merge(tables[3], on=CELL, suffixes=("", "_main"))
        check, where = "the same cell in two tables", f"{number}, 3"
        rows = audit_rows(check, where, both, both["value"], both["value_main"], SAME)
        yield _subset(rows) if number == 6 else rows
    at_1 = tables[2][tables[2]["k"] == 1]
    first = at_1.pivot(index="retriever", columns="metric", values="value").reset_index()
    yield audit_rows("nDCG@1 = Hit@1", 2, first, first["ndcg"], first["hit"], SAME)
    share = first["hit"] / 100
    yield audit_rows("hit count@1 = Hit@1", 2, first, first["hit_count"], share, LAST_DIGIT)


def _subset(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of Table 6, which is "on the subset of queries with sufficient clues"
    (appendix B.2): what differs from a table on all queries contradicts nothing.
    """
    other = rows["finding"] == CONTRADICTS
    note = np.where(other, "Table 6 is on a subset of the queries of Table 3", "")
    return rows.assign(finding=rows["finding"].mask(other, NOT_COMPARABLE), note=note)


def _counts(tables: Tables) -> Iterable[pd.DataFrame]:
    """Shares that count queries or answers; and totals that the text prints."""
    hits, idk = tables[2][tables[2]["metric"] == "hit"], tables[8]
    single = idk["setting"].isin(["zero_shot", "non_clue", "top_k"])
    yield _whole(2, hits, 1)
    yield _whole(8, idk[single], 1)
    yield _whole(8, idk[~single], RUNS)
    known = tables["section3"].set_index("statistic")["value"]
    share = 100 * known["queries"] * known["clues a query, mean"] / known["query-image pairs"]
    printed, check = [known["clue share of pairs"]], "share of clues from counts"
    yield audit_rows(check, "section 3", ["all pairs"], printed, [share], LAST_DIGIT)
    total, where = [tables[9]["count"].sum()], ["sum of the matrix"]
    yield audit_rows("number of hand-judged answers", 9, where, JUDGED_BY_HAND, total, SAME)


def _whole(number: int, cells: pd.DataFrame, runs: int) -> pd.DataFrame:
    """Whether shares in percent are those of a whole number of answers, of one run or
    of several; the mean of several rounded shares may be no such share itself.
    """
    shares, n = cells["value"], runs * PAPER_QUERIES
    nearest = 100 / n * np.round(shares * n / 100)
    notes = [f"{share * n / 100:.2f} of {n:,}" for share in shares]
    close = ROUNDING["avg"] if runs > 1 else LAST_DIGIT
    check = f"count consistency (n = {n:,})"
    return audit_rows(check, number, cells, shares, nearest, close).assign(note=notes)


def _queries(tables: Tables) -> pd.DataFrame:
    """How many queries cells of one run rest on.

    The paper has 374; it states neither how many have species in iNat24 (Table 5), nor
    how many are in the subset of Table 6. Table 3 shows how well this works.
    """
    single, rows = ["zero_shot", "non_clue", "top_k"], []
    stated: dict[tuple[int, str], tuple[float, pd.Series]] = {
        (3, ", ".join(single)): (PAPER_QUERIES, tables[3]["setting"].isin(single))
    }
    for name, n in (("iNat21", PAPER_QUERIES), ("iNat24", np.nan)):
        stated[5, name] = (n, tables[5]["dataset"] == name)
    for settings, n in _TABLE_6.items():
        chosen = tables[6]["setting"].replace("m_in_k", "m_in_10").isin(settings)
        stated[6, ", ".join(settings)] = (n, chosen)
    for (number, name), (n, chosen) in stated.items():
        best, note = _best_count(tables[number].loc[chosen, "value"])
        row = audit_rows("number of queries", number, [name], n, [best], SAME)
        silent = "n is not stated: " if np.isnan(n) else ""
        rows.append(row.assign(note=silent + note))
    return pd.concat(rows, ignore_index=True)


_TABLE_6: dict[tuple[str, ...], float] = {
    ("zero_shot", "rag_best"): np.nan,
    ("text_rag",): PAPER_QUERIES,
    ("m_gt",): np.nan,
    ("m_in_10",): np.nan,
}
"""Settings of Table 6 that share their queries → how many are stated."""


def _best_count(values: pd.Series) -> tuple[int, str]:
    """(the number of queries that the cells fit best, the paper's where that is among
    them; how well it and the next best fit).
    """
    counts = query_counts(values)
    best = counts[counts["fits"] == counts["fits"].max()].set_index("n")
    n = int(PAPER_QUERIES if PAPER_QUERIES in best.index else best.index[0])
    following = counts[counts["n"] != n].iloc[0]
    return n, (
        f"{best['fits'][n]} of {len(values)} cells are whole multiples of 0.5/{n},"
        f" {best['by_chance'][n]:.1f} by chance; next best {following['n']:.0f} with"
        f" {following['fits']:.0f}"
    )


def _macro_f1(tables: Tables) -> pd.DataFrame:
    """The printed macro-F1 and the nearest one under the readings of "partial" that
    make it a wildcard, as the paper says it does, and under any reading.
    """
    table = agreement(expand_confusion(tables[9]), READINGS).query("metric == 'macro_f1'")
    scores = table.set_index("label_mapping")["value"].reindex(list(READINGS))
    wild = [name for name in READINGS if name != STRICT and not name.startswith("partial is")]
    nearest = {
        f"{len(part)} label mappings{kind}": (part - MACRO_F1).abs().idxmin()
        for kind, part in ((" with a wildcard", scores[wild]), ("", scores))
    }
    found = scores.reindex(list(nearest.values()))
    notes = [f"nearest: {name}" for name in nearest.values()]
    rows = audit_rows(
        "macro-F1 of the judge", 9, list(nearest), MACRO_F1, found, Tolerance(HALF_UNIT)
    )
    return rows.assign(note=notes)


def _bounds(tables: Tables) -> pd.DataFrame:
    """nDCG@30 of Table 2 against the largest value that any ranking could have: the
    most generous of the bounds, as `printed` contradicts them all if it does that one.
    """
    clues = tables["section3"].set_index("statistic")["value"]["clues a query, mean"]
    bounds = ndcg_bounds(tables[2], clues=clues)
    by_retriever = bounds.groupby("retriever", sort=False)
    widest = by_retriever.agg(reported=("reported", "first"), bound=("bound", "max")).reset_index()
    notes = ["; ".join(_bound(row) for _, row in part.iterrows()) for _, part in by_retriever]
    check, printed = "nDCG@30 under its upper bound", widest["reported"]
    rows = audit_rows(check, 2, widest, printed, widest["bound"], Tolerance(HALF_UNIT))
    below = rows["reported"] <= rows["recomputed"] + HALF_UNIT
    return rows.assign(finding=np.where(below, AGREES, CONTRADICTS), note=notes)


def _bound(row: pd.Series) -> str:
    """A bound in words."""
    if np.isnan(row["bound"]):
        return f"no ranking has {row['given']}"
    return f"at most {row['bound']:.1f} given {row['given']}"


def _statements(tables: Tables) -> pd.DataFrame:
    """What the text says of its tables: see `STATEMENTS`."""
    rows = []
    for statement in STATEMENTS:
        numbers = statement.evaluate(published_cells(tables, statement.table))
        note = f"section {statement.section}: {statement.says}, expected {statement.expected}"
        found = [number.value for number in numbers.values()]
        check, where = "text vs. tables", list(numbers)
        table = audit_rows(check, statement.table, where, np.nan, found, Tolerance(np.nan))
        holds = [statement.verdict(number) == SUPPORTED for number in numbers.values()]
        rows.append(table.assign(finding=np.where(holds, AGREES, CONTRADICTS), note=note))
    return pd.concat(rows, ignore_index=True)
