"""Several runs made one by reciprocal rank: what many rank high comes first."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.frames import RUN
from vrag_kit.retrieval.run import make_run

K0 = 60
"""As Cormack, Clarke & Büttcher chose it."""
Share = tuple[float, int]
"""(weight of a run, rank of a document in it)."""


def fuse(
    runs: Mapping[str, pd.DataFrame],
    *,
    k0: float = K0,
    weights: Mapping[str, float] | None = None,
    depth: int | None = None,
) -> pd.DataFrame:
    """One run of all that several runs (by name) found: the score of a document is the
    sum over the runs of weight / (k0 + rank), to which a run that did not find it adds
    nothing; ties by doc_id descending.

    Only the first `depth` documents of each run count; None counts all. `weights` has
    one of 0 or more for each run, 1 by default; what has a score of 0 is no result.
    Sums do not hang on the order of the runs. Raises `VragError` without a run, for a
    rank below 1, a document that a run ranks twice for a query, weights for other runs,
    and for a k0 below 0 or a depth below 1.

    Cormack, Clarke & Büttcher (2009), "Reciprocal rank fusion outperforms Condorcet and
    individual rank learning methods", SIGIR.
    """
    _check(runs, k0, weights, depth)
    shares: dict[tuple[str, str], list[Share]] = defaultdict(list)
    for name, run in runs.items():
        weight = 1.0 if weights is None else weights[name]
        top = run if depth is None else run[run["rank"] <= depth]
        for query_id, doc_id, rank in top[["query_id", "doc_id", "rank"]].itertuples(index=False):
            shares[query_id, doc_id].append((weight, int(rank)))
    known: dict[tuple[Share, ...], float] = {}
    rows: list[tuple[str, str, float]] = []
    for (query_id, doc_id), each in shares.items():
        key = tuple(sorted(each))
        if key not in known:
            known[key] = _score(key, k0)
        if known[key] > 0:
            rows.append((query_id, doc_id, known[key]))
    return make_run(rows)


def _score(shares: tuple[Share, ...], k0: float) -> float:
    """The sum of weight / (k0 + rank), rounded once: equal sums of other ranks, such as
    1/63 + 1/84 and 1/72 + 1/72, are equal.
    """
    parts = [Fraction(weight) / (Fraction(k0) + rank) for weight, rank in shares]
    return float(sum(parts))


def _check(
    runs: Mapping[str, pd.DataFrame],
    k0: float,
    weights: Mapping[str, float] | None,
    depth: int | None,
) -> None:
    if not runs or not 0 <= k0 < math.inf or (depth is not None and depth < 1):
        raise VragError(
            f"fuse: {len(runs)} runs, k0 = {k0}, depth = {depth}; expected at least one run, k0 of"
            " 0 or more, and a depth of 1 or more, or None."
        )
    for name, run in runs.items():
        RUN.check(run, ["query_id", "doc_id", "rank"], f"fuse, run {name!r}")
        twice = run[run.duplicated(["query_id", "doc_id"])]
        if len(twice):
            query_id, doc_id = twice.iloc[0][["query_id", "doc_id"]]
            raise VragError(
                f"fuse: the run {name!r} ranks document {doc_id!r} twice for query {query_id!r};"
                " expected each once. Make it by `make_run`, or read it by `read_run`."
            )
    if weights is None:
        return
    good = set(weights) == set(runs) and all(0 <= each < math.inf for each in weights.values())
    if not good:
        raise VragError(
            f"fuse: weights are {dict(weights)}; expected a number of 0 or more for each of"
            f" {', '.join(runs)}."
        )
