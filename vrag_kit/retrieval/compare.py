"""Searches a benchmark with several retrievers, and scores the runs between two references."""

from __future__ import annotations

import gc
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd

from vrag_kit.depths import clip_cutoffs, describe_run_depth
from vrag_kit.dry_run import DryRun, current_dry_run
from vrag_kit.errors import VragError
from vrag_kit.log import logger
from vrag_kit.options import Entry, check_list
from vrag_kit.retrieval.corpora import note_planned_embedding
from vrag_kit.retrieval.dense import FlatRetriever, read_cached_run, search_key, write_cached_run
from vrag_kit.retrieval.embedding import embed_documents
from vrag_kit.retrieval.encoders.base import Encoder
from vrag_kit.retrieval.encoders.custom import CustomEncoder, CustomEncoderAdapter
from vrag_kit.retrieval.encoders.known import cached_encoder, open_encoder
from vrag_kit.retrieval.manifests import embeddings_folder
from vrag_kit.retrieval.metrics import (
    BY_DEPTH,
    CUTOFFS,
    DEPTH,
    METRICS,
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
    external_run,
    find_run_file,
    write_qrels,
    write_run,
)
from vrag_kit.types import Benchmark

RANDOM, PERFECT = "random order", "perfect order"


def search_all(
    benchmark: Benchmark,
    retrievers: Sequence[Entry | CustomEncoder],
    *,
    k: int,
    cache_dir: Path | str,
    device: str = "cpu",
) -> dict[str, pd.DataFrame]:
    """Returns one run per retriever, by name, with at most k documents per query. The name is in
    the run's `attrs` too; embeddings and finished searches are cached in `cache_dir`.

    `retrievers` are what `load_encoder` takes, objects (`CustomEncoder`), or external TREC run
    files, which are read as they are (`external_run`). One checkpoint is in memory at a time, and
    only if something is left to encode; a cached search is read back bit for bit. Raises
    `VragError` when two retrievers have the same name, such as two folders of one name, and as
    `external_run` does.
    """
    check_list(retrievers, "retrievers")
    runs: dict[str, pd.DataFrame] = {}
    dry_run = current_dry_run()
    for entry in retrievers:
        if (file := find_run_file(entry)) is not None:
            _check_new(file.name, runs)
            runs[file.name] = external_run(file, benchmark, k)
        elif dry_run is not None:
            note_planned_embedding(entry, benchmark.corpus.values(), cache_dir, device=device)
            name, run = _dry_search(benchmark, entry, k, cache_dir, dry_run)
            runs[name] = run
        else:
            encoder = open_encoder(entry, cache_dir, device=device)
            _check_new(encoder.name, runs)
            runs[encoder.name] = _search(benchmark, encoder, k, cache_dir)
            del encoder
            _free_memory()
    for name, run in runs.items():
        run.attrs[NAME] = name
    return runs


def search_one(
    benchmark: Benchmark,
    retriever: Entry | CustomEncoder,
    *,
    k: int,
    cache_dir: Path | str,
    device: str = "cpu",
) -> pd.DataFrame:
    """Returns the run of a single retriever; everything else is as in `search_all`."""
    runs = search_all(benchmark, [retriever], k=k, cache_dir=cache_dir, device=device)
    (run,) = runs.values()
    return run


def _check_new(name: str, runs: Collection[str]) -> None:
    if name in runs:
        raise VragError(
            f"two retrievers are named {name!r}; rename one folder or file, list it once, or give a"
            " run, or one of your own classes, a `name` in its entry, or your object an attribute"
            " `name`."
        )


def _search(benchmark: Benchmark, encoder: Encoder, k: int, cache_dir: Path | str) -> pd.DataFrame:
    folder = embeddings_folder(encoder, cache_dir)
    key = search_key(benchmark, encoder, k)
    run = read_cached_run(folder, key)
    if run is not None:
        queries = f"{len(benchmark.queries):,} queries"
        logger.info(f"search by {encoder.name}: {queries}, found before")
        return run
    embeddings = embed_documents(encoder, benchmark.corpus.values(), cache_dir)
    retriever = FlatRetriever(encoder, embeddings, benchmark.candidates, benchmark.left_out)
    run = retriever.search(benchmark.queries.values(), k)
    write_cached_run(folder, key, run)
    return run


def _dry_search(
    benchmark: Benchmark,
    entry: Entry | CustomEncoder,
    k: int,
    cache_dir: Path | str,
    dry_run: DryRun,
) -> tuple[str, pd.DataFrame]:
    """Returns (name, run) of a cached search; without one, a run of arbitrary candidates. It has as
    many images as a search would find, but not the same ones.
    """
    spec = entry.get("model") if isinstance(entry, Mapping) else entry
    name = Path(str(spec)).name
    encoder: Encoder | None = None
    with suppress(VragError):  # no checkpoint here yet, or no such class
        encoder = cached_encoder(entry, cache_dir)
        if encoder is not None:
            name, folder = encoder.name, embeddings_folder(encoder, cache_dir)
            run = read_cached_run(folder, search_key(benchmark, encoder, k))
            if run is not None:
                return name, run
    run = arbitrary_run(benchmark, k)
    if isinstance(encoder, CustomEncoderAdapter) and len(run):
        first, found = str(run["query_id"].iloc[0]), str(run["doc_id"].iloc[0])
        encoder.check_one(benchmark.queries[first], benchmark.corpus[found])
    dry_run.any_order.add(name)
    return name, run


