"""Clipping of cutoffs k to the number of documents that a benchmark offers."""

from __future__ import annotations

from collections.abc import Sequence

from vrag_kit.log import logger
from vrag_kit.types import Benchmark, QueryId


def clip_cutoffs(ks: Sequence[int], most: int, there: str) -> list[int]:
    """Clip the cutoffs `ks` to `most`, in their order and without duplicates. A warning is logged
    if any k is clipped.

    `there` describes the available documents, such as "query 'q1' has 12 candidates".
    """
    fitting = list(dict.fromkeys(min(k, most) for k in ks))
    larger = list(dict.fromkeys(k for k in ks if k > most))
    if larger:
        logger.warning(f"k = {', '.join(map(str, larger))} is cut to {most}: {there}")
    return fitting


def describe_run_depth(run: str, depth: int, benchmark: Benchmark, query_id: QueryId) -> str:
    """Describe how many documents a run holds for a query, as `there` of `clip_cutoffs`: "the run
    holds 12 documents for query 'q1'". If these are all its candidates, the text adds that recall
    and hit are 1 by construction.
    """
    words = f"{run} holds {depth} documents for query {query_id!r}"
    if 0 < depth == len(benchmark.searchable(query_id)):
        words += f", all that it has: at k = {depth} its recall and hit are 100 % by construction"
    return words
