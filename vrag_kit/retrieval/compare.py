"""Searches a benchmark with several retrievers, and scores the runs beside two baselines."""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from vrag_kit.config import Entry, check_list
from vrag_kit.dry_run import current_dry_run
from vrag_kit.errors import VragError
from vrag_kit.files import project_path
from vrag_kit.log import logger
from vrag_kit.retrieval.dense import dense_run, read_cached_run, search_key, write_cached_run
from vrag_kit.retrieval.embedding_cache import PlannedEmbedding, embed_documents
from vrag_kit.retrieval.encoders.custom import CustomEncoder, CustomEncoderAdapter
from vrag_kit.retrieval.encoders.loading import open_encoder
from vrag_kit.retrieval.metrics import (
    BY_DEPTH,
    CUTOFFS,
    DEPTH,
    RetrievalMetric,
    arbitrary_run,
    evaluate,
    oracle_run,
    random_baseline,
    shallow_queries,
)
from vrag_kit.retrieval.runs import (
    NAME,
    READ_FROM,
    common_cutoffs,
    external_run,
    find_run_file,
    write_qrels,
    write_run,
)
from vrag_kit.retrieval.shards import embeddings_folder
from vrag_kit.types import Benchmark
from vrag_kit.workspace import Workspace

RANDOM_BASELINE, ORACLE = "random order", "perfect order"


def search_all(
    benchmark: Benchmark,
    retrievers: Sequence[Entry | CustomEncoder],
    *,
    k: int,
    at: Workspace,
) -> dict[str, pd.DataFrame]:
    """Returns one run per retriever, by name, with at most k documents per query. The name is in
    the run's `attrs` too; embeddings and finished searches are cached there (`at`).

    `retrievers` are what `load_encoder` takes, objects (`CustomEncoder`), or external TREC run
    files, which are read as they are (`external_run`); "bm25" is searched by `search_by_modality`
    and `text_service`. One checkpoint is in memory at a time, and
    only if something is left to encode; a cached search is read back bit for bit. Raises
    `VragError` when two retrievers have the same name, such as two folders of one name, and as
    `external_run` does.
    """
    check_list(retrievers, "retrievers")
    runs: dict[str, pd.DataFrame] = {}
    for entry in retrievers:
        if (file := find_run_file(entry)) is not None:
            name, run = file[0], external_run(*file, benchmark, k)
        else:
            planned = PlannedEmbedding(entry, benchmark.corpus.values(), at.cache_dir, at.device)
            name, run = _search(benchmark, planned, k)
            gc.collect()
            if (torch := sys.modules.get("torch")) is not None:
                torch.cuda.empty_cache()  # of the last encoder
        if name in runs:
            raise VragError(f"two retrievers are named {name!r}; give an entry a `name`.")
        run.attrs[NAME] = name
        runs[name] = run
    return runs


def search_one(
    benchmark: Benchmark,
    retriever: Entry | CustomEncoder,
    *,
    k: int,
    at: Workspace,
) -> pd.DataFrame:
    """Returns the run of a single retriever; everything else is as in `search_all`."""
    runs = search_all(benchmark, [retriever], k=k, at=at)
    (run,) = runs.values()
    return run


def _search(benchmark: Benchmark, planned: PlannedEmbedding, k: int) -> tuple[str, pd.DataFrame]:
    """Returns (name of the retriever, run), which is read back if it is stored. A dry run records
    the embedding, and searches nothing: a missing run is one of arbitrary candidates.
    """
    encoder = open_encoder(planned.entry, device=planned.device)
    folder, key = embeddings_folder(encoder, planned.root), search_key(benchmark, encoder, k)
    if (dry_run := current_dry_run()) is not None:
        dry_run.corpora.append(planned)
    run = read_cached_run(folder, key)
    if run is not None:
        n = len(benchmark.queries)
        logger.info(f"search by {encoder.name}: {n:,} queries, found before")
    elif dry_run is not None:
        dry_run.any_order.add(encoder.name)
        run = arbitrary_run(benchmark, k)
        if isinstance(encoder, CustomEncoderAdapter) and len(run):
            query_id, doc_id = map(str, run.loc[0, ["query_id", "doc_id"]])
            encoder.check_one(benchmark.queries[query_id], benchmark.corpus[doc_id])
    else:
        embeddings = embed_documents(encoder, planned.documents, planned.root)
        queries = benchmark.queries.values()
        run = dense_run(encoder, embeddings, queries, k, benchmark.candidates, benchmark.left_out)
        write_cached_run(folder, key, run)
    return encoder.name, run


