"""Which images a question is asked with: the settings of the Visual-RAG paper (section 5.3, Table 3) as contexts.

Random choices are orders, not samples: each stream ("clue", "non-clue") orders a query's documents by a hash of seed, query,
stream, draw and document. Adding or removing a query, a document or a k therefore moves nothing else,
and the contexts of one draw are nested over k: comparisons across k are paired.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.types import Benchmark, Context

DRAWS = 5
TOP_K = (1, 3, 5, 7, 10, 15, 20)
ONE_IN_K = (3, 5, 7, 10, 15, 20)


def ordered(doc_ids: Iterable[str], *names: object) -> list[str]:
    """The documents in the random order that `names` (seed, query, stream, draw) stand for."""
    prefix = "/".join(map(str, names)) + "/"
    return sorted(doc_ids, key=lambda doc_id: hashlib.sha256((prefix + doc_id).encode()).digest())


def zero_shot(benchmark: Benchmark) -> list[Context]:
    """No image: one context a query."""
    return [Context(query_id=query_id, setting="zero_shot", k=0) for query_id in benchmark.queries]


def gt_clue(benchmark: Benchmark, *, draws: int = DRAWS, seed: int = 0) -> list[Context]:
    """One clue a draw. Draw r takes item r mod R of the query's R clues in random order, so that draws differ while there are clues (footnote 4)."""
    return [Context(query_id=query_id, setting="gt_clue", k=1, draw=draw, doc_ids=(_clue(benchmark, query_id, draw, seed),))
            for query_id in benchmark.queries for draw in range(draws)]


def non_clue(benchmark: Benchmark, *, draws: int = DRAWS, seed: int = 0) -> list[Context]:
    """One image that is no clue; draw 0 alone is the paper's single run. Raises `VragError` for a query without non-clues."""
    return [Context(query_id=query_id, setting="non_clue", k=1, draw=draw, doc_ids=tuple(_non_clues(benchmark, query_id, draw, seed, 1)))
            for query_id in benchmark.queries for draw in range(draws)]


def top_k(benchmark: Benchmark, run: pd.DataFrame, *, ks: Sequence[int] = TOP_K) -> list[Context]:
    """The first k images of a run, best first. Raises `VragError` when the run is less deep for some query."""
    ranked = {query_id: list(part.sort_values("rank")["doc_id"]) for query_id, part in run.groupby("query_id", sort=False)}
    for query_id in benchmark.queries:
        if (found := len(ranked.get(query_id, []))) < max(ks):
            raise VragError(f"the run holds {found} documents for query {query_id!r}, fewer than k = {max(ks)}. Search deeper, or ask for a smaller k.")
    return [Context(query_id=query_id, setting="top_k", k=k, doc_ids=tuple(ranked[query_id][:k])) for query_id in benchmark.queries for k in ks]


def one_in_k(benchmark: Benchmark, *, ks: Sequence[int] = ONE_IN_K, draws: int = DRAWS, seed: int = 0, clue_position: int = 0) -> list[Context]:
    """One clue and k − 1 non-clues, the clue first as in the paper.

    The clue of a draw is that of `gt_clue`, the non-clues are the front of the order that `non_clue` takes its one from.
    `clue_position` moves the clue: 0 is first, −1 last, a position behind the end is an error. k = 1 gives the clue alone.
    Raises `VragError` when a query has fewer than k − 1 non-clues.
    """
    if not all(-k <= clue_position < k for k in ks):
        raise VragError(f"clue_position {clue_position} lies outside {min(ks)} images; expected −{min(ks)} to {min(ks) - 1}.")
    contexts = []
    for query_id in benchmark.queries:
        for draw in range(draws):
            clue, others = _clue(benchmark, query_id, draw, seed), _non_clues(benchmark, query_id, draw, seed, max(ks) - 1)
            for k in ks:
                chosen, place = others[: k - 1], clue_position % k
                contexts.append(Context(query_id=query_id, setting="one_in_k", k=k, draw=draw, doc_ids=(*chosen[:place], clue, *chosen[place:])))
    return contexts


def _clue(benchmark: Benchmark, query_id: str, draw: int, seed: int) -> str:
    clues = ordered(benchmark.relevant(query_id), seed, query_id, "clue")
    if not clues:
        raise VragError(f"query {query_id!r} has no clue image; leave it out with `benchmark.subset(query_ids)`.")
    return clues[draw % len(clues)]


def _non_clues(benchmark: Benchmark, query_id: str, draw: int, seed: int, count: int) -> list[str]:
    labels, pool = benchmark.qrels[query_id], benchmark.candidates(query_id)
    others = [doc_id for doc_id in (benchmark.corpus if pool is None else pool) if not labels.get(doc_id, 0)]
    if len(others) < count:
        raise VragError(f"query {query_id!r} has {len(others)} images that are no clue, fewer than the {count} asked for. "
                        f"Ask for a smaller k, or leave the query out with `benchmark.subset(query_ids)`.")
    return ordered(others, seed, query_id, "non-clue", draw)[:count]
