"""Contexts: the evidence for each query in the settings of the Visual-RAG paper.

The settings are those of section 5.3 and appendices A and B. Each shows clues, and distractors from
one source (`build_contexts`). Random choices are orders, not samples: each stream ("clue",
"non-clue", "easy") orders a query's documents by a hash of seed, query, stream, draw and document.
Adding or removing a query, a document or a k therefore changes nothing else. The contexts of one
draw are nested over k and m: comparisons across them are paired.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, product

import pandas as pd

from vrag_kit.depths import clip_cutoffs, describe_run_depth
from vrag_kit.errors import VragError
from vrag_kit.generation.distractors import (
    ALONE,
    DUPLICATE,
    ELSEWHERE,
    NEAR,
    SAME,
    Others,
    Take,
    blank_id,
    clues_of_draw,
    easy_negatives,
    hard_negatives,
    ranked_documents,
)
from vrag_kit.types import Benchmark, Context, DocId, QueryId

DRAWS = 5
TOP_K = (1, 3, 5, 7, 10, 15, 20)
ONE_IN_K = (3, 5, 7, 10, 15, 20)
CLUES = (1, 2, 3, 4, 5)
_COUNTS_CLUES = ("m_gt", "m_in_k")
"""Settings whose contexts record their number of clues, `Context.m`."""
_FULL = (DUPLICATE, ELSEWHERE, SAME, NEAR)
"""Kinds of distractors that are never filled up with blanks."""


def build_contexts(
    benchmark: Benchmark,
    setting: str,
    sizes: Sequence[tuple[int, int]],
    take: Take | None = None,
    *,
    draws: int = 1,
    seed: int = 0,
    clue_position: int = 0,
) -> list[Context]:
    """Return a context per query, draw and size: k documents, of which m are clues.

    `sizes` are pairs (k, m). The clues are those of `clues_of_draw`; the other k − m documents are
    the first that `take` returns. Each is ordered once a query and draw, for all sizes.
    `clue_position` is the index of the first clue; −1 puts a single clue last. Raises `VragError`
    for m above k, for a query with fewer than m clues, and as `take` does.
    """
    for k, m in sizes:
        if m > k:
            raise VragError(f"{m} clues do not fit into k = {k} images.")
    most_clues = max((m for _, m in sizes), default=0)
    most_others = max((k - m for k, m in sizes), default=0)
    contexts = []
    for query_id, draw in product(benchmark.queries, range(draws)):
        clues = clues_of_draw(benchmark, query_id, draw, seed, most_clues)
        others = take(query_id, draw, most_others) if take else ()
        for k, m in sizes:
            before = clue_position % (k - m + 1)
            context = Context(
                query_id=query_id,
                setting=setting,
                k=k,
                m=m if setting in _COUNTS_CLUES else None,
                draw=draw,
                doc_ids=(*others[:before], *clues[:m], *others[before : k - m]),
            )
            contexts.append(context)
    return contexts


def zero_shot(benchmark: Benchmark) -> list[Context]:
    """Return one context per query, without images."""
    return build_contexts(benchmark, "zero_shot", [(0, 0)])


def gt_clue(benchmark: Benchmark, *, draws: int = DRAWS, seed: int = 0) -> list[Context]:
    """Return one context with a single clue per query and draw."""
    return build_contexts(benchmark, "gt_clue", [(1, 1)], draws=draws, seed=seed)


def non_clue(benchmark: Benchmark, *, draws: int = DRAWS, seed: int = 0) -> list[Context]:
    """Return one context with a single non-clue image per query and draw.

    Draw 0 alone is the paper's single run. Raises `VragError` for a query without non-clues.
    """
    take = hard_negatives(benchmark, seed).take
    return build_contexts(benchmark, "non_clue", [(1, 0)], take, draws=draws)


def baseline_contexts(benchmark: Benchmark, *, draws: int = DRAWS, seed: int = 0) -> list[Context]:
    """Return the contexts of `zero_shot`, `gt_clue` and `non_clue`; raises as they do."""
    clues = gt_clue(benchmark, draws=draws, seed=seed)
    return zero_shot(benchmark) + clues + non_clue(benchmark, draws=draws, seed=seed)


def gcue_contexts(
    benchmark: Benchmark, run: pd.DataFrame, *, k: int, seed: int = 0
) -> list[Context]:
    """Return the contexts for gCUE at k, and those with the top k of a run, one draw each.

    They are the contexts of `zero_shot`, `gt_clue`, `non_clue`, `one_in_k` and `top_k`. Raises as
    they do.
    """
    contexts = baseline_contexts(benchmark, draws=1, seed=seed)
    contexts += one_in_k(benchmark, ks=[k], draws=1, seed=seed)
    return contexts + top_k(benchmark, run, ks=[k])


def top_k(
    benchmark: Benchmark,
    run: pd.DataFrame,
    *,
    ks: Sequence[int] = TOP_K,
    setting: str = "top_k",
    full_depth: bool = False,
) -> list[Context]:
    """Return contexts with the first k documents of a run, best first.

    With `setting` "text_rag" the documents are passages. A query with fewer retrieved documents
    gets those, possibly none. With `full_depth`, which a comparison over k needs, every k is
    clipped to the fewest documents of any query (a printed line says so); if that is none, raises
    `VragError`.
    """
    ranked = ranked_documents(benchmark, run)
    if full_depth:
        fewest = min(ranked, key=lambda query_id: len(ranked[query_id]))
        depth = len(ranked[fewest])
        if not depth:
            raise VragError(
                f"the run holds no document for query {fewest!r}, so there is no k to compare all"
                " queries at. Leave the query out with `benchmark.subset(query_ids)`."
            )
        ks = clip_cutoffs(ks, depth, describe_run_depth("the run", depth, benchmark, fewest))
    return [
        Context(query_id=query_id, setting=setting, k=k, doc_ids=tuple(ranked[query_id][:k]))
        for query_id, k in product(benchmark.queries, ks)
    ]


def first_clue(benchmark: Benchmark, run: pd.DataFrame) -> list[Context]:
    """Return contexts with only the best-ranked clue of a run. They test the model on the very clue
    that top-k shows it. Queries without one are left out.
    """
    contexts = []
    for query_id, ranked in ranked_documents(benchmark, run).items():
        clues = benchmark.relevant(query_id)
        found = tuple(doc_id for doc_id in ranked if doc_id in clues)[:1]
        if found:
            contexts.append(Context(query_id=query_id, setting="first_clue", k=1, doc_ids=found))
    return contexts


def cutoffs_above_one(ks: Sequence[int]) -> list[int]:
    """Return the values of `ks` above 1, at which `one_in_k` shows non-clues.

    Raises `VragError` if there is none.
    """
    above = [k for k in ks if k > 1]
    if not above:
        raise VragError(f"ks is {list(ks)}; expected a k above 1, which has room beside the clue.")
    return above


def one_in_k(
    benchmark: Benchmark,
    *,
    ks: Sequence[int] = ONE_IN_K,
    draws: int = DRAWS,
    seed: int = 0,
    clue_position: int = 0,
) -> list[Context]:
    """Return contexts with one clue and k − 1 non-clues, the clue first as in the paper.

    The clue of a draw is that of `gt_clue`; the non-clues are the first in the order of `non_clue`.
    `clue_position` moves the clue: 0 is first, −1 last; a position outside the images raises
    `VragError`. k = 1 shows the clue alone. Each k is clipped, for all queries, to what the fewest
    non-clues of a query allow, and a printed line says so. Raises `VragError` for k above 1 and a
    query without non-clues.
    """
    negatives = hard_negatives(benchmark, seed)
    ks = negatives.clip(ks)
    fewest = min(ks)
    if not -fewest <= clue_position < fewest:
        raise VragError(
            f"clue_position: found {clue_position}; expected −{fewest} to {fewest - 1}, for"
            f" {fewest} images."
        )
    sizes = [(k, 1) for k in ks]
    return build_contexts(
        benchmark,
        "one_in_k",
        sizes,
        negatives.take,
        draws=draws,
        seed=seed,
        clue_position=clue_position,
    )


def one_in_k_easy(
    benchmark: Benchmark, *, ks: Sequence[int] = ONE_IN_K, draws: int = DRAWS, seed: int = 0
) -> list[Context]:
    """Return contexts with the clue of `one_in_k`, first, and k − 1 easy negatives (Table 7).

    Each k is clipped, for all queries, to the images available (a printed line says so). Raises
    `VragError` for k above 1 if there are none.
    """
    negatives = easy_negatives(benchmark, seed)
    sizes = [(k, 1) for k in negatives.clip(ks)]
    take = negatives.take
    return build_contexts(benchmark, "one_in_k_easy", sizes, take, draws=draws, seed=seed)


def clue_position_sweep(
    benchmark: Benchmark, *, ks: Sequence[int] = ONE_IN_K, draws: int = DRAWS, seed: int = 0
) -> dict[str, list[Context]]:
    """Return 1-in-k contexts with the same images and the clue at three positions. The keys are
    "first", "middle" (k // 2 images before it) and "last". k is clipped as in `one_in_k`.
    """
    contexts = one_in_k(benchmark, ks=ks, draws=draws, seed=seed)
    ks = list(dict.fromkeys(context.k for context in contexts))
    contexts.sort(key=lambda context: ks.index(context.k))
    moved: dict[str, list[Context]] = {"first": contexts, "middle": [], "last": []}
    for context in contexts:
        clue, *others = context.doc_ids
        for name, before in (("middle", context.k // 2), ("last", context.k - 1)):
            shown = (*others[:before], clue, *others[before:])
            moved[name].append(replace(context, doc_ids=shown))
    return moved


def with_min_clues(benchmark: Benchmark, m: int) -> Benchmark:
    """Return the benchmark with only the queries that have at least `m` clues. Numbers of clues are
    compared on this fixed subset (Table 6). Raises `VragError` if it is empty.
    """
    counts = {query_id: len(benchmark.relevant(query_id)) for query_id in benchmark.queries}
    kept = [query_id for query_id, count in counts.items() if count >= m]
    if not kept:
        most = max(counts.values())
        raise VragError(
            f"{benchmark.name}: found at most {most} clues of a query; expected {m}. Set"
            f" `max_clues: {most}` or less."
        )
    return benchmark.subset(kept)


def m_gt(
    benchmark: Benchmark, *, ms: Sequence[int] = CLUES, draws: int = DRAWS, seed: int = 0
) -> list[Context]:
    """Return contexts with m clues and nothing else (Table 6). The clues follow the clue order from
    the draw's position on, so that 1 GT is `gt_clue`. Raises `VragError` for a query with fewer
    than m clues.
    """
    return build_contexts(benchmark, "m_gt", [(m, m) for m in ms], draws=draws, seed=seed)


def m_in_k(
    benchmark: Benchmark,
    *,
    ms: Sequence[int] = CLUES,
    k: int = 10,
    draws: int = DRAWS,
    seed: int = 0,
) -> list[Context]:
    """Return contexts with the m clues of `m_gt`, first, and k − m non-clues. The non-clues are the
    first of their order (Table 6, "m-in-10"). m = 1 is `one_in_k`; k is clipped as there, to what
    the smallest m allows.

    Raises `VragError` for a query with fewer than m clues or without the non-clues that it needs,
    and for m above k.
    """
    negatives = hard_negatives(benchmark, seed)
    (k,) = negatives.clip([k], min(ms))
    sizes = [(k, m) for m in ms]
    return build_contexts(benchmark, "m_in_k", sizes, negatives.take, draws=draws, seed=seed)


def clue_with_distractors(
    benchmark: Benchmark, others: Mapping[str, Others], *, ks: Sequence[int], seed: int = 0
) -> dict[tuple[str, str], list[Context]]:
    """Return contexts of k images for each k above 1, by (kind, position of the clue).

    They show whether accuracy is lost by the number of images or by their content. All else is
    equal: each holds the clue of `gt_clue`'s first draw and the first k − 1 of its `others`, padded
    with blanks, and one template serves all, as the setting is "one_in_k". If `distractor_sets`
    found fewer images than the largest k needs, k is clipped. ("none", "first") holds the clue
    alone. Duplicates of the clue have no position, and are listed under "first". Use the contexts
    with `with_blank_images(benchmark)`.
    """
    full = chain.from_iterable(others.get(kind, {}).values() for kind in _FULL)
    most = min((1 + len(documents) for documents in full), default=max(ks))
    sizes = [(k, 1) for k in sorted({min(k, most) for k in ks} - {1})]
    build = partial(build_contexts, benchmark, "one_in_k", seed=seed)
    alone = build([(1, 1)])
    blanks = {context.query_id: blank_id(*context.doc_ids) for context in alone}
    contexts = {(ALONE, "first"): alone}
    for kind, shown in others.items():
        take = partial(_padded, shown, blanks)
        contexts[kind, "first"] = build(sizes, take)
        if kind != DUPLICATE:
            contexts[kind, "last"] = build(sizes, take, clue_position=-1)
    return contexts


def _padded(
    others: Others, blanks: Mapping[QueryId, DocId], query_id: QueryId, _: int, n: int
) -> tuple[DocId, ...]:
    """The first n distractors of a query, filled up with blanks."""
    shown = others[query_id][:n]
    return (*shown, *[blanks[query_id]] * (n - len(shown)))
