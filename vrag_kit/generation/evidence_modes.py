"""Contexts with a number of images and of texts, from searches or in evidence modes. The modes show
gold evidence, distractors, or both.
"""

from __future__ import annotations

from collections.abc import Mapping

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
KS = {"image": 3, "text": 3}
"""Number of documents of each modality; a checker is shown the same numbers."""

Runs = Mapping[str, pd.DataFrame]
"""Modality → run; documents of other modalities in it are ignored."""


def top_k_per_modality(
    benchmark: Benchmark, runs: Runs, *, ks: Mapping[str, int] = KS
) -> list[Context]:
    """Return contexts with the top documents of each modality's run, images before texts.

    There is one context per query, with the setting "image", "text" or "both", according to `ks`. A
    query with fewer retrieved documents gets those, possibly none. Raises `VragError` for a
    modality without a run.
    """
    ranked = _ranked(benchmark, runs, ks)
    setting = BOTH if len(ranked) > 1 else next(iter(ranked))
    contexts = []
    for query_id in benchmark.queries:
        doc_ids: list[DocId] = []
        for modality, documents in ranked.items():
            doc_ids += documents[query_id][: ks[modality]]
        contexts.append(
            Context(query_id=query_id, setting=setting, k=sum(ks.values()), doc_ids=tuple(doc_ids))
        )
    return contexts


def evidence_modes(
    benchmark: Benchmark, runs: Runs, *, ks: Mapping[str, int] = KS, seed: int = 0
) -> list[Context]:
    """Return a context of each query in each of `MODES` (MRAG-Suite, section 3.5).

    Images come before texts; k is the sum of `ks`. For each modality, gt_only has the gold
    documents in the order of the labels, at most k; gt_plus_distractors has those, filled up to k
    with distractors; distractors_only has the first k distractors, which start with the same ones.
    Distractors are the best-ranked documents of the modality's run without a positive label. Those
    that are chosen are shown in random order, by a hash of the seed: documents that two modes share
    keep their order.

    A modality that a query's candidates do not have is not shown. Raises `VragError` for a query
    without any gold document, for a run that is not as deep as the candidates allow, and as
    `top_k_per_modality` does.
    """
    ranked = _ranked(benchmark, runs, ks)
    contexts = []
    for query_id in benchmark.queries:
        relevant = benchmark.relevant(query_id)
        if not relevant:
            raise VragError(
                f"{benchmark.name}, query {query_id!r}: found no gold evidence; expected some."
                " `with_min_clues(benchmark, 1)` leaves such queries out."
            )
        doc_ids: dict[str, list[DocId]] = {mode: [] for mode in MODES}
        for modality, documents in ranked.items():
            gold = [each for each in relevant if benchmark.corpus[each].modality == modality]
            others = [each for each in documents[query_id] if each not in gold]
            _check_depth(benchmark, query_id, modality, gold, len(others), ks[modality])
            chosen = {GT_ONLY: gold, GT_PLUS_DISTRACTORS: gold + others, DISTRACTORS_ONLY: others}
            for mode in MODES:
                first = chosen[mode][: ks[modality]]
                doc_ids[mode] += ordered(first, seed, query_id, "evidence", 0)
        contexts += [
            Context(query_id=query_id, setting=mode, k=sum(ks.values()), doc_ids=tuple(each))
            for mode, each in doc_ids.items()
        ]
    return contexts


def _ranked(
    benchmark: Benchmark, runs: Runs, ks: Mapping[str, int]
) -> dict[str, dict[QueryId, list[DocId]]]:
    """Modality, images first → query → its documents of that modality in its run, best first."""
    ranked = {}
    for modality in MODALITIES:
        if not ks.get(modality):
            continue
        if modality not in runs:
            raise VragError(
                f"documents to show: found no run of the modality {modality!r}; expected one, or 0"
                " documents of it."
            )
        ranked[modality] = {
            query_id: [each for each in doc_ids if benchmark.corpus[each].modality == modality]
            for query_id, doc_ids in ranked_documents(benchmark, runs[modality]).items()
        }
    return ranked


def _check_depth(
    benchmark: Benchmark, query_id: QueryId, modality: str, gold: list[DocId], found: int, k: int
) -> None:
    """Raise `VragError` for fewer distractors than k, if the query's candidates have more."""
    if found >= k:
        return
    candidates = set(benchmark.searchable(query_id)).difference(gold)
    of_modality = [each for each in candidates if benchmark.corpus[each].modality == modality]
    if found < (expected := min(k, len(of_modality))):
        raise VragError(
            f"the run of {modality}s, query {query_id!r}: found {found} distractors; expected"
            f" {expected}. Search deeper."
        )
