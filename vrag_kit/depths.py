"""Numbers of documents that a benchmark can give: what is larger is cut, and said."""

from __future__ import annotations

from collections.abc import Sequence

from vrag_kit.tally import note
from vrag_kit.types import Benchmark, QueryId


def cut_to(ks: Sequence[int], most: int, there: str) -> list[int]:
    """`ks` in their order, each at most `most` and once; where that changes them, a line
    is printed that says so, or noted where there is only a forecast.

    `there` says in words what there is, such as "query 'q1' has 12 candidates".
    """
    fitting = list(dict.fromkeys(min(k, most) for k in ks))
    larger = list(dict.fromkeys(k for k in ks if k > most))
    if larger:
        note(f"k = {', '.join(map(str, larger))} is cut to {most}: {there}")
    return fitting


def held(run: str, depth: int, benchmark: Benchmark, query_id: QueryId) -> str:
    """How many documents a run holds for a query, in words as `cut_to` takes them: "the
    run holds 12 documents for query 'q1'". Where these are all it is searched in, also
    that recall and hit are 1 there by construction.
    """
    words = f"{run} holds {depth} documents for query {query_id!r}"
    pool = benchmark.candidates(query_id)
    left_out = benchmark.left_out.get(query_id, frozenset())
    shown = benchmark.corpus if pool is None else pool
    if 0 < depth == sum(doc_id not in left_out for doc_id in shown):
        words += f", all that it has: at k = {depth} its recall and hit are 100 % by construction"
    return words
