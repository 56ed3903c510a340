"""MRAG-Bench in the form of Visual-RAG: ground-truth images as clues, and other retrieved images as
non-clues.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import replace

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.tables import require_columns
from vrag_kit.types import Benchmark, DocId, QueryId


def without_unlabelled_positives(
    benchmark: Benchmark, pools: Mapping[QueryId, Collection[DocId]]
) -> Benchmark:
    """Excludes unlabelled positives from each query's searches: images of its `pools`
    (`example_pools`) that are no ground truth but show the same object.
    """
    left_out = dict(benchmark.left_out)
    for query_id in benchmark.queries:
        alike = set(pools.get(query_id, ())) - set(benchmark.relevant(query_id))
        if alike:
            left_out[query_id] = left_out.get(query_id, frozenset()) | alike
    told = "\n".join(f"{name} {' '.join(sorted(ids))}" for name, ids in sorted(left_out.items()))
    return replace(benchmark, left_out=left_out, fingerprint=_named(benchmark, told))


def candidates_from_run(benchmark: Benchmark, run: pd.DataFrame, *, depth: int) -> Benchmark:
    """Returns the benchmark with candidate pools: each query's ground truth, and the `depth` best
    ranked other images of a run. The latter serve as non-clues and distractors in the kit's
    settings.

    Raises `VragError` for a query for which the run has fewer.
    """
    require_columns(run, ["query_id", "doc_id", "rank"], "candidates_from_run")
    found: dict[QueryId, list[DocId]] = {query_id: [] for query_id in benchmark.queries}
    ranked = run.sort_values("rank")[["query_id", "doc_id"]]
    for query_id, doc_id in ranked.itertuples(index=False, name=None):
        if query_id in found and doc_id not in benchmark.relevant(query_id):
            found[query_id].append(doc_id)
    pools = {}
    for query_id, others in found.items():
        if len(others) < depth:
            raise VragError(
                f"query {query_id!r}: the run holds {len(others)} pictures that are no ground"
                f" truth, expected {depth}. Search deeper, or ask for fewer."
            )
        pools[query_id] = (*benchmark.relevant(query_id), *others[:depth])
    told = "\n".join(f"{name} {' '.join(pool)}" for name, pool in pools.items())
    return replace(benchmark, pools=pools, fingerprint=_named(benchmark, told))


def _named(benchmark: Benchmark, suffix: str) -> str:
    """A fingerprint of its own for what differs."""
    return hashlib.sha256(f"{benchmark.fingerprint}\n{suffix}".encode()).hexdigest()
