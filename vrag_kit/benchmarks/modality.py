"""Restrict a benchmark to documents of one modality for retrieval."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from vrag_kit.errors import VragError
from vrag_kit.types import MODALITIES, Benchmark, DocId, QueryId


def restrict_to_modality(benchmark: Benchmark, modality: str) -> Benchmark:
    """Restrict corpus, labels and pools to one modality; the questions stay the same.

    `modality` is "image" or "text", as in `Evidence.modality`. Queries whose labels are all
    of the other modality stay without labels; retrieval metrics leave them out. Raises
    `VragError` for an unknown modality, and if there is no such document.
    """
    if modality not in MODALITIES:
        raise VragError(f"modality is {modality!r}; expected one of {', '.join(MODALITIES)}.")
    corpus = {
        doc_id: document
        for doc_id, document in benchmark.corpus.items()
        if document.modality == modality
    }
    if not corpus:
        raise VragError(
            f"{benchmark.name}: none of {len(benchmark.corpus):,} documents is of the modality"
            f" {modality!r}. Search the other one."
        )

    qrels: dict[QueryId, dict[DocId, int]] = {}
    for query_id, labels in benchmark.qrels.items():
        qrels[query_id] = {each: label for each, label in labels.items() if each in corpus}
    pools: dict[QueryId, tuple[DocId, ...]] = {}
    for query_id, pool in (benchmark.pools or {}).items():
        pools[query_id] = tuple(each for each in pool if each in corpus)
    return replace(
        benchmark,
        fingerprint=hashlib.sha256(f"{benchmark.fingerprint} {modality}".encode()).hexdigest(),
        corpus=corpus,
        qrels=qrels,
        pools=None if benchmark.pools is None else pools,
    )
