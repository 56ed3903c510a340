"""Contexts with a number of images and of texts, from searches or in evidence modes. The modes show
gold evidence, distractors, or both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.frames import require_columns
from vrag_kit.order import ordered
from vrag_kit.types import MODALITIES, Benchmark, Context, DocId, QueryId

BOTH = "both"
GT_ONLY = "gt_only"
GT_PLUS_DISTRACTORS = "gt_plus_distractors"
DISTRACTORS_ONLY = "distractors_only"
MODES = (DISTRACTORS_ONLY, GT_PLUS_DISTRACTORS, GT_ONLY)
"""The modes, from no gold evidence to gold evidence alone."""
ORDERS = ("shuffled", "gold_first", "gold_last")
"""shuffled: by a hash of the draw. Otherwise gold documents as the data list them, and distractors
best-ranked first.
"""
KS = {"image": 3, "text": 3}
"""Number of documents of each modality; a checker is shown the same numbers."""

Runs = Mapping[str, pd.DataFrame]
"""Modality → run; documents of other modalities in it are ignored."""


def top_k_per_modality(
    benchmark: Benchmark, runs: Runs, *, ks: Mapping[str, int] = KS
) -> list[Context]:
    """Return contexts with the top documents of each modality's run, images before texts.

    There is one context per query, with the setting "image", "text" or "both", according to `ks`. A
    query with fewer retrieved documents gets those, possibly none. Raises `VragError` for an
    unknown modality, and for one without a run.
    """
    wanted = _wanted(ks, runs)
    setting = BOTH if len(wanted) > 1 else wanted[0]
    ranked = {modality: _ranked(benchmark, runs[modality], modality) for modality in wanted}
    contexts = []
    for query_id in benchmark.queries:
        shown: tuple[DocId, ...] = ()
        for modality in wanted:
            shown += ranked[modality][query_id][: ks[modality]]
        k = sum(ks.values())
        contexts.append(Context(query_id=query_id, setting=setting, k=k, doc_ids=shown))
    return contexts


def evidence_modes(
    benchmark: Benchmark,
    runs: Runs,
    *,
    ks: Mapping[str, int] = KS,
    order: str = ORDERS[0],
    draws: int = 1,
    seed: int = 0,
) -> list[Context]:
    """Return contexts of each query in each of `MODES` and draws (MRAG-Suite, section 3.5).

    Images come before texts; k is the sum of `ks`. For each modality, gt_only has the gold
    documents in the order of the labels, at most k; gt_plus_distractors has those, filled up to k
    with distractors; distractors_only has the first k distractors, which start with the same ones.
    Distractors are the best-ranked documents of the modality's run without a positive label.
    `order` (one of `ORDERS`) applies within one modality; with "shuffled", documents that two modes
    share keep their order.

    A modality that a query's candidates do not have is not shown. Raises `VragError` for a query
    without any gold document, for a run that is not as deep as the candidates allow, and as
    `top_k_per_modality` does.
    """
    wanted = _wanted(ks, runs)
    if order not in ORDERS or draws < 1:
        raise VragError(
            f"order is {order!r}, draws {draws}; expected one of {', '.join(ORDERS)}, and 1 or"
            " more."
        )
    _check_gold(benchmark)
    arms = {modality: _arms(benchmark, runs[modality], modality, ks) for modality in wanted}
    contexts = []
    for query_id in benchmark.queries:
        for draw in range(draws):
            names = (seed, query_id, "evidence", draw)
            for mode in MODES:
                shown: tuple[DocId, ...] = ()
                for modality in wanted:
                    gold, others = arms[modality][query_id]
                    chosen = documents_for_mode(mode, gold, others, ks[modality])
                    shown += _in_order(chosen, gold, order, names)
                k = sum(ks.values())
                contexts.append(
                    Context(query_id=query_id, setting=mode, k=k, draw=draw, doc_ids=shown)
                )
    return contexts


def documents_for_mode(
    mode: str, gold: Sequence[DocId], distractors: Sequence[DocId], k: int
) -> tuple[DocId, ...]:
    """Return at most k documents of one modality in a mode: gold first, then distractors.

    Both keep their given order. The choice only grows with k, and from gt_only to
    gt_plus_distractors.
    """
    if mode == DISTRACTORS_ONLY:
        return tuple(distractors[:k])
    kept = tuple(gold[:k])
    return kept if mode == GT_ONLY else kept + tuple(distractors[: k - len(kept)])


def _wanted(ks: Mapping[str, int], runs: Runs) -> list[str]:
    """The modalities that are asked for, pictures first."""
    wanted = [modality for modality in MODALITIES if ks.get(modality, 0) > 0]
    if set(ks) - set(MODALITIES) or not wanted or min(ks.values()) < 0:
        raise VragError(
            f"documents to show: {dict(ks)}; expected how many of {' and '.join(MODALITIES)}, at"
            " least one in all."
        )
    if missing := [modality for modality in wanted if modality not in runs]:
        raise VragError(
            f"{ks[missing[0]]} documents to show are of the modality {missing[0]!r}, for which"
            f" there is no run; found {', '.join(runs) or 'none'}. Search for it, or ask for 0."
        )
    return wanted


def _ranked(
    benchmark: Benchmark, run: pd.DataFrame, modality: str
) -> dict[QueryId, tuple[DocId, ...]]:
    """Query → its documents of a modality in a run, best first."""
    require_columns(run, ["query_id", "doc_id", "rank"], f"the run of {modality}s")
    found: dict[QueryId, list[DocId]] = {query_id: [] for query_id in benchmark.queries}
    best_first = run.sort_values("rank", kind="stable")[["query_id", "doc_id"]]
    for query_id, doc_id in best_first.itertuples(index=False):
        if doc_id not in benchmark.corpus:
            raise VragError(
                f"the run of {modality}s ranks {doc_id!r} for query {query_id!r}, which is no"
                f" document of {benchmark.name}. Search its own corpus."
            )
        if query_id in found and benchmark.corpus[doc_id].modality == modality:
            found[query_id].append(doc_id)
    return {query_id: tuple(documents) for query_id, documents in found.items()}


def _arms(
    benchmark: Benchmark, run: pd.DataFrame, modality: str, ks: Mapping[str, int]
) -> dict[QueryId, tuple[tuple[DocId, ...], tuple[DocId, ...]]]:
    """Query → its gold documents of a modality, and at most k distractors."""
    ranked = _ranked(benchmark, run, modality)
    k = ks[modality]
    there = [each for each, document in benchmark.corpus.items() if document.modality == modality]
    arms = {}
    for query_id in benchmark.queries:
        relevant = set(benchmark.relevant(query_id))
        gold = [
            each
            for each in benchmark.relevant(query_id)
            if benchmark.corpus[each].modality == modality
        ]
        others = [each for each in ranked[query_id] if each not in relevant][:k]
        pool = benchmark.candidates(query_id)
        among = there if pool is None else set(pool).intersection(there)
        never = relevant | benchmark.left_out.get(query_id, frozenset())
        most = min(k, len(set(among) - never))
        if len(others) < most:
            raise VragError(
                f"query {query_id!r}: the run of {modality}s holds {len(others)} distractors,"
                f" fewer than {most}, though there are more. Search deeper, or by a retriever"
                " that ranks every document."
            )
        arms[query_id] = (tuple(gold), tuple(others))
    return arms


def _in_order(
    chosen: Sequence[DocId], gold: Sequence[DocId], order: str, names: tuple[object, ...]
) -> tuple[DocId, ...]:
    """Chosen documents as they are shown."""
    if order == "shuffled":
        return tuple(ordered(chosen, *names))
    if order == "gold_first":
        return tuple(chosen)
    others = [each for each in chosen if each not in gold]
    return (*others, *[each for each in chosen if each in gold])


def _check_gold(benchmark: Benchmark) -> None:
    """Raise `VragError` for queries without gold evidence, and for such evidence that is
    not there.
    """
    without = [query_id for query_id in benchmark.queries if not benchmark.relevant(query_id)]
    if without:
        raise VragError(
            f"{len(without):,} of {len(benchmark.queries):,} queries of {benchmark.name} have no"
            f" gold evidence, the first {without[0]!r}. Leave them out of all modes with"
            " `with_min_clues(benchmark, 1)`."
        )
    for query_id in benchmark.queries:
        lost = [each for each in benchmark.relevant(query_id) if each not in benchmark.corpus]
        if lost:
            raise VragError(
                f"query {query_id!r}: its gold evidence {lost[0]!r} is no document of"
                f" {benchmark.name}. Load the file that holds it, or leave the query out with"
                " `benchmark.subset(query_ids)`."
            )
