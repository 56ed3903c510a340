"""Upper bound of nDCG@30 over all rankings that match the published numbers, by linear programming.

The standard nDCG, recall, hit count and the mean number of clues are all linear in two kinds of
unknowns: the share of queries that have R clues, p(R), and the share that have R clues *and* one
of them at rank r, h(R, r). Whatever the ranking, h(R, r) ≤ p(R), Σ_r h(R, r) ≤ R p(R), and Σ_R
p(R) = 1. The largest nDCG@30 under these rules and the published numbers is a linear programme.
Real queries obey more rules than these (there are 374 of them, each image has one place), so no
ranking can exceed the bound; it need not be reached.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from scipy import sparse

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
    table: pd.DataFrame,
    retriever: str,
    known: Known,
    *,
    clues: float | None,
    most: int = MOST_CLUES,
) -> float:
    """Computes the upper bound of the mean standard nDCG@30 in percent, [0, 100], given the cells
    `known` (metric, k) of `published("visual_rag", table=2)`.

    `clues` is the mean number of clues per query; None leaves it open. Recall is the mean over
    queries of hits/R. NaN if no ranking of queries with 1 to `most` clues matches all given
    numbers. Metrics are recall, hit_count and ndcg; KeyError names another metric, or a cell that
    is not in the table.
    """
    from scipy import sparse
    from scipy.optimize import linprog

    relevant, discount = np.arange(1, most + 1), 1 / np.log2(np.arange(2, DEPTH + 2))
    published = table[table["retriever"] == retriever].set_index(["metric", "k"])["value"]
    targets = [float(published[cell]) for cell in known]
    rows = [_of_hits(metric, k, relevant, discount) for metric, k in known]
    if clues is not None:
        rows.append(np.r_[relevant, np.zeros(most * DEPTH)])
        targets.append(clues)
    rules, middle = _rules(relevant), np.array(targets)
    numbers = np.array(rows).reshape(len(rows), most * (1 + DEPTH))
    solution = linprog(
        -_of_hits("ndcg", DEPTH, relevant, discount),
        A_ub=sparse.vstack([rules, numbers, -numbers], format="csr"),
        b_ub=np.r_[np.zeros(rules.shape[0]), middle + HALF_UNIT, HALF_UNIT - middle],
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


def _rules(relevant: np.ndarray) -> sparse.csr_matrix:
    """Rows ≤ 0: h(R, r) − p(R), and Σ_r h(R, r) − R p(R) where R < 30 (implied by the
    first elsewhere).
    """
    from scipy import sparse

    most, few = len(relevant), relevant < DEPTH
    shares, hits = sparse.identity(most), sparse.identity(most * DEPTH)
    each = sparse.hstack([-sparse.kron(shares, np.ones((DEPTH, 1))), hits])
    of_query = sparse.kron(shares, np.ones((1, DEPTH)))
    clues = sparse.diags(relevant.astype(float))
    together = sparse.hstack([-clues, of_query]).tocsr()[few]
    return sparse.vstack([each, together], format="csr")
