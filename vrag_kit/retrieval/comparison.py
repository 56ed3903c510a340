"""Several retrievers over one benchmark: their runs, scored between two references."""

from __future__ import annotations

import gc
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd

from vrag_kit.depths import cut_to, held
from vrag_kit.errors import VragError
from vrag_kit.forecast import Forecast, Same, current_forecast, once
from vrag_kit.options import Entry, check_list
from vrag_kit.retrieval.corpora import note_corpus
from vrag_kit.retrieval.embedding import embed_documents
from vrag_kit.retrieval.encoders import Encoder
from vrag_kit.retrieval.given_run import READ_FROM, given_run, run_file
from vrag_kit.retrieval.known import known_encoder, open_encoder
from vrag_kit.retrieval.manifests import embeddings_folder
from vrag_kit.retrieval.metrics import BY_DEPTH, CUTOFFS, DEPTH, METRICS, evaluate, too_shallow
from vrag_kit.retrieval.own_encoder import EncoderClass, OwnEncoder
from vrag_kit.retrieval.own_metric import RetrievalMetric
from vrag_kit.retrieval.reference import any_order, perfect_run, random_reference
from vrag_kit.retrieval.run import NAME, write_qrels, write_run
from vrag_kit.retrieval.search import FlatRetriever
from vrag_kit.retrieval.searches import read_search, search_key, write_search
from vrag_kit.tally import note
from vrag_kit.types import Benchmark

RANDOM, PERFECT = "random order", "perfect order"


def search_all(
    benchmark: Benchmark,
    retrievers: Sequence[Entry | EncoderClass],
    *,
    k: int,
    cache_dir: Path | str,
    device: str = "cpu",
) -> dict[str, pd.DataFrame]:
    """One run of at most k documents a query for each retriever, by name, which stands in
    its `attrs` too; embeddings and finished searches are kept in `cache_dir`.

    `retrievers` are what `load_encoder` takes, objects (`EncoderClass`), or TREC run
    files, which were searched elsewhere and are read as they are (`given_run`); one
    checkpoint is in memory at a time, and only if something is left to encode: a search
    that was made is read back, the same to the last bit. Raises `VragError` when two
    retrievers have the same name, as two folders called alike would, and as `given_run`.
    """
    check_list(retrievers, "retrievers")
    runs: dict[str, pd.DataFrame] = {}
    forecast = current_forecast()
    for entry in retrievers:
        if (file := run_file(entry)) is not None:
            _check_new(file.name, runs)
            runs[file.name] = given_run(file, benchmark, k)
        elif forecast is not None:
            note_corpus(entry, benchmark.corpus.values(), cache_dir, device=device)
            name, run = _foreseen(benchmark, entry, k, cache_dir, forecast)
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
    retriever: Entry | EncoderClass,
    *,
    k: int,
    cache_dir: Path | str,
    device: str = "cpu",
) -> pd.DataFrame:
    """The run of one retriever alone; everything else as in `search_all`."""
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
    run = read_search(folder, key)
    if run is not None:
        queries = f"{len(benchmark.queries):,} queries"
        print(f"search by {encoder.name}: {queries}, found before", flush=True)
        return run
    embeddings = embed_documents(encoder, benchmark.corpus.values(), cache_dir)
    retriever = FlatRetriever(encoder, embeddings, benchmark.candidates, benchmark.left_out)
    run = retriever.search(benchmark.queries.values(), k)
    write_search(folder, key, run)
    return run


def _foreseen(
    benchmark: Benchmark,
    entry: Entry | EncoderClass,
    k: int,
    cache_dir: Path | str,
    forecast: Forecast,
) -> tuple[str, pd.DataFrame]:
    """(name, run) of a search that was made; where it was not, candidates in any order:
    as many images as a search would find, though others.
    """
    spec = entry.get("model") if isinstance(entry, Mapping) else entry
    name = Path(str(spec)).name
    encoder: Encoder | None = None
    with suppress(VragError):  # no checkpoint here yet, or no such class
        encoder = known_encoder(entry, cache_dir)
        if encoder is not None:
            name, folder = encoder.name, embeddings_folder(encoder, cache_dir)
            run = _found_before(benchmark, encoder, k, folder)
            if run is not None:
                return name, run
    run = any_order(benchmark, k)
    if isinstance(encoder, OwnEncoder) and len(run):
        first, found = str(run["query_id"].iloc[0]), str(run["doc_id"].iloc[0])
        encoder.check_one(benchmark.queries[first], benchmark.corpus[found])
    forecast.any_order.add(name)
    return name, run


