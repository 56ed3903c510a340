"""Comparison of a replication with the paper: both sets of results in one table or, on the paper's
own data and with its judge, each cell's difference with its interval and a verdict.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from vrag_kit.analysis.means import ARM
from vrag_kit.analysis.report_tables import ci_cells, report_table, settings_table
from vrag_kit.analysis.strata import ALL
from vrag_kit.papers.audit import NOT_COMPARABLE
from vrag_kit.papers.published import published
from vrag_kit.papers.visual_rag.judge import PAPER_JUDGE
from vrag_kit.papers.visual_rag.published import PAPER_NAMES, RUN_TABLES, data_source, run_spreads
from vrag_kit.types import Benchmark

MARGIN = 3.0
"""Points within which two accuracies count as the same: about the size of the smallest
gain by a clue that the paper reports (2 to 6 points, section 5.3).
"""
PAPER_RETRIEVERS = {
    "ViT-L-14-336-quickgelu-openai": "CLIP",
    "BAAI-BGE-VL-large": "BGE",
    "TIGER-Lab-VLM2Vec-Qwen2VL-2B": "VLM2Vec",
}
"""Maps a retriever's name, as `params/visual_rag/paper.yaml` loads it, to the paper's name."""
_RUN_TABLES = {"accuracy": RUN_TABLES, "rouge": (14, 16)}
"""Maps a metric to the tables with its published runs."""
_AVERAGED = ("gt_clue", "one_in_k")
"""Settings of which the paper averages five runs (footnotes 4 and 6)."""
_RUNS = 5
_JUDGE = PAPER_JUDGE.partition("@")[0]


def compare_to_paper(
    results: pd.DataFrame,
    paper: pd.DataFrame,
    benchmark: Benchmark,
    judged: pd.DataFrame,
    *,
    margin: float = MARGIN,
) -> pd.DataFrame:
    """Builds a notebook's last table, which compares results with the paper: both in one table or,
    on the paper's own data (`data_source`) with its judge, the difference of the means of each cell
    that both have, for metrics whose runs it publishes (accuracy, ROUGE). Columns: model, setting,
    k, metric, value, paper, difference, ci_low, ci_high, n, verdict, edition of the data. All in
    percent and points.

    `results` are `to_percent(mean_scores(judged))`, or `column_means` of ROUGE or of marks; of
    several strata, "all questions" is compared. `paper` is `reported(…)` of one metric. The judge
    is that of `judged`, and matters except for ROUGE. The caller must use the paper's retriever,
    clue position and models.

    The verdict says whether two means over the *same* queries differ by more than runs do: the 95 %
    interval is that of runs, widened by what missing verdicts could change. Its half width comes
    from the paper's standard deviation between runs, pooled over all cells of the model, divided
    by the runs on either side.
    "equivalent": it lies within ±margin, which is stricter than two one-sided tests at 5 % (these
    use the 90 % interval). "different": it excludes 0, and is not within the margin. Else
    "inconclusive". Each cell stands alone, without a correction for multiple tests. A cell
    is "not comparable" if its queries (`n`, and as many more as answers failed) are not as many
    as the paper's (as in Table 6, but for its 266). A bias shared by the paper's judge and ours is
    not covered. The best top-k (setting "rag_best") is compared whatever its k.
    """
    from scipy.special import stdtrit  # quantiles of Student's t

    (metric,), edition = paper["metric"].unique(), data_source(benchmark)["data_version"]
    if metric != "idk_rate":  # our detectors of abstention have other names
        results = results[results["metric"] == metric]
    if "stratum" in results:
        results = results[results["stratum"] == ALL]
    by_paper = metric == "rouge" or set(judged["judge"]) == {_JUDGE}
    if not (edition and by_paper and metric in _RUN_TABLES):
        return settings_table(_labelled(results), _labelled(paper), same_data=bool(edition))
    extra = [name for name in ("corpus", "m") if name in results and name in paper]
    keys = ["paper_model", "setting", "place", *extra]
    theirs = paper.rename(columns={"model": "paper_model", "value": "paper", "n": "queries"})
    ours = results.assign(paper_model=results["model"].map(PAPER_NAMES))
    ours, theirs = (  # the best top-k is compared whatever its k
        each.assign(place=each["k"].mask(each["setting"] == "rag_best", -1))
        for each in (ours, theirs)
    )
    table = ours.merge(theirs[[*keys, "paper", "queries"]], on=keys)
    draws = table["setting"].map(judged.groupby("setting")["draw"].nunique()).fillna(1)
    failed = (table["n_failed"] / (table["queries"] * draws)).clip(upper=1)
    spreads = run_spreads(_RUN_TABLES[metric])
    pooled = (spreads["std"] ** 2).groupby(spreads["model"]).agg(["mean", "size"])
    pooled = pooled.reindex(table["paper_model"]).reset_index(drop=True)
    runs = table["setting"].isin(_AVERAGED).map({True: _RUNS, False: 1})
    error = np.sqrt(pooled["mean"] * (1 / runs + 1 / draws))
    noise = error * stdtrit((_RUNS - 1) * pooled["size"], 0.975)
    difference = table["value"] - table["paper"]
    low = difference - failed * table["value"] - noise
    high = difference + failed * (100 - table["value"]) + noise
    within, apart = (low >= -margin) & (high <= margin), (low > 0) | (high < 0)
    verdicts = np.select([within, apart], ["equivalent", "different"], "inconclusive")
    comparable = table["queries"].between(table["n"], table["n"] + table["n_failed"])
    table = table.assign(difference=difference, ci_low=low, ci_high=high)
    numbers = ["metric", "value", "paper", "difference", "ci_low", "ci_high", "n"]
    table = table[[*ARM, *extra, *numbers]].round(2)
    verdict = np.where(comparable, verdicts, NOT_COMPARABLE)
    return table.assign(verdict=verdict, edition=edition)


def _labelled(table: pd.DataFrame) -> pd.DataFrame:
    """With one of several corpora and metrics in the model's name; the paper's corpora have the
    names that it prints (`dataset`).
    """
    for column in ("dataset" if "dataset" in table else "corpus", "metric"):
        if column in table and table[column].nunique() > 1:
            table = table.assign(model=table["model"] + ", " + table[column])
    return table


def retrieval_table_with_published(results: pd.DataFrame, paper: pd.DataFrame) -> pd.DataFrame:
    """Formats our results in the layout of the paper's Table 2, with the paper's rows below, which
    are labelled as other data.

    Rows are (retriever, metric), columns the cutoffs; our cells read "mean [low, high]". Both in
    percent.
    """
    theirs = paper.assign(retriever=paper["retriever"] + " (reported, other data)")
    both = pd.concat([results, theirs])
    cells = ci_cells(both).str.removesuffix(" (no interval)")
    table = report_table(both, rows=["retriever", "metric"], columns=["k"], cells=cells)
    return table.rename(columns="@{}".format)


def compare_retrieval_to_paper(
    results: pd.DataFrame, benchmark: Benchmark, *, margin: float = MARGIN
) -> pd.DataFrame:
    """Builds the last table of `02_retriever_comparison`: both sets of results or, on the paper's
    own data, the difference from Table 2 of each cell that both have. Columns: retriever, metric,
    k, value, paper, difference, verdict, edition.

    In percent and points, hit_count in images. The same retriever returns the same images, so any
    difference beyond rounding is due to the retriever, its images, or its precision: the verdict is
    "equivalent" within the margin, else "different". The margin in points is for hit_count one of
    precision, hits per k images. The paper's nDCG is our `ndcg_visual_rag`.
    """
    paper, edition = published("visual_rag", table=2), data_source(benchmark)["data_version"]
    if not edition:
        return retrieval_table_with_published(results, paper)
    theirs = paper.rename(columns={"value": "paper", "retriever": "paper_retriever"})
    ours = results.assign(paper_retriever=results["retriever"].map(PAPER_RETRIEVERS))
    columns = ["retriever", "metric", "k", "value", "paper"]
    table = ours.merge(theirs, on=["paper_retriever", "metric", "k"])[columns]
    difference = (table["value"] - table["paper"]).round(2)
    allowed = (margin * table["k"] / 100).where(table["metric"] == "hit_count", margin)
    verdict = np.where(difference.abs() <= allowed, "equivalent", "different")
    return table.round(2).assign(difference=difference, verdict=verdict, edition=edition)
