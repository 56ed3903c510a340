"""Retrievers on all data sets of a suite: each alone, fused, and pictures and texts side
by side or in one list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from vrag_kit.analysis.comparison import by_question, compare
from vrag_kit.generation import side_by_side
from vrag_kit.options import Entry
from vrag_kit.retrieval import (
    FUSED,
    PERFECT,
    RANDOM,
    fuse,
    make_run,
    score_each,
    score_runs,
    search_each,
)
from vrag_kit.retrieval.by_modality import Runs
from vrag_kit.types import MODALITIES, Benchmark

ALL = "all"
"""The data set that stands for all of them, pooled."""
ALONE = {"image": "pictures alone", "text": "texts alone"}
SIDE_BY_SIDE = "side by side"
ONE_LIST = "one list"


def search_suite(
    datasets: Mapping[str, Benchmark],
    retrievers: Mapping[str, Sequence[Entry]],
    *,
    k: int,
    cache_dir: Path | str,
    device: str = "cpu",
) -> dict[str, Runs]:
    """`search_each` of every data set, by its name; raises as that does."""
    return {
        name: search_each(benchmark, retrievers, k=k, cache_dir=cache_dir, device=device)
        for name, benchmark in datasets.items()
    }


def score_suite(
    datasets: Mapping[str, Benchmark], runs: Mapping[str, Runs], ks: Mapping[str, int]
) -> pd.DataFrame:
    """The tables of `score_each` below one another, each modality at its own k of `ks`,
    with the column dataset first; ids and groups of two data sets are never the same.
    """
    tables = []
    for name, found in runs.items():
        if not found:
            continue
        scores = score_each(datasets[name], found, cutoffs=sorted(set(ks.values())))
        wanted = scores["k"] == scores["modality"].map(ks)
        tables.append(_of_dataset(name, scores[wanted]))
    return pd.concat(tables, ignore_index=True)


def fused_less_each(scores: pd.DataFrame) -> pd.DataFrame:
    """What fusing gains over each retriever that was fused, on the same questions:
    dataset, modality, than (the retriever), metric, k, value, ci_low, ci_high, n,
    n_failed, p, p_holm.

    `scores` as `score_suite` gives them. First each data set and modality; then, where
    there are several data sets, all together (dataset "all"), every question counting
    once. p_holm corrects a metric for all data sets, modalities and retrievers; the
    pooled rows are a family of their own. Without a fused run there are no rows.
    """
    where = ["dataset", "modality"]
    there = scores.loc[scores["retriever"] == FUSED, where].drop_duplicates()
    both = scores[~scores["retriever"].isin([RANDOM, PERFECT])].merge(there, on=where)
    apart = _gains(both)
    pooled = apart.iloc[:0] if both["dataset"].nunique() < 2 else _gains(both.assign(dataset=ALL))
    return pd.concat([apart, pooled], ignore_index=True)


def in_one_list(
    datasets: Mapping[str, Benchmark], runs: Mapping[str, Runs], ks: Mapping[str, int]
) -> pd.DataFrame:
    """What the same number of documents, the sum of `ks`, holds of the gold evidence of
    both modalities: the table of `score_runs` at that k, with dataset and needs (what the
    question needs), for data sets with runs of both.

    retriever is "pictures alone", "texts alone" (all documents of one modality, by its
    last run, which is the fused one where there are several), "side by side" (`ks` of
    each, `side_by_side`), "one list" (all retrievers of both modalities fused, each
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
        arms[SIDE_BY_SIDE] = _beside(benchmark, last, ks)
        arms[ONE_LIST] = fuse(_retrievers_of(found))
        scores = score_runs(benchmark, arms, cutoffs=[k])
        needs = {each: query.metadata.get("needs") for each, query in benchmark.queries.items()}
        scores.insert(0, "needs", scores["query_id"].map(needs))
        tables.append(_of_dataset(name, scores))
    if not tables:
        return pd.DataFrame(columns=["dataset", "needs", "retriever", "metric", "k", "value"])
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
    columns = ["dataset", "modality", "than", "metric", "k"]
    tables = []
    for name in scores["retriever"].unique():
        if name == FUSED:
            continue
        where = scores.loc[scores["retriever"] == name, ["dataset", "modality"]]
        pair = scores[scores["retriever"].isin([name, FUSED])]
        pair = pair.merge(where.drop_duplicates(), on=list(where.columns)).assign(than=name)
        found = compare(pair, arm="retriever", by=columns, baseline=name)
        tables.append(found.drop(columns="retriever"))
    if not tables:
        return pd.DataFrame(columns=[*columns, "value"])
    table = pd.concat(tables, ignore_index=True)
    return table.assign(p_holm=by_question(table, ["metric"]))


def _retrievers_of(found: Runs) -> dict[str, pd.DataFrame]:
    """The runs of all retrievers and modalities, but for fused ones."""
    runs: dict[str, pd.DataFrame] = {}
    for modality, by_name in found.items():
        alone = {name: run for name, run in by_name.items() if name != FUSED}
        runs |= {f"{name}, {modality}": run for name, run in alone.items()}
    return runs


def _beside(
    benchmark: Benchmark, runs: Mapping[str, pd.DataFrame], ks: Mapping[str, int]
) -> pd.DataFrame:
    """`side_by_side` as a run, in the order in which documents are shown."""
    rows: list[tuple[str, str, float]] = []
    for context in side_by_side(benchmark, runs, ks=ks):
        for place, doc_id in enumerate(context.doc_ids):
            rows.append((context.query_id, doc_id, -float(place)))
    return make_run(rows)
