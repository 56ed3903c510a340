"""MRAG-Bench in the form of Visual-RAG: ground truth as clues, and what was retrieved
beside it as the pictures that are none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import replace

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.frames import require_columns
from vrag_kit.types import Benchmark, DocId, QueryId


def without_alike(benchmark: Benchmark, pools: Mapping[QueryId, Collection[DocId]]) -> Benchmark:
    """The benchmark in whose searches a query does not find pictures of its `pools`
    (`example_pools`) that are no ground truth: they show the same, and have no label.
    """
    left_out = dict(benchmark.left_out)
    for query_id in benchmark.queries:
        alike = set(pools.get(query_id, ())) - set(benchmark.relevant(query_id))
        if alike:
            left_out[query_id] = left_out.get(query_id, frozenset()) | alike
    told = "\n".join(f"{name} {' '.join(sorted(ids))}" for name, ids in sorted(left_out.items()))
    return replace(benchmark, left_out=left_out, fingerprint=_named(benchmark, told))


def among_retrieved(benchmark: Benchmark, run: pd.DataFrame, *, depth: int) -> Benchmark:
    """The benchmark whose queries have as candidates their ground truth, and the `depth`
    best ranked pictures of a run that are none: the pictures that are no clue, and the
    company of one clue, of the kit's settings.

    Raises `VragError` for a query for which the run holds fewer.
    """
    require_columns(run, ["query_id", "doc_id", "rank"], "among_retrieved")
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


def _named(benchmark: Benchmark, told: str) -> str:
    """A fingerprint of its own for what differs."""
    return hashlib.sha256(f"{benchmark.fingerprint}\n{told}".encode()).hexdigest()
