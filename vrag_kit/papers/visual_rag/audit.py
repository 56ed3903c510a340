"""Parts of the audit in `16_paper_audit`: the number of queries behind percentages, the paper's
text against its tables, and an upper bound of nDCG@30.

The standard nDCG, recall, hit count and the mean number of clues are all linear in two kinds of
unknowns: the share of queries that have R clues, p(R), and the share that have R clues *and* one
of them at rank r, h(R, r). Whatever the ranking, h(R, r) ≤ p(R), Σ_r h(R, r) ≤ R p(R), and Σ_R
p(R) = 1. The largest nDCG@30 under these rules and the published numbers is a linear programme.
Real queries obey more rules than these (there are 374 of them, each image has one place), so no
ranking can exceed the bound; it need not be reached.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd

from vrag_kit.papers.audit import AGREES, CONTRADICTS, audit_rows
from vrag_kit.papers.published import published
from vrag_kit.papers.visual_rag.published import PAPER_QUERIES
from vrag_kit.papers.visual_rag.statements import STATEMENTS, published_scores, statement_numbers


def published_tables() -> dict[int | str, pd.DataFrame]:
    """Returns the audited tables of the Visual-RAG paper: number → table, and "section3". They are
    as `published` gives them, but Table 2's nDCG has its printed name, "ndcg".
    """
    names = (2, 3, 5, 6, 7, 8, 9, 13, 14, 15, 16, "section3")
    tables: dict[int | str, pd.DataFrame] = {name: published("visual_rag", name) for name in names}
    return tables | {2: tables[2].replace({"metric": {"ndcg_visual_rag": "ndcg"}})}


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
        scores = published_scores(tables[statement.table], int(statement.table))
        numbers = statement_numbers(statement, scores)
        found = [number.value for number in numbers.values()]
        table = audit_rows("text vs. tables", statement.table, list(numbers), np.nan, found, np.nan)
        holds = list(map(statement.holds, found))
        note = f"section {statement.section}: {statement.says}, expected {statement.expected}"
        rows.append(table.assign(finding=np.where(holds, AGREES, CONTRADICTS), note=note))
    return pd.concat(rows, ignore_index=True)


DEPTH = 30
MOST_CLUES = 100
"""Maximum number of clues per query.

The paper admits up to 25 % of 200 to 300 images, so 75; a larger maximum hardly raises the bound,
and slows the solver.
"""
HALF_UNIT = 0.005
"""Half a unit of the second decimal: every number stands for the interval that rounds to it."""
Known = Sequence[tuple[str, int]]
GIVEN: dict[str, Known] = {
    "recall and hit count at 30, nDCG at 1, 5, 10, 20": (
        *(("recall", 30), ("hit_count", 30)),
        *product(["ndcg"], (1, 5, 10, 20)),
    ),
    "recall and hit count at every cut-off": tuple(
        product(("recall", "hit_count"), (1, 5, 10, 20, 30))
    ),
}
"""Cells of Table 2 that the bounds take as given. The second set contains no nDCG."""


def ndcg_bound(
    table: pd.DataFrame, retriever: str, known: Known, *, clues: float, most: int = MOST_CLUES
) -> float:
    """Computes the upper bound of the mean standard nDCG@30 in percent, [0, 100], given the cells
    `known` (metric, k) of `published("visual_rag", table=2)`.

    `clues` is the mean number of clues per query. Recall is the mean over queries of hits/R. NaN if
    no ranking of queries with 1 to `most` clues matches all given numbers. Metrics are recall,
    hit_count and ndcg; KeyError names another metric, or a cell that is not in the table.
    """
    from scipy import sparse
    from scipy.optimize import linprog

    relevant, discount = np.arange(1, most + 1), 1 / np.log2(np.arange(2, DEPTH + 2))
    published = table[table["retriever"] == retriever].set_index(["metric", "k"])["value"]
    targets = np.array([*(float(published[cell]) for cell in known), clues])
    of_clues = np.r_[relevant, np.zeros(most * DEPTH)]
    numbers = [*(_of_hits(metric, k, relevant, discount) for metric, k in known), of_clues]
    # h(R, r) − p(R) ≤ 0, and Σ_r h(R, r) − R p(R) ≤ 0
    shares, hits = sparse.identity(most), sparse.identity(most * DEPTH)
    each = sparse.hstack([-sparse.kron(shares, np.ones((DEPTH, 1))), hits])
    sums = sparse.kron(shares, np.ones((1, DEPTH)))
    together = sparse.hstack([-sparse.diags(relevant.astype(float)), sums])
    rules = sparse.vstack([each, together])
    solution = linprog(
        -_of_hits("ndcg", DEPTH, relevant, discount),
        A_ub=sparse.vstack([rules, numbers, np.negative(numbers)], format="csr"),
        b_ub=np.r_[np.zeros(rules.shape[0]), targets + HALF_UNIT, HALF_UNIT - targets],
        A_eq=np.r_[np.ones(most), np.zeros(most * DEPTH)][None],
        b_eq=[1.0],
        method="highs",
    )
    return math.nan if solution.status == 2 else -solution.fun  # 2: infeasible


def _of_hits(metric: str, k: int, relevant: np.ndarray, discount: np.ndarray) -> np.ndarray:
    """The metric at k as coefficients of the unknowns, shape (most · 31,): p(R) first,
    then h(R, r) row by row; shares in percent.
    """
    gains = {
        "hit_count": np.ones((1, DEPTH)),
        "recall": 100 / relevant[:, None],
        "ndcg": 100 * discount / np.cumsum(discount)[np.minimum(relevant, k) - 1][:, None],
    }[metric]
    within = gains * (np.arange(DEPTH) < k)
    of_hits = np.broadcast_to(within, (len(relevant), DEPTH)).ravel()
    return np.concatenate([np.zeros(len(relevant)), of_hits])
