"""Contexts: the evidence for each query in the settings of the Visual-RAG paper.

The settings are those of section 5.3 and appendices A and B. Random choices are orders, not
samples: each stream ("clue", "non-clue", "easy") orders a query's documents by a hash of seed,
query, stream, draw and document. Adding or removing a query, a document or a k therefore changes
nothing else. The contexts of one draw are nested over k and m: comparisons across them are paired.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, product, zip_longest

import pandas as pd

from vrag_kit.depths import clip_cutoffs, describe_run_depth
from vrag_kit.errors import VragError
from vrag_kit.forecast import IdentityKey, memoize_dry_run
from vrag_kit.order import ordered
from vrag_kit.types import Benchmark, Context

DRAWS = 5
TOP_K = (1, 3, 5, 7, 10, 15, 20)
ONE_IN_K = (3, 5, 7, 10, 15, 20)
CLUES = (1, 2, 3, 4, 5)


def zero_shot(benchmark: Benchmark) -> list[Context]:
    """Return one context per query, without images."""
    return [Context(query_id=query_id, setting="zero_shot", k=0) for query_id in benchmark.queries]


def gt_clue(benchmark: Benchmark, *, draws: int = DRAWS, seed: int = 0) -> list[Context]:
    """Return one context with a single clue per query and draw.

    Draw r takes item r mod R of the query's R clues in random order, so that the first R draws
    differ (footnote 4).
    """
    return [
        Context(
            query_id=query_id,
            setting="gt_clue",
            k=1,
            draw=draw,
            doc_ids=tuple(_clues(benchmark, query_id, draw, seed, 1)),
        )
        for query_id, draw in product(benchmark.queries, range(draws))
    ]


def non_clue(benchmark: Benchmark, *, draws: int = DRAWS, seed: int = 0) -> list[Context]:
    """Return one context with a single non-clue image per query and draw.

    Draw 0 alone is the paper's single run. Raises `VragError` for a query without non-clues.
    """
    return [
        Context(
            query_id=query_id,
            setting="non_clue",
            k=1,
            draw=draw,
            doc_ids=tuple(_non_clues(benchmark, query_id, draw, seed, 1)),
        )
        for query_id, draw in product(benchmark.queries, range(draws))
    ]


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
    ranked: dict[str, list[str]] = {query_id: [] for query_id in benchmark.queries}
    for query_id, part in run.groupby("query_id", sort=False):
        ranked[str(query_id)] = list(part.sort_values("rank")["doc_id"])
    if full_depth:
        fewest = min(ranked, key=lambda query_id: len(ranked[query_id]))
        depth = len(ranked[fewest])
        if not depth:
            raise VragError(
                f"the run holds no document for query {fewest!r}, so there is no k to compare all"
                " queries at. Leave the query out with `benchmark.subset(query_ids)`."
            )
        ks = clip_cutoffs(ks, depth, describe_run_depth("the run", depth, benchmark, fewest))
    contexts = []
    for query_id in benchmark.queries:
        for k in ks:
            documents = tuple(ranked[query_id][:k])
            contexts.append(Context(query_id=query_id, setting=setting, k=k, doc_ids=documents))
    return contexts


def cutoffs_above_one(ks: Sequence[int]) -> list[int]:
    """Return the values of `ks` above 1, at which `one_in_k` shows non-clues.

    Raises `VragError` if there is none.
    """
    among = [k for k in ks if k > 1]
    if not among:
        raise VragError(
            f"ks is {list(ks)}: one image leaves no room beside the clue. Add a k above 1, such as"
            " 3."
        )
    return among


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
    ks = _cutoffs_with_non_clues(benchmark, ks, 1)
    if not all(-k <= clue_position < k for k in ks):
        raise VragError(
            f"clue_position {clue_position} lies outside {min(ks)} images; expected −{min(ks)} to"
            f" {min(ks) - 1}."
        )
    contexts = []
    for query_id in benchmark.queries:
        for draw in range(draws):
            clue = _clues(benchmark, query_id, draw, seed, 1)[0]
            others = _non_clues(benchmark, query_id, draw, seed, max(ks) - 1)
            for k in ks:
                place = clue_position % k
                shown = (*others[:place], clue, *others[place : k - 1])
                arm = Context(query_id=query_id, setting="one_in_k", k=k, draw=draw, doc_ids=shown)
                contexts.append(arm)
    return contexts


def one_in_k_easy(
    benchmark: Benchmark, *, ks: Sequence[int] = ONE_IN_K, draws: int = DRAWS, seed: int = 0
) -> list[Context]:
    """Return contexts with the clue of `one_in_k`, first, and k − 1 easy negatives (Table 7).

    Easy negatives are images of other groups (species). These groups are put in random order, and
    each gives one image in turn, so that a group recurs only after all others. Each k is clipped,
    for all queries, to the images available (a printed line says so). Raises `VragError` for k
    above 1 if there are none.
    """
    images: dict[str, dict[str, None]] = defaultdict(dict)
    for query_id, query in benchmark.queries.items():
        images[query.group].update(dict.fromkeys(benchmark.qrels[query_id]))
    largest = max(images, key=lambda group: len(images[group]))
    elsewhere = sum(map(len, images.values())) - len(images[largest])
    there = f"there are {elsewhere} images of other species than {largest!r}"
    ks = clip_cutoffs(ks, 1 + max(elsewhere, 1), there)
    contexts = []
    for query_id, query in benchmark.queries.items():
        for draw in range(draws):
            clue = _clues(benchmark, query_id, draw, seed, 1)[0]
            what = ("easy", IdentityKey(benchmark), query_id, draw, seed, max(ks))
            drawn = partial(_easy, images, query_id, query.group, draw, seed, max(ks) - 1)
            others = memoize_dry_run(drawn, *what)
            for k in ks:
                arm = Context(
                    query_id=query_id,
                    setting="one_in_k_easy",
                    k=k,
                    draw=draw,
                    doc_ids=(clue, *others[: k - 1]),
                )
                contexts.append(arm)
    return contexts


def first_clue(benchmark: Benchmark, run: pd.DataFrame) -> list[Context]:
    """Return contexts with only the best-ranked clue of a run. They test the model on the very clue
    that top-k shows it. Queries without one are left out.
    """
    found: dict[str, str] = {}
    for query_id, doc_id in run.sort_values("rank")[["query_id", "doc_id"]].itertuples(index=False):
        if query_id in benchmark.queries and doc_id in benchmark.relevant(query_id):
            found.setdefault(query_id, doc_id)
    return [
        Context(query_id=query_id, setting="first_clue", k=1, doc_ids=(found[query_id],))
        for query_id in benchmark.queries
        if query_id in found
    ]


def clue_position_sweep(
    benchmark: Benchmark, *, ks: Sequence[int] = ONE_IN_K, draws: int = DRAWS, seed: int = 0
) -> dict[str, list[Context]]:
    """Return 1-in-k contexts with the same images and the clue at three positions. The keys are
    "first", "middle" (k // 2 images before it) and "last". k is clipped as in `one_in_k`.
    """
    ks = _cutoffs_with_non_clues(benchmark, ks, 1)
    moved: dict[str, list[Context]] = {"first": [], "middle": [], "last": []}
    for k in ks:
        for name, place in (("first", 0), ("middle", k // 2), ("last", -1)):
            moved[name] += one_in_k(benchmark, ks=[k], draws=draws, seed=seed, clue_position=place)
    return moved


def with_min_clues(benchmark: Benchmark, m: int) -> Benchmark:
    """Return the benchmark with only the queries that have at least `m` clues. Numbers of clues are
    compared on this fixed subset (Table 6). Raises `VragError` if it is empty.
    """
    kept = [query_id for query_id in benchmark.queries if len(benchmark.relevant(query_id)) >= m]
    if not kept:
        most = max(len(benchmark.relevant(query_id)) for query_id in benchmark.queries)
        raise VragError(
            f"no query of {benchmark.name} has {m} clues; the most are {most}. Ask for"
            f" {most} at most, in a parameter file by `max_clues: {most}`."
        )
    return benchmark.subset(kept)


def m_gt(
    benchmark: Benchmark, *, ms: Sequence[int] = CLUES, draws: int = DRAWS, seed: int = 0
) -> list[Context]:
    """Return contexts with m clues and nothing else (Table 6). The clues follow the clue order from
    the draw's position on, so that 1 GT is `gt_clue`. Raises `VragError` for a query with fewer
    than m clues.
    """
    contexts = []
    for query_id, draw, m in product(benchmark.queries, range(draws), ms):
        clues = tuple(_clues(benchmark, query_id, draw, seed, m))
        arm = Context(query_id=query_id, setting="m_gt", k=m, m=m, draw=draw, doc_ids=clues)
        contexts.append(arm)
    return contexts


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
    (k,) = _cutoffs_with_non_clues(benchmark, [k], min(ms))
    if max(ms) > k:
        raise VragError(f"{max(ms)} clues do not fit into k = {k} images.")
    contexts = []
    for query_id, draw, m in product(benchmark.queries, range(draws), ms):
        clues = _clues(benchmark, query_id, draw, seed, m)
        others = _non_clues(benchmark, query_id, draw, seed, k - m)
        shown = (*clues, *others)
        arm = Context(query_id=query_id, setting="m_in_k", k=k, m=m, draw=draw, doc_ids=shown)
        contexts.append(arm)
    return contexts


def _clues(benchmark: Benchmark, query_id: str, draw: int, seed: int, count: int) -> list[str]:
    clues = ordered(benchmark.relevant(query_id), seed, query_id, "clue")
    if not clues:
        raise VragError(
            f"query {query_id!r} has no clue image; leave it out with"
            " `benchmark.subset(query_ids)`."
        )
    if len(clues) < count:
        raise VragError(
            f"query {query_id!r} has {len(clues)} clues, fewer than the {count} asked for;"
            f" `with_min_clues(benchmark, {count})` leaves such queries out."
        )
    start = draw % len(clues)
    return (clues[start:] + clues[:start])[:count]


def _cutoffs_with_non_clues(benchmark: Benchmark, ks: Sequence[int], clues: int) -> list[int]:
    """`ks`, cut to `clues` and as many non-clues as every query has; one at least, so
    that a query without any raises.
    """
    counts = {query_id: len(_all_non_clues(benchmark, query_id)) for query_id in benchmark.queries}
    fewest = min(counts, key=lambda query_id: counts[query_id])
    there = f"query {fewest!r} has {counts[fewest]} images that are no clue"
    return clip_cutoffs(ks, clues + max(counts[fewest], 1), there)


def _easy(
    images: Mapping[str, Iterable[str]], query_id: str, group: str, draw: int, seed: int, count: int
) -> list[str]:
    others = [other for other in ordered(images, seed, query_id, "easy", draw) if other != group]
    queues = [ordered(images[other], seed, query_id, "easy", draw) for other in others[:count]]
    in_turn = chain.from_iterable(zip_longest(*queues))
    chosen = [doc_id for doc_id in in_turn if doc_id is not None]
    if len(chosen) < count:
        raise VragError(
            f"query {query_id!r}: {len(chosen)} images of other species, fewer than the {count}"
            " asked for. Ask for a smaller k."
        )
    return chosen[:count]


def _non_clues(benchmark: Benchmark, query_id: str, draw: int, seed: int, count: int) -> list[str]:
    others = _all_non_clues(benchmark, query_id)
    if len(others) < count:
        raise VragError(
            f"query {query_id!r} has {len(others)} images that are no clue, fewer than the {count}"
            " asked for. Ask for a smaller k, or leave the query out with"
            " `benchmark.subset(query_ids)`."
        )
    what = ("non-clue", IdentityKey(benchmark), query_id, draw, seed, count)
    return memoize_dry_run(lambda: ordered(others, seed, query_id, "non-clue", draw)[:count], *what)


def _all_non_clues(benchmark: Benchmark, query_id: str) -> list[str]:
    labels = benchmark.qrels[query_id]
    pool = benchmark.candidates(query_id)
    shown = benchmark.corpus if pool is None else pool
    left_out = benchmark.left_out.get(query_id, frozenset())
    plain = [doc_id for doc_id in shown if not labels.get(doc_id, 0)]
    return [doc_id for doc_id in plain if doc_id not in left_out]
