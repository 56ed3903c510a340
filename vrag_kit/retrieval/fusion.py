"""Reciprocal rank fusion of several runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from functools import cache

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.frames import require_columns
from vrag_kit.retrieval.runs import make_run

K0 = 60
"""The constant k of Cormack, Clarke & Büttcher."""


def reciprocal_rank_fusion(runs: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Fuses several runs (by name) into one run by reciprocal rank. A document's score is the sum
    of 1 / (60 + rank) over the runs that found it; ties are ordered by doc_id descending.

    The order of the runs does not matter. Raises `VragError` without a run, and for a document that
    a run ranks twice for a query.

    Cormack, Clarke & Büttcher (2009), "Reciprocal rank fusion outperforms Condorcet and individual
    rank learning methods", SIGIR.
    """
    if not runs:
        raise VragError("fuse: 0 runs; expected at least one.")
    ranks: dict[tuple[str, str], list[int]] = defaultdict(list)
    for name, run in runs.items():
        _check(name, run)
        for query_id, doc_id, rank in run[["query_id", "doc_id", "rank"]].itertuples(index=False):
            ranks[query_id, doc_id].append(int(rank))
    return make_run([(*pair, _score(tuple(sorted(each)))) for pair, each in ranks.items()])


@cache
def _score(ranks: tuple[int, ...]) -> float:
    """The sum of 1 / (k0 + rank), rounded once: equal sums of other ranks, such as
    1/63 + 1/84 and 1/72 + 1/72, are equal.
    """
    return float(sum(Fraction(1, K0 + rank) for rank in ranks))


def _check(name: str, run: pd.DataFrame) -> None:
    require_columns(run, ["query_id", "doc_id", "rank"], f"fuse, run {name!r}")
    twice = run[run.duplicated(["query_id", "doc_id"])]
    if len(twice):
        query_id, doc_id = twice.iloc[0][["query_id", "doc_id"]]
        raise VragError(
            f"fuse: the run {name!r} ranks document {doc_id!r} twice for query {query_id!r};"
            " expected each once. Make it by `make_run`, or read it by `read_run`."
        )