def _free_memory() -> None:
    """Free the memory of the last encoder, if one was loaded."""
    gc.collect()
    if (torch := sys.modules.get("torch")) is not None:
        torch.cuda.empty_cache()


def write_runs(benchmark: Benchmark, runs: Mapping[str, pd.DataFrame], folder: Path | str) -> None:
    """Write qrels.txt and one <retriever>.run per retriever as TREC files. They suit `vrag metrics`
    or any other tool; a run that was read from such a file does not overwrite it. Raises
    `VragError` when a file cannot be written.
    """
    try:
        write_qrels(benchmark.qrels, Path(folder) / "qrels.txt")
        for name, run in runs.items():
            file = Path(folder) / f"{name}.run"
            if run.attrs.get(READ_FROM) != str(file.resolve()):
                write_run(run, file, name)
    except OSError as error:
        raise VragError(
            f"{error.filename or folder}: the run cannot be written ({error.strerror or error})."
            " Free space, or name another folder."
        ) from error


def score_runs(
    benchmark: Benchmark,
    runs: Mapping[str, pd.DataFrame],
    *,
    cutoffs: Sequence[int] = CUTOFFS,
    full_depth: bool = False,
    metrics: Sequence[str | RetrievalMetric] = (),
) -> pd.DataFrame:
    """Returns every metric of every query and retriever, and of two reference orders. Columns are
    retriever, query_id, group, metric, k, value, score_min and score_max (the ends of the metric's
    scale), and most, the largest value that the query allows: for hit_count its number of relevant
    documents, if fewer than k.

    The retrievers come first, then "random order" (its exact expectation) and "perfect order". A
    query without results has the value that `evaluate` gives: 0 if it has relevant documents.
    `full_depth`, for comparisons over k, lowers the cutoffs to the fewest documents that a run
    holds for a query. A printed line says so, and also if a run is too shallow for
    `ndcg_visual_rag`; a run without results for some query raises `VragError`. `metrics` are custom
    metrics, as in `evaluate`; they have no rows for "random order". If one is among the kit's, a
    line says so.
    """
    for metric in metrics:
        if isinstance(metric, str) and metric in METRICS:
            logger.warning(f"metric {metric!r} is the kit's, and there already; list only your own")
    if full_depth:
        for name, run in runs.items():
            cutoffs = _within(benchmark, name, run, cutoffs)
            _note_shallow(benchmark, name, run)
    sizes = {}
    for query_id in benchmark.queries:
        pool = benchmark.candidates(query_id)
        sizes[query_id] = len(benchmark.corpus if pool is None else pool)
    tables = {
        name: evaluate(run, benchmark.qrels, cutoffs=cutoffs, metrics=metrics)
        for name, run in runs.items()
    }
    tables[RANDOM] = random_baseline(benchmark.qrels, sizes, cutoffs=cutoffs)
    best = oracle_run(benchmark.qrels, max(DEPTH, *cutoffs))
    tables[PERFECT] = evaluate(best, benchmark.qrels, cutoffs=cutoffs, metrics=metrics)
    named = [table.assign(retriever=name) for name, table in tables.items()]
    scores = pd.concat(named, ignore_index=True)
    scores["group"] = scores["query_id"].map(benchmark.groups)
    scores["score_min"] = 0.0
    counts = scores["metric"] == "hit_count"
    scores["score_max"] = scores["k"].where(counts, 1).astype(float)
    relevant = {query_id: len(benchmark.relevant(query_id)) for query_id in benchmark.queries}
    clues = scores["query_id"].map(relevant).clip(lower=1)
    scores["most"] = scores["score_max"].where(~counts, np.minimum(scores["score_max"], clues))
    ends = ["score_min", "score_max", "most"]
    return scores[["retriever", "query_id", "group", "metric", "k", "value", *ends]]


def _within(
    benchmark: Benchmark, name: str, run: pd.DataFrame, cutoffs: Sequence[int]
) -> list[int]:
    """Returns the cutoffs, each at most the depth of the run for every query."""
    found = run["query_id"].value_counts().reindex(list(benchmark.queries), fill_value=0)
    query_id, depth = str(found.idxmin()), int(found.min())
    words = describe_run_depth(f"the run of {name}", depth, benchmark, query_id)
    if not depth:
        raise VragError(
            f"{words}, so there is no cut-off to compare all queries at. Leave the query out with"
            " `benchmark.subset(query_ids)`."
        )
    return clip_cutoffs(cutoffs, depth, words)


def _note_shallow(benchmark: Benchmark, name: str, run: pd.DataFrame) -> None:
    """Print which queries have no `ndcg_visual_rag`, and why."""
    shallow = shallow_queries(run, benchmark.qrels)
    if not shallow:
        return
    of_all = len(shallow) == len(benchmark.queries)
    few = "" if of_all else f" for {len(shallow):,} of {len(benchmark.queries):,} queries"
    depths = sorted(set(shallow.values()))
    deep = f"{depths[0]}" if len(depths) == 1 else f"{depths[0]} to {depths[-1]}"
    logger.warning(f"no {BY_DEPTH} for {name}{few}: it is {deep} deep, and its ideal needs {DEPTH}")