def write_runs(benchmark: Benchmark, runs: Mapping[str, pd.DataFrame], folder: Path | str) -> None:
    """Write qrels.txt and one <retriever>.run per retriever as TREC files. They suit `vrag metrics`
    or any other tool; a run that was read from such a file does not overwrite it. Raises `OSError`
    when a file cannot be written.
    """
    write_qrels(benchmark.qrels, project_path(folder) / "qrels.txt")
    for name, run in runs.items():
        file = project_path(folder) / f"{name}.run"
        if run.attrs.get(READ_FROM) != str(file.resolve()):
            write_run(run, file, name)


def score_runs(
    benchmark: Benchmark,
    runs: Mapping[str, pd.DataFrame],
    *,
    cutoffs: Sequence[int] = CUTOFFS,
    full_depth: bool = False,
    metrics: Sequence[str | RetrievalMetric] = (),
) -> pd.DataFrame:
    """Returns every metric of every query and retriever, and of two baselines. Columns are
    retriever, query_id, group, metric, k, value, score_min and score_max (the ends of the metric's
    scale), and attainable, the largest value that the query allows: for hit_count its number of
    relevant documents, if fewer than k.

    The retrievers come first, then "random order" (its exact expectation) and "perfect order". A
    query without results has the value that `evaluate` gives: 0 if it has relevant documents.
    `full_depth`, for comparisons over k, lowers the cutoffs to the fewest documents that a run
    holds for a query. A printed line says so, and also if a run is too shallow for
    `ndcg_visual_rag`; a run without results for some query raises `VragError`. `metrics` are custom
    metrics, as in `evaluate`; they have no rows for "random order".
    """
    for name, run in runs.items() if full_depth else ():
        cutoffs = common_cutoffs(benchmark, run, cutoffs, f"the run of {name}")
        if shallow := shallow_queries(run, benchmark.qrels):
            logger.warning(
                f"no {BY_DEPTH} for {name} in {len(shallow):,} of {len(benchmark.queries):,}"
                f" queries, which have fewer than {DEPTH} documents"
            )
    tables = {
        name: evaluate(run, benchmark.qrels, cutoffs=cutoffs, metrics=metrics)
        for name, run in runs.items()
    }
    sizes = dict.fromkeys(benchmark.queries, len(benchmark.corpus))
    if benchmark.pools is not None or benchmark.left_out:
        sizes = {query_id: len(benchmark.searchable(query_id)) for query_id in benchmark.queries}
    tables[RANDOM_BASELINE] = random_baseline(benchmark.qrels, sizes, cutoffs=cutoffs)
    best = oracle_run(benchmark.qrels, max(DEPTH, *cutoffs))
    tables[ORACLE] = evaluate(best, benchmark.qrels, cutoffs=cutoffs, metrics=metrics)
    named = [table.assign(retriever=name) for name, table in tables.items()]
    scores = pd.concat(named, ignore_index=True)
    scores["group"] = scores["query_id"].map(benchmark.groups)
    relevant = {query_id: len(benchmark.relevant(query_id)) for query_id in benchmark.queries}
    counted = scores["metric"] == "hit_count"
    scores["score_min"] = 0.0
    scores["score_max"] = scores["k"].where(counted, 1).astype(float)
    attainable = scores["query_id"].map(relevant).clip(lower=1).where(counted, 1)
    scores["attainable"] = np.minimum(scores["score_max"], attainable)
    columns = ["retriever", "query_id", "group", "metric", "k", "value"]
    return scores[[*columns, "score_min", "score_max", "attainable"]]
