"""Mismatched examples: the ground truth of another question as a control for gains due to the mere
presence of examples.
"""

from __future__ import annotations

from vrag_kit.errors import VragError
from vrag_kit.papers.mrag_bench.settings import TOP, n_examples_shown
from vrag_kit.types import Benchmark, Context, DocId, Query, QueryId, ordered


def mismatched_examples(benchmark: Benchmark, *, seed: int = 0) -> dict[QueryId, tuple[DocId, ...]]:
    """Maps each query to ground-truth images of another query, none of which is its own. There are
    at most as many as its own.

    The other query is of another group and has another correct answer. It has the same question
    text in the same scenario if possible; else the same scenario and image type (`image_type`),
    else the same scenario. `seed` and the query determine the choice. Raises `VragError` for a
    query without any.
    """
    swapped = {}
    for query_id, query in benchmark.queries.items():
        others = [other for other in benchmark.queries.values() if _may_serve(query, other)]
        nearest = next((found for found in _nearest(query, others) if found), [])
        if not nearest:
            raise VragError(
                f"query {query_id!r}: no other query of scenario"
                f" {query.metadata['scenario']!r} has another answer; its examples cannot be"
                " swapped. Leave it out with `benchmark.subset(query_ids)`."
            )
        chosen = ordered(nearest, seed, query_id, "swapped")[0]
        own = benchmark.relevant(query_id)
        foreign = [doc_id for doc_id in benchmark.relevant(chosen) if doc_id not in own]
        swapped[query_id] = tuple(foreign[: len(own)])
    return swapped


def mismatched_rag(benchmark: Benchmark, *, k: int = TOP, seed: int = 0) -> list[Context]:
    """Returns contexts with the first k of the `mismatched_examples` of every query, one where the
    scenario is "incomplete": as `gt_rag`, except for the images.
    """
    examples = mismatched_examples(benchmark, seed=seed)
    contexts = []
    for query_id, query in benchmark.queries.items():
        shown = examples[query_id][: n_examples_shown(query, k)]
        contexts.append(Context(query_id=query_id, setting="mismatched_rag", k=k, doc_ids=shown))
    return contexts


def _may_serve(query: Query, other: Query) -> bool:
    """Whether the other's examples may stand in: of the same scenario, and not alike."""
    same = other.metadata["scenario"] == query.metadata["scenario"]
    return same and other.group != query.group and other.answers != query.answers


def _nearest(query: Query, others: list[Query]) -> list[list[QueryId]]:
    """Ids of the others that ask the same, that show the same sort of thing, and all."""
    sort = query.metadata["image_type"]
    same_words = [other.query_id for other in others if other.text == query.text]
    same_sort = [other.query_id for other in others if other.metadata["image_type"] == sort]
    return [same_words, same_sort, [other.query_id for other in others]]
