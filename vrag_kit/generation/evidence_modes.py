"""Contexts with a number of images and of texts, from searches or in evidence modes. The modes show
gold evidence, distractors, or both.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, product

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.generation.contexts import ranked_documents
from vrag_kit.types import MODALITIES, Benchmark, Context, DocId, QueryId, ordered

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
    k = sum(ks.values())
    ranked = {modality: _ranked(benchmark, runs, modality) for modality in wanted}
    contexts = []
    for query_id in benchmark.queries:
        shown = (ranked[modality][query_id][: ks[modality]] for modality in wanted)
        doc_ids = tuple(chain.from_iterable(shown))
        contexts.append(Context(query_id=query_id, setting=setting, k=k, doc_ids=doc_ids))
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
    if order not in ORDERS:
        raise VragError(f"order is {order!r}; expected one of {', '.join(ORDERS)}.")
    _check_gold(benchmark)
    documents = {
        modality: _documents_by_mode(benchmark, runs, modality, ks[modality]) for modality in wanted
    }
    k = sum(ks.values())
    contexts = []
    for query_id, draw, mode in product(benchmark.queries, range(draws), MODES):
        shown: list[DocId] = []
        for modality in wanted:
            chosen = documents[modality][query_id][mode][: ks[modality]]
            if order == "shuffled":
                chosen = ordered(chosen, seed, query_id, "evidence", draw)
            elif order == "gold_last":
                chosen = sorted(chosen, key=benchmark.relevant(query_id).__contains__)
            shown += chosen
        context = Context(query_id=query_id, setting=mode, k=k, draw=draw, doc_ids=tuple(shown))
        contexts.append(context)
    return contexts


def _wanted(ks: Mapping[str, int], runs: Runs) -> list[str]:
    """The modalities of which `ks` wants documents, images first."""
    wanted = [modality for modality in MODALITIES if ks.get(modality, 0) > 0]
    if set(ks) - set(MODALITIES) or not wanted or min(ks.values()) < 0:
        expected = f"how many of {' and '.join(MODALITIES)}, at least one in all"
        raise VragError(f"documents to show: found {dict(ks)}; expected {expected}.")
    if missing := [modality for modality in wanted if modality not in runs]:
        found = f"no run of the modality {missing[0]!r}"
        raise VragError(f"documents to show: found {found}; expected one, or 0 documents of it.")
    return wanted


def _ranked(benchmark: Benchmark, runs: Runs, modality: str) -> dict[QueryId, list[DocId]]:
    """Query → its documents of a modality in that modality's run, best first."""
    ranked = {}
    for query_id, doc_ids in ranked_documents(benchmark, runs[modality]).items():
        if unknown := [doc_id for doc_id in doc_ids if doc_id not in benchmark.corpus]:
            where = f"the run of {modality}s, query {query_id!r}"
            raise VragError(
                f"{where}: found {unknown[0]!r}; expected documents of {benchmark.name}."
            )
        ranked[query_id] = [
            doc_id for doc_id in doc_ids if benchmark.corpus[doc_id].modality == modality
        ]
    return ranked


def _documents_by_mode(
    benchmark: Benchmark, runs: Runs, modality: str, k: int
) -> dict[QueryId, dict[str, list[DocId]]]:
    """Query → mode → its documents of a modality, at least k where there are as many."""
    ranked = _ranked(benchmark, runs, modality)
    corpus = {name for name, document in benchmark.corpus.items() if document.modality == modality}
    found = {}
    for query_id in benchmark.queries:
        gold = [doc_id for doc_id in benchmark.relevant(query_id) if doc_id in corpus]
        distractors = [doc_id for doc_id in ranked[query_id] if doc_id not in gold]
        if len(distractors) < k:
            others = corpus.intersection(benchmark.searchable(query_id)).difference(gold)
            if len(distractors) < (expected := min(k, len(others))):
                raise VragError(
                    f"the run of {modality}s, query {query_id!r}: found {len(distractors)}"
                    f" distractors; expected {expected}. Search deeper."
                )
        found[query_id] = {
            DISTRACTORS_ONLY: distractors,
            GT_PLUS_DISTRACTORS: gold + distractors,
            GT_ONLY: gold,
        }
    return found


def _check_gold(benchmark: Benchmark) -> None:
    gold = {query_id: benchmark.relevant(query_id) for query_id in benchmark.queries}
    if without := [query_id for query_id, doc_ids in gold.items() if not doc_ids]:
        raise VragError(
            f"{benchmark.name}: {len(without)} of {len(gold)} queries have no gold evidence, such"
            f" as {without[0]!r}. `with_min_clues(benchmark, 1)` leaves them out."
        )
    for query_id, doc_ids in gold.items():
        if lost := set(doc_ids).difference(benchmark.corpus):
            where = f"query {query_id!r}: found gold evidence {min(lost)!r}"
            raise VragError(f"{where}; expected a document of {benchmark.name}.")
