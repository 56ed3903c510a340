"""Retrieval on all data sets of a suite: single retrievers, their fusion, and images and texts per
modality or in a single list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from vrag_kit.analysis.comparisons import holm_by_family, paired_differences
from vrag_kit.config import Entry
from vrag_kit.generation import top_k_per_modality
from vrag_kit.retrieval import ORACLE, RANDOM_BASELINE, make_run, reciprocal_rank_fusion, score_runs
from vrag_kit.retrieval.hybrid import FUSED, Runs, score_by_modality, search_by_modality
from vrag_kit.types import MODALITIES, Benchmark

ALL = "all"
"""Name of all data sets pooled."""
ALONE = {"image": "images alone", "text": "texts alone"}
SIDE_BY_SIDE = "per modality"
ONE_LIST = "single list"


def search_suite(
    datasets: Mapping[str, Benchmark],
    retrievers: Mapping[str, Sequence[Entry]],
    *,
    k: int,
    cache_dir: Path | str,
    device: str = "cpu",
) -> dict[str, Runs]:
    """Runs `search_by_modality` on every data set, by its name; raises as that does."""
    return {
        name: search_by_modality(benchmark, retrievers, k=k, cache_dir=cache_dir, device=device)
        for name, benchmark in datasets.items()
    }


def score_suite(
    datasets: Mapping[str, Benchmark], runs: Mapping[str, Runs], ks: Mapping[str, int]
) -> pd.DataFrame:
    """Concatenates the tables of `score_by_modality`, each modality at its own k of `ks`, with the
    column dataset first; ids and groups are unique across data sets.
    """
    tables = []
    for name, found in runs.items():
        if not found:
            continue
        scores = score_by_modality(datasets[name], found, cutoffs=sorted(set(ks.values())))
        wanted = scores["k"] == scores["modality"].map(ks)
        tables.append(_of_dataset(name, scores[wanted]))
    return pd.concat(tables, ignore_index=True)


def fusion_gains(scores: pd.DataFrame) -> pd.DataFrame:
    """Computes the gain of fusion over each fused retriever, on the same questions: dataset,
    modality, baseline (the retriever), metric, k, value, ci_low, ci_high, n, n_failed, p, p_holm.

    `scores` comes from `score_suite`. First each data set and modality; then, if there are several
    data sets, all together (dataset "all"), every question counting once. p_holm corrects a metric
    for all data sets, modalities and retrievers; the pooled rows are a separate family. Without a
    fused run there are no rows.
    """
    where = ["dataset", "modality"]
    there = scores.loc[scores["retriever"] == FUSED, where].drop_duplicates()
    both = scores[~scores["retriever"].isin([RANDOM_BASELINE, ORACLE])].merge(there, on=where)
    apart = _gains(both)
    pooled = apart.iloc[:0] if both["dataset"].nunique() < 2 else _gains(both.assign(dataset=ALL))
    return pd.concat([apart, pooled], ignore_index=True)


def single_list_recall(
    datasets: Mapping[str, Benchmark], runs: Mapping[str, Runs], ks: Mapping[str, int]
) -> pd.DataFrame:
    """Scores the gold evidence of both modalities in the same number of documents, the sum of `ks`.
    The table is that of `score_runs` at that k, with dataset and required_modality (needed by the
    question), for data sets with runs of both.

    retriever is "images alone", "texts alone" (all documents of one modality, by its
    last run, which is the fused one where there are several), "per modality" (`ks` of
    each, `top_k_per_modality`), "single list" (all retrievers of both modalities fused, each
    document competing with every other), "random order" or "perfect order".
    """
    k = sum(ks.values())
    tables = []
    for name, found in runs.items():
        if set(found) != set(MODALITIES):
            continue
        benchmark = datasets[name]
        last = {modality: list(by_name.values())[-1] for modality, by_name in found.items()}
        arms = {ALONE[modality]: run for modality, run in last.items()}
        arms[SIDE_BY_SIDE] = _interleaved_run(benchmark, last, ks)
        arms[ONE_LIST] = reciprocal_rank_fusion(_retrievers_of(found))
        scores = score_runs(benchmark, arms, cutoffs=[k])
        needs = {
            each: query.metadata.get("required_modality")
            for each, query in benchmark.queries.items()
        }
        scores.insert(0, "required_modality", scores["query_id"].map(needs))
        tables.append(_of_dataset(name, scores))
    if not tables:
        return pd.DataFrame(
            columns=["dataset", "required_modality", "retriever", "metric", "k", "value"]
        )
    return pd.concat(tables, ignore_index=True)


def _of_dataset(name: str, scores: pd.DataFrame) -> pd.DataFrame:
    """Scores that can stand below those of another data set."""
    named = scores.assign(
        dataset=name,
        query_id=f"{name}: " + scores["query_id"].astype(str),
        group=f"{name}: " + scores["group"].astype(str),
    )
    return named[["dataset", *scores.columns]]


def _gains(scores: pd.DataFrame) -> pd.DataFrame:
    """The fused run against each other retriever, corrected for all of them."""
    columns = ["dataset", "modality", "metric", "k"]
    tables = []
    for name in scores["retriever"].unique():
        if name == FUSED:
            continue
        where = scores.loc[scores["retriever"] == name, ["dataset", "modality"]]
        pair = scores[scores["retriever"].isin([name, FUSED])]
        pair = pair.merge(where.drop_duplicates(), on=list(where.columns))
        found = paired_differences(pair, arm="retriever", by=columns, baseline=name)
        found.insert(2, "baseline", found.pop("baseline"))
        tables.append(found.drop(columns="retriever"))
    if not tables:
        return pd.DataFrame(columns=[*columns, "baseline", "value"])
    table = pd.concat(tables, ignore_index=True)
    return table.assign(p_holm=holm_by_family(table, ["metric"]))


def _retrievers_of(found: Runs) -> dict[str, pd.DataFrame]:
    """The runs of all retrievers and modalities, but for fused ones."""
    runs: dict[str, pd.DataFrame] = {}
    for modality, by_name in found.items():
        alone = {name: run for name, run in by_name.items() if name != FUSED}
        runs |= {f"{name}, {modality}": run for name, run in alone.items()}
    return runs


def _interleaved_run(
    benchmark: Benchmark, runs: Mapping[str, pd.DataFrame], ks: Mapping[str, int]
) -> pd.DataFrame:
    """`top_k_per_modality` as a run, in the order in which documents are shown."""
    rows: list[tuple[str, str, float]] = []
    for context in top_k_per_modality(benchmark, runs, ks=ks):
        for place, doc_id in enumerate(context.doc_ids):
            rows.append((context.query_id, doc_id, -float(place)))
    return make_run(rows)