def _found_before(
    benchmark: Benchmark, encoder: Encoder, k: int, folder: Path
) -> pd.DataFrame | None:
    """The run of a search that was made; a forecast looks at all documents once."""
    what = (Same(benchmark), encoder.fingerprint, encoder.shown, k)
    key = once(lambda: search_key(benchmark, encoder, k), "search", *what)
    return read_search(folder, key)


def _free_memory() -> None:
    """Give back what the last encoder held, where one was loaded."""
    gc.collect()
    if (torch := sys.modules.get("torch")) is not None:
        torch.cuda.empty_cache()


def write_runs(benchmark: Benchmark, runs: Mapping[str, pd.DataFrame], folder: Path | str) -> None:
    """Write qrels.txt and one <retriever>.run a retriever as TREC files, for `vrag
    metrics` or any other tool; a run that was read from such a file is not written over
    it. Raises `VragError` when one cannot be written.
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
    """Every metric of every query and retriever: columns retriever, query_id, group,
    metric, k, value, worst and best, the ends of the metric's scale, and most, the largest
    value that the query allows: of hit_count its relevant documents, where these are fewer
    than k.

    The retrievers come first, then "random order" (its exact expectation) and "perfect
    order". A query for which a retriever found nothing counts as `evaluate` says: 0
    where it has relevant documents. With `full_depth`, as a comparison over k needs it,
    cut-offs are cut to the fewest documents that a run holds for a query, and a printed
    line says so, as one does where a run is too shallow for `ndcg_visual_rag`; a run
    without any for some query raises `VragError`. `metrics` are of one's own, as
    `evaluate` takes them; what a random order is worth by these is not known, and has no
    rows; of one that is the kit's, which is there already, a line says so.
    """
    for metric in metrics:
        if isinstance(metric, str) and metric in METRICS:
            note(f"metric {metric!r} is the kit's, and there already; list only your own")
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
    tables[RANDOM] = random_reference(benchmark.qrels, sizes, cutoffs=cutoffs)
    best = perfect_run(benchmark.qrels, max(DEPTH, *cutoffs))
    tables[PERFECT] = evaluate(best, benchmark.qrels, cutoffs=cutoffs, metrics=metrics)
    named = [table.assign(retriever=name) for name, table in tables.items()]
    scores = pd.concat(named, ignore_index=True)
    scores["group"] = scores["query_id"].map(benchmark.groups)
    scores["worst"] = 0.0
    counts = scores["metric"] == "hit_count"
    scores["best"] = scores["k"].where(counts, 1).astype(float)
    relevant = {query_id: len(benchmark.relevant(query_id)) for query_id in benchmark.queries}
    clues = scores["query_id"].map(relevant).clip(lower=1)
    scores["most"] = scores["best"].where(~counts, np.minimum(scores["best"], clues))
    ends = ["worst", "best", "most"]
    return scores[["retriever", "query_id", "group", "metric", "k", "value", *ends]]


def _within(
    benchmark: Benchmark, name: str, run: pd.DataFrame, cutoffs: Sequence[int]
) -> list[int]:
    """The cut-offs, none larger than what a run holds for every query."""
    found = run["query_id"].value_counts().reindex(list(benchmark.queries), fill_value=0)
    query_id, depth = str(found.idxmin()), int(found.min())
    words = held(f"the run of {name}", depth, benchmark, query_id)
    if not depth:
        raise VragError(
            f"{words}, so there is no cut-off to compare all queries at. Leave the query out with"
            " `benchmark.subset(query_ids)`."
        )
    return cut_to(cutoffs, depth, words)


def _note_shallow(benchmark: Benchmark, name: str, run: pd.DataFrame) -> None:
    """Say of which queries there is no `ndcg_visual_rag`, and why."""
    shallow = too_shallow(run, benchmark.qrels)
    if not shallow:
        return
    of_all = len(shallow) == len(benchmark.queries)
    few = "" if of_all else f" for {len(shallow):,} of {len(benchmark.queries):,} queries"
    depths = sorted(set(shallow.values()))
    deep = f"{depths[0]}" if len(depths) == 1 else f"{depths[0]} to {depths[-1]}"
    note(f"no {BY_DEPTH} for {name}{few}: it is {deep} deep, and its ideal needs {DEPTH}")
