"""Examples of something else: each question gets another's ground truth, which shows that
a gain comes from what examples show and not from their being there.
"""

from __future__ import annotations

from vrag_kit.errors import VragError
from vrag_kit.order import ordered
from vrag_kit.papers.mrag_bench.settings import TOP, shown_of
from vrag_kit.types import Benchmark, Context, DocId, Query, QueryId


def swapped_examples(benchmark: Benchmark, *, seed: int = 0) -> dict[QueryId, tuple[DocId, ...]]:
    """For each query the ground-truth pictures of another one, of which none is its own:
    as many, or fewer where the other has fewer.

    The other is of another group and has another right answer. It asks the same words in
    the same scenario if any such query does; else it is of the same scenario and sort of
    picture (`image_type`), else of the same scenario. Which of several it is, `seed`
    and the query determine. Raises `VragError` for a query without any.
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


def swapped_rag(benchmark: Benchmark, *, k: int = TOP, seed: int = 0) -> list[Context]:
    """The first k of the `swapped_examples` of every query, one where the scenario is
    "incomplete": as `gt_rag`, but for what is shown.
    """
    examples = swapped_examples(benchmark, seed=seed)
    contexts = []
    for query_id, query in benchmark.queries.items():
        shown = examples[query_id][: shown_of(query, k)]
        contexts.append(Context(query_id=query_id, setting="swapped_rag", k=k, doc_ids=shown))
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
