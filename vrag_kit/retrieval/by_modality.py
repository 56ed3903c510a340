"""Searches images and texts with separate retrievers, and fuses the runs of each modality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from vrag_kit.benchmarks.modality import restrict_to_modality
from vrag_kit.errors import VragError
from vrag_kit.options import Entry
from vrag_kit.retrieval.bm25 import bm25_run
from vrag_kit.retrieval.compare import score_runs, search_all
from vrag_kit.retrieval.fusion import reciprocal_rank_fusion
from vrag_kit.retrieval.runs import make_run
from vrag_kit.types import MODALITIES, Benchmark

BM25 = "bm25"
FUSED = "fused"
Runs = dict[str, dict[str, pd.DataFrame]]
"""Modality → retriever name → run."""


def search_by_modality(
    benchmark: Benchmark,
    retrievers: Mapping[str, Sequence[Entry]],
    *,
    k: int,
    cache_dir: Path | str,
    device: str = "cpu",
) -> Runs:
    """Searches the documents of each modality with its own retrievers, at most k results per query.
    "fused" (`reciprocal_rank_fusion`) follows where a modality has several runs.

    `retrievers` maps a modality to what `search_all` takes, and "bm25", which searches passages,
    captions and page text. "bm25" is omitted where no document has text, and a modality where there
    are no documents or no retrievers. Raises `VragError` for an unknown modality, and as
    `search_all` does.
    """
    if unknown := [each for each in retrievers if each not in MODALITIES]:
        raise VragError(
            f"retrievers are by modality: found {unknown[0]!r}, expected"
            f" {' and '.join(MODALITIES)}."
        )
    there = {document.modality for document in benchmark.corpus.values()}
    found: Runs = {}
    for modality in MODALITIES:
        if modality not in there:
            continue
        part = restrict_to_modality(benchmark, modality)
        entries = list(retrievers.get(modality, ()))
        runs: dict[str, pd.DataFrame] = {}
        if BM25 in entries and any((each.text or "").strip() for each in part.corpus.values()):
            runs[BM25] = bm25_pool_run(part, k)
        dense = [entry for entry in entries if entry != BM25]
        runs |= search_all(part, dense, k=k, cache_dir=cache_dir, device=device)
        if len(runs) > 1:
            runs[FUSED] = reciprocal_rank_fusion(runs)
        if runs:
            found[modality] = runs
    return found


def score_by_modality(benchmark: Benchmark, runs: Runs, *, cutoffs: Sequence[int]) -> pd.DataFrame:
    """Returns the table of `score_runs` for each modality, with modality as the first column.
    Labels are those of the modality's documents.
    """
    tables = []
    for modality, by_name in runs.items():
        scores = score_runs(restrict_to_modality(benchmark, modality), by_name, cutoffs=cutoffs)
        scores.insert(0, "modality", modality)
        tables.append(scores)
    return pd.concat(tables, ignore_index=True)


def bm25_pool_run(benchmark: Benchmark, k: int) -> pd.DataFrame:
    """Returns a BM25 run over the benchmark, restricted to each query's candidates. Documents in
    `left_out` are excluded.
    """
    queries = benchmark.queries.values()
    if benchmark.pools is None and not benchmark.left_out:
        return bm25_run(queries, benchmark.corpus, k)
    run = bm25_run(queries, benchmark.corpus, len(benchmark.corpus))
    rows: list[tuple[str, str, float]] = []
    for query_id, hits in run.groupby("query_id", sort=False):
        kept = hits[hits["doc_id"].isin(benchmark.searchable(str(query_id)))].head(k)
        pairs = zip(kept["doc_id"], kept["score"], strict=True)
        rows += [(str(query_id), doc_id, score) for doc_id, score in pairs]
    return make_run(rows)
