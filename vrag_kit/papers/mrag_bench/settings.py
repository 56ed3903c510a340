"""Settings of MRAG-Bench (Tables 3 and 7, Figure 5) as contexts of examples, and questions with
rotated options.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from string import ascii_uppercase

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.retrieval.runs import clip_cutoffs
from vrag_kit.types import Benchmark, Context, DocId, Query, QueryId, ordered

TOP = 5
"""Examples per question (section 3.1); one in the scenario "incomplete"."""
NUMBERS = (1, 2, 3, 5, 10, 20)
"""Numbers of ground-truth examples (Figure 5)."""


def no_rag(benchmark: Benchmark) -> list[Context]:
    """Returns contexts without examples, one per query."""
    return [Context(query_id=query_id, setting="no_rag", k=0) for query_id in benchmark.queries]


def gt_rag(benchmark: Benchmark, *, k: int = TOP) -> list[Context]:
    """Returns contexts with the first k ground-truth images, in the order of the row; one where the
    scenario is "incomplete". A query with fewer gets those.
    """
    contexts = []
    for query_id, query in benchmark.queries.items():
        shown = benchmark.relevant(query_id)[: n_examples_shown(query, k)]
        contexts.append(Context(query_id=query_id, setting="gt_rag", k=k, doc_ids=shown))
    return contexts


def retrieved_rag(
    benchmark: Benchmark, run: pd.DataFrame | None = None, *, k: int = TOP
) -> list[Context]:
    """Returns contexts with the first k documents of a run, best first, or of the row's own, the
    paper's CLIP; one where the scenario is "incomplete".

    k is reduced, for all queries, to the fewest documents of any query that is shown k (a printed
    line says so). Raises `VragError` for a query without any.
    """
    found = _retrieved(benchmark, run)
    depths = {query_id: len(found[query_id]) for query_id in benchmark.queries}
    for query_id, depth in depths.items():
        if not depth:
            raise VragError(
                f"query {query_id!r}: no document was retrieved. Leave it out with"
                " `benchmark.subset(query_ids)`."
            )
    many = [name for name, query in benchmark.queries.items() if n_examples_shown(query, k) == k]
    if many:
        fewest = min(many, key=lambda query_id: depths[query_id])
        there = f"{depths[fewest]} documents were retrieved for query {fewest!r}"
        (k,) = clip_cutoffs([k], depths[fewest], there)
    contexts = []
    for query_id, query in benchmark.queries.items():
        shown = found[query_id][: n_examples_shown(query, k)]
        contexts.append(Context(query_id=query_id, setting="retrieved_rag", k=k, doc_ids=shown))
    return contexts


def gt_rag_by_count(
    benchmark: Benchmark,
    more: Mapping[QueryId, Sequence[DocId]] | None = None,
    *,
    ks: Sequence[int] = NUMBERS,
    draws: int = 3,
    seed: int = 0,
) -> list[Context]:
    """Returns contexts with k ground-truth images in random order (Figure 5, right; three draws).

    Images are the row's own and from `more`, other images of the same object, which the rows do not
    have: without them no query has more than five. The contexts of a draw are nested over k.
    Queries with fewer than the largest k are excluded, for the same queries at all k; raises
    `VragError` if none is left.
    """
    pools = {
        query_id: tuple(
            dict.fromkeys((*benchmark.relevant(query_id), *(more or {}).get(query_id, ())))
        )
        for query_id in benchmark.queries
    }
    deep = [query_id for query_id, pool in pools.items() if len(pool) >= max(ks)]
    if not deep:
        raise VragError(
            f"no query of {benchmark.name} has {max(ks)} ground-truth pictures; the most are"
            f" {max(map(len, pools.values()), default=0)}. Give `more`, or ask for fewer."
        )
    contexts = []
    for query_id, draw in product(deep, range(draws)):
        order = tuple(ordered(pools[query_id], seed, query_id, "gt", draw))
        for k in ks:
            shown = order[:k]
            arm = Context(query_id=query_id, setting="m_gt", k=k, m=k, draw=draw, doc_ids=shown)
            contexts.append(arm)
    return contexts


def gt_at_each_position(
    benchmark: Benchmark, run: pd.DataFrame, *, k: int = TOP
) -> dict[int, list[Context]]:
    """Maps each position from 1 to k to one context per query: its first ground-truth image at that
    position, among the first k − 1 other images of the run, in their order.

    Only the position differs. Raises `VragError` for a query without a ground-truth image, or with
    too few others in the run.
    """
    found = _retrieved(benchmark, run)
    places: dict[int, list[Context]] = {place: [] for place in range(1, k + 1)}
    for query_id in benchmark.queries:
        relevant = benchmark.relevant(query_id)
        others = tuple(each for each in found[query_id] if each not in relevant)[: k - 1]
        if not relevant or len(others) < k - 1:
            raise VragError(
                f"query {query_id!r} has {len(relevant)} ground-truth pictures and {len(others)}"
                f" others in the run; expected 1 and {k - 1}. Search deeper, or leave it out with"
                " `benchmark.subset(query_ids)`."
            )
        for place, contexts in places.items():
            shown = (*others[: place - 1], relevant[0], *others[place - 1 :])
            contexts.append(Context(query_id=query_id, setting="one_in_k", k=k, doc_ids=shown))
    return places


def reversed_contexts(contexts: Iterable[Context]) -> list[Context]:
    """Returns the same contexts with their documents in reverse order."""
    return [replace(context, doc_ids=context.doc_ids[::-1]) for context in contexts]


def rotate_options(benchmark: Benchmark, by: int) -> Benchmark:
    """Returns the same questions with every option moved by `by` positions: what was (A) is (B)
    when `by` is 1, and the last is (A). Letters in the metadata change too.
    """
    queries = {}
    for query_id, query in benchmark.queries.items():
        start = -by % len(query.choices) if query.choices else 0
        queries[query_id] = with_choices(query, (*query.choices[start:], *query.choices[:start]))
    return with_queries(benchmark, queries, f"options rotated by {by}")


def with_choices(query: Query, choices: tuple[str, ...]) -> Query:
    """Returns the query with these options, and the letter of the correct one if its metadata have
    a letter.
    """
    if "letter" not in query.metadata:
        return replace(query, choices=choices)
    right = next(place for place, choice in enumerate(choices) if choice in query.answers)
    metadata = {**query.metadata, "letter": ascii_uppercase[right]}
    return replace(query, choices=choices, metadata=metadata)


def with_queries(benchmark: Benchmark, queries: Mapping[QueryId, Query], tag: str) -> Benchmark:
    """Returns the benchmark with changed queries and a new fingerprint; `tag` describes
    the change.
    """
    named = hashlib.sha256(f"{benchmark.fingerprint}\n{tag}".encode()).hexdigest()
    return replace(benchmark, queries=queries, fingerprint=named)


def sample_per_scenario(benchmark: Benchmark, count: int | None, *, seed: int = 0) -> Benchmark:
    """Samples at most `count` questions of each scenario by `seed`; all of them if
    `count` is None.
    """
    if count is None:
        return benchmark
    of_scenario: dict[str, list[QueryId]] = {}
    for query_id, query in benchmark.queries.items():
        of_scenario.setdefault(str(query.metadata["scenario"]), []).append(query_id)
    kept: set[QueryId] = set()
    for query_ids in of_scenario.values():
        kept.update(ordered(query_ids, seed, "few of each")[:count])
    return benchmark.subset(kept)


def n_examples_shown(query: Query, k: int) -> int:
    """Returns the number of examples shown for a question at a given k."""
    return min(k, 1) if query.metadata.get("scenario") == "incomplete" else k


def _retrieved(benchmark: Benchmark, run: pd.DataFrame | None) -> dict[QueryId, tuple[DocId, ...]]:
    """Query → documents, best first, of the run or of the row."""
    if run is None:
        return {
            query_id: tuple(query.metadata.get("retrieved", ()))
            for query_id, query in benchmark.queries.items()
        }
    found: dict[QueryId, tuple[DocId, ...]] = dict.fromkeys(benchmark.queries, ())
    for query_id, part in run.groupby("query_id", sort=False):
        found[str(query_id)] = tuple(part.sort_values("rank")["doc_id"])
    return found
