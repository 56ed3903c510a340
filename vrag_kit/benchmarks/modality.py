"""A benchmark of the documents of one modality, as a search of it needs it."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from vrag_kit.errors import VragError
from vrag_kit.types import MODALITIES, Benchmark, DocId, QueryId


def documents_of(benchmark: Benchmark, modality: str) -> Benchmark:
    """The same questions over the documents of a modality ("image" or "text", as
    `Evidence.modality` has it): corpus, labels and pools hold no others.

    Queries whose labels are all of the other modality stay, and have none: metrics of
    retrieval leave them out. Raises `VragError` for an unknown modality, and where there
    is no such document.
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
