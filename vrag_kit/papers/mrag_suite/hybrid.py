"""Retrieval on all data sets of a suite: single retrievers, their fusion, and images and texts per
modality or in a single list.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from vrag_kit.analysis.comparisons import holm_by_family, paired_differences
from vrag_kit.analysis.means import to_percent
from vrag_kit.retrieval import ORACLE, RANDOM_BASELINE, make_run, reciprocal_rank_fusion, score_runs
from vrag_kit.retrieval.hybrid import FUSED, Runs, score_by_modality
from vrag_kit.types import MODALITIES, Benchmark

ALL = "all"
"""Name of all data sets pooled."""
_GAIN = ["dataset", "modality", "metric", "k"]


def score_suite(
    datasets: Mapping[str, Benchmark], runs: Mapping[str, Runs], ks: Mapping[str, int]
) -> pd.DataFrame:
    """Concatenates the tables of `score_by_modality`, each modality at its own k of `ks`, with the
    column dataset first; ids and groups are unique across data sets. `runs` maps a data set to the
    runs of `search_by_modality`; one without runs is left out.
    """
    tables = []
    for name, found in runs.items():
        if found:
            scores = score_by_modality(datasets[name], found, cutoffs=sorted(set(ks.values())))
            tables.append(_of_dataset(name, scores[scores["k"] == scores["modality"].map(ks)]))
    return pd.concat(tables, ignore_index=True)


def fusion_gains(scores: pd.DataFrame) -> pd.DataFrame:
    """Computes the gain of fusion over each fused retriever, on the same questions, in points:
    retriever ("fused"), dataset, modality, metric, k, value, ci_low, ci_high, n, n_failed, p,
    baseline (the retriever), p_holm, unit.

    `scores` comes from `score_suite`. First each data set and modality; then, if there are several
    data sets, all together (dataset "all"), every question counting once. p_holm corrects a metric
    for all data sets, modalities and retrievers; the pooled rows are a separate family. Without a
    fused run there are no rows.
    """
    found = scores[~scores["retriever"].isin([RANDOM_BASELINE, ORACLE])]
    names = [name for name in found["retriever"].unique() if name != FUSED]
    pools = [found] if FUSED in set(found["retriever"]) else []
    if pools and found["dataset"].nunique() > 1:
        pools.append(found.assign(dataset=ALL))
    tables = []
    for values in pools:
        gains = []
        for name in names:
            pair = values[values["retriever"].isin([name, FUSED])]
            gains.append(paired_differences(pair, arm="retriever", by=_GAIN, baseline=name))
        table = pd.concat(gains, ignore_index=True)
        tables.append(table.assign(p_holm=holm_by_family(table, ["metric"])))
    if not tables:
        return pd.DataFrame(columns=[*_GAIN, "baseline", "value"])
    return to_percent(pd.concat(tables, ignore_index=True))


def single_list_recall(
    datasets: Mapping[str, Benchmark], runs: Mapping[str, Runs], ks: Mapping[str, int]
) -> pd.DataFrame:
    """Scores the gold evidence of both modalities in the same number of documents, the sum of `ks`.
    The table is that of `score_runs` at that k, with dataset and required_modality (needed by the
    question), for data sets with runs of both; empty if there is none.

    retriever is "images alone", "texts alone" (all documents of one modality, by its
    last run, which is the fused one where there are several), "per modality" (`ks` of
    each), "single list" (all retrievers of both modalities fused, each
    document competing with every other), "random order" or "perfect order".
    """
    tables = []
    for name, found in runs.items():
        if set(found) != set(MODALITIES):
            continue
        benchmark = datasets[name]
        last = {modality: list(by_name.values())[-1] for modality, by_name in found.items()}
        single: dict[str, pd.DataFrame] = {}
        for modality, by_name in found.items():
            single |= {f"{each}, {modality}": by_name[each] for each in by_name if each != FUSED}
        arms = {f"{modality}s alone": run for modality, run in last.items()}
        shown = pd.concat([run[run["rank"] <= ks[modality]] for modality, run in last.items()])
        scored = shown.assign(score=-shown["rank"])[["query_id", "doc_id", "score"]]
        arms["per modality"] = make_run(scored)
        arms["single list"] = reciprocal_rank_fusion(single)
        scores = score_runs(benchmark, arms, cutoffs=[sum(ks.values())])
        queries = benchmark.queries.items()
        needs = {key: query.metadata.get("required_modality") for key, query in queries}
        scores = scores.assign(required_modality=scores["query_id"].map(needs))
        tables.append(_of_dataset(name, scores))
    if not tables:
        columns = ["dataset", "required_modality", "retriever", "metric", "k", "value"]
        return pd.DataFrame(columns=columns)
    return pd.concat(tables, ignore_index=True)


def _of_dataset(name: str, scores: pd.DataFrame) -> pd.DataFrame:
    """Scores that can stand below those of another data set."""
    ids = {column: f"{name}: " + scores[column].astype(str) for column in ("query_id", "group")}
    return scores.assign(dataset=name, **ids)
