"""Comparison of a replication with the paper: both sets of results in one table or, on the paper's
own data and with its judge, each cell's difference with its interval and a verdict.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from vrag_kit.analysis.means import ARM, METRICS
from vrag_kit.analysis.report_tables import report_table, settings_table
from vrag_kit.papers.audit import NOT_COMPARABLE
from vrag_kit.papers.published import published
from vrag_kit.papers.visual_rag.abstention import RUN_TABLES, run_spreads
from vrag_kit.papers.visual_rag.gcue import format_gcue, published_gcue
from vrag_kit.papers.visual_rag.judge import PAPER_JUDGE
from vrag_kit.papers.visual_rag.published import (
    PAPER_NAMES,
    PAPER_QUERIES,
    data_source,
    retrieval_table_with_published,
)
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
_DETECTORS = ("abstention", "judge_flag", "phrase_match")
"""Our metrics that are compared with the paper's idk_rate."""
_RUN_TABLES = {"accuracy": RUN_TABLES, "rouge": (14, 16)}
"""Maps a metric to the tables with its published runs."""
_AVERAGED = ("gt_clue", "one_in_k")
"""Settings of which the paper averages five runs (footnotes 4 and 6)."""
_RUNS = 5
_HALF_UNIT = 0.005  # of the last printed digit
_JUDGE = PAPER_JUDGE.partition("@")[0]
_DIFFERENCE = ["difference", "ci_low", "ci_high"]


def std_over_draws(judged: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation over draws, as in the paper's Tables 13 and 15: `ARM`, runs,
    value, std.

    value is the mean of the draws' means, on the judge's scale: that of `mean_scores`, which counts
    every question once, unless answers failed; std has ddof = 1 (as the paper's, see
    `16_paper_audit`) and is NaN for a single draw. It shows how much the choice of images, and
    sampled decoding, change a mean over the same queries; the interval of `mean_scores` shows how
    much other queries would.
    """
    draws = judged.groupby([*ARM, "draw"], sort=False, dropna=False)["score"].mean()
    arms = draws.groupby(list(ARM), sort=False, dropna=False)
    table = arms.agg(["count", "mean", "std"]).reset_index()
    return table.rename(columns={"count": "runs", "mean": "value"}).assign(metric="accuracy")


def best_top_k(results: pd.DataFrame) -> pd.DataFrame:
    """Replaces the top-k rows of `mean_scores` by each model's best one, as the setting "rag_best"
    (Visual-RAG, Table 6); of each stratum where there are some.

    The k is chosen on the same queries that it is then reported on, as in the paper, so its mean is
    slightly optimistic.
    """
    retrieved = results[results["setting"] == "top_k"].dropna(subset="value")
    by = [name for name in ("model", "stratum") if name in retrieved]
    highest = retrieved.groupby(by, sort=False)["value"].idxmax()
    best = retrieved.loc[highest].assign(setting="rag_best")
    return pd.concat([results[results["setting"] != "top_k"], best], ignore_index=True)


def compare_to_paper(
    results: pd.DataFrame,
    paper: pd.DataFrame,
    benchmark: Benchmark,
    judged: pd.DataFrame,
    *,
    judge: str,
    margin: float = MARGIN,
) -> pd.DataFrame:
    """Builds a notebook's last table, which compares results with the paper: both in one table or,
    on the paper's own data (`data_source`) with its judge, the difference of the means of each cell
    that both have. Columns: model, setting, k, metric, value, paper, difference, ci_low, ci_high,
    n, verdict (`with_equivalence_verdict`), edition of the data. All in percent and points.

    `results` are `to_percent(mean_scores(judged))`, or `column_means` of ROUGE or of marks, `paper`
    is `published(…)` of one metric; `judge` is the judge's name, which matters except for ROUGE.
    The caller must use the paper's retriever, clue position and models.

    The verdict says whether two means over the *same* queries differ by more than runs do: the 95 %
    interval is that of runs (`_run_noise`), widened by what missing verdicts could change. A cell
    is "not comparable" if its number of queries (`n`) differs from the paper's (as in Table 6, but
    for its 266). A bias shared by the paper's judge and ours is not covered. The best top-k is
    compared whatever its k.
    """
    (metric,) = paper["metric"].unique()
    named = _DETECTORS if metric == "idk_rate" else (metric,)
    results, edition = results[results["metric"].isin(named)], data_source(benchmark).edition
    if not edition or (judge != _JUDGE and metric != "rouge"):
        return settings_table(_labelled(results), _labelled(paper), same_data=bool(edition))
    cell = [*ARM, *(name for name in ("corpus", "m") if name in results and name in paper)]
    theirs = paper.rename(columns={"model": "paper_model", "value": "paper", "n": "queries"})
    theirs = _placed(theirs).drop(columns=["k", "metric"])
    asked = results["setting"].replace("rag_best", "top_k")  # the best top-k is a top-k
    ours = results[[*cell, "metric", "value"]].assign(asked=asked)
    cells = _cells(judged, named, cell).rename(columns={"setting": "asked"})
    table = _placed(ours).merge(cells, on=["asked", "metric", *({*cell} - {"setting"})])
    keys = ["paper_model", "setting", "place", *cell[len(ARM) :]]
    table = table.merge(theirs[[*keys, "paper", "queries"]], on=keys)
    table = _with_difference(table, _run_noise(table, (table["value"] + table["paper"]) / 200))
    table["ci_low"] += table["low"] - table["value"]
    table["ci_high"] += table["high"] - table["value"]
    table = with_equivalence_verdict(table, margin)
    verdict = table["verdict"].where(table["n"] == table["queries"], NOT_COMPARABLE)
    table = table[[*cell, "metric", "value", "paper", *_DIFFERENCE, "n"]].round(2)
    return table.assign(verdict=verdict, edition=edition)


def _labelled(table: pd.DataFrame) -> pd.DataFrame:
    """With one of several corpora and metrics in the model's name; the paper's corpora have the
    names that it prints (`dataset`).
    """
    for column in ("dataset" if "dataset" in table else "corpus", "metric"):
        if column in table and table[column].nunique() > 1:
            table = table.assign(model=table["model"] + ", " + table[column])
    return table


def _placed(table: pd.DataFrame) -> pd.DataFrame:
    """With the column place: k, or −1 for the best top-k, whatever its k."""
    return table.assign(place=table["k"].mask(table["setting"] == "rag_best", -1))


def _cells(judged: pd.DataFrame, metrics: Sequence[str], by: Sequence[str]) -> pd.DataFrame:
    """Of each cell `by` and metric: paper_model, the numbers of queries (n) and draws, and low and
    high, the mean in percent if all missing values were 0 or 1.
    """
    named = judged.rename(columns={METRICS.get(name, name): name for name in metrics})
    measured = [name for name in metrics if name in named]
    long = named.melt([*by, "query_id", "draw"], measured, var_name="metric")
    long = long.assign(low=100 * long["value"].fillna(0), high=100 * long["value"].fillna(1))
    cell = [*by, "metric"]
    queries = long.groupby([*cell, "query_id"], dropna=False)[["low", "high"]].mean()
    counts = long.groupby(cell, dropna=False)[["query_id", "draw"]].nunique()
    counts = counts.rename(columns={"query_id": "n", "draw": "draws"})
    table = counts.join(queries.groupby(cell, dropna=False).mean()).reset_index()
    return table.assign(paper_model=table["model"].map(PAPER_NAMES))


def _run_noise(cells: pd.DataFrame, share: pd.Series | float = 0.0) -> pd.Series:
    """Half the width of the 95 % interval over runs of our mean of each of `_cells` minus the
    paper's, in points.

    Accuracy and ROUGE: the paper's standard deviation between runs, pooled over all cells of the
    model, divided by the runs on either side. Metrics without published runs, such as abstention,
    are shares: their variance is p(1 − p)/n at most, with p the mean `share` of both, so verdicts
    err toward "inconclusive".
    """
    from scipy.special import stdtrit  # quantiles of Student's t

    metric = cells["metric"].iloc[0] if len(cells) else ""
    runs = 1 / cells["setting"].isin(_AVERAGED).map({True: _RUNS, False: 1}) + 1 / cells["draws"]
    if metric in _RUN_TABLES:
        spreads = run_spreads(_RUN_TABLES[metric])
        by_model = (spreads["std"] ** 2).groupby(spreads["model"])
        count = cells["paper_model"].map(by_model.size())
        variance = cells["paper_model"].map(by_model.mean())
        return pd.Series(stdtrit((_RUNS - 1) * count, 0.975) * np.sqrt(variance * runs))
    likely = (share * cells["n"] + 2) / (cells["n"] + 4)  # Agresti and Coull's: no certainty at 0
    variance = likely * (1 - likely) / cells["n"]
    return pd.Series(100 * stdtrit(np.inf, 0.975) * np.sqrt(variance * runs))


def _with_difference(table: pd.DataFrame, half: pd.Series | float) -> pd.DataFrame:
    """With the difference of value from the column paper, and its interval."""
    difference = table["value"] - table["paper"]
    return table.assign(difference=difference, ci_low=difference - half, ci_high=difference + half)


def with_equivalence_verdict(table: pd.DataFrame, margin: float | pd.Series) -> pd.DataFrame:
    """Adds the column verdict, from the 95 % interval of a difference (ci_low and ci_high) and
    `margin`, in the same unit.

    "equivalent": the interval lies within ±margin, which is stricter than two one-sided tests at 5
    % (these use the 90 % interval). It also applies if the interval excludes 0: the difference is
    significant but too small to matter. "different": the interval excludes 0, and is not within the
    margin. "inconclusive": neither, as where there is no interval. A cell's verdict depends on that
    cell alone, without a correction for multiple tests, and is the same in every table with the
    cell.
    """
    low, high = table["ci_low"], table["ci_high"]
    within = (low >= -margin) & (high <= margin)
    words = np.select([within, (low > 0) | (high < 0)], ["equivalent", "different"], "inconclusive")
    return table.assign(verdict=words)


def compare_gcue_to_paper(
    curves: pd.DataFrame,
    benchmark: Benchmark,
    judged: pd.DataFrame,
    *,
    judge: str,
    margin: float = MARGIN,
) -> pd.DataFrame:
    """Builds the last table of `05_gcue_curves`, which compares gCUE at λ = 0.5 with the paper's
    (of Table 3): rows k, columns models or, on the paper's own data with its judge, one row per
    model and k. Columns: model, k, value, paper, difference, ci_low, ci_high, margin, n, verdict,
    edition.

    To first order the difference is (e_k − g e_GT − (1 − g) e_B) / (A_GT − B), with g and A_GT − B
    the paper's and e what our means differ by from its means; each e has the noise of its cell
    (`_run_noise`), which A_GT − B exceeds for every model of Table 3. The margin in points of A_k
    is here divided by the paper's A_GT − B. A row is "not comparable" where not all of the paper's
    queries have a verdict in all arms (`n`).
    """
    edition = data_source(benchmark).edition
    paper = published_gcue(published("visual_rag", table=3), lambdas=[0.5])
    ours = curves[curves["lambda"] == 0.5]
    if not edition or judge != _JUDGE:
        mark = "(reported)" if edition else "(reported, other data)"
        text = paper["value"].map("{:.2f}".format)
        theirs = paper.assign(model=paper["model"] + f" {mark}", cell=text)
        both = pd.concat([ours.assign(cell=format_gcue(ours)), theirs])
        wide = report_table(both, rows=["k"], columns=["model"], cells=both["cell"], empty="")
        return wide.sort_index()
    theirs = paper.rename(columns={"model": "paper_model", "value": "paper"})
    theirs = theirs[["paper_model", "k", "paper", "denominator"]]
    ours = ours.drop(columns="denominator").assign(paper_model=ours["model"].map(PAPER_NAMES))
    table = ours.merge(theirs, on=["paper_model", "k"])
    cells = _cells(judged, ["accuracy"], ARM)
    cells["noise"] = _run_noise(cells)
    of_k = cells[cells["setting"] == "one_in_k"].set_index(["model", "k"])["noise"]
    noise = cells[cells["k"] < 2].pivot_table("noise", "model", "setting").loc[table["model"]]
    noise, g = noise.set_index(table.index), table["paper"]
    baseline = np.hypot(noise["zero_shot"], noise["non_clue"]) / 2
    fixed = np.hypot(g * noise["gt_clue"], (1 - g) * baseline)
    half = np.hypot(table.join(of_k, on=["model", "k"])["noise"], fixed)
    table["margin"] = margin / (100 * table["denominator"])
    table = _with_difference(table, half / (100 * table["denominator"]))
    table = with_equivalence_verdict(table, table["margin"])
    verdict = table["verdict"].where(table["n"] == PAPER_QUERIES, NOT_COMPARABLE)
    table = table[["model", "k", "value", "paper", *_DIFFERENCE, "margin", "n"]].round(2)
    return table.assign(verdict=verdict, edition=edition)


def compare_retrieval_to_paper(
    results: pd.DataFrame, benchmark: Benchmark, *, margin: float = MARGIN
) -> pd.DataFrame:
    """Builds the last table of `02_retriever_comparison`: both sets of results or, on the paper's
    own data, the difference from Table 2 of each cell that both have. Columns: retriever, metric,
    k, value, paper, difference, ci_low, ci_high, queries, verdict, edition.

    In percent and points, hit_count in images. The same retriever returns the same images, so the
    interval only covers the rounding of the published numbers; any other difference is due to the
    retriever, its images, or its precision. `queries` is the number of queries by which the numbers
    of hits differ; it is NaN for the other metrics, which do not determine it. The margin in points
    is for hit_count one of precision, hits per k images. The paper's nDCG is our `ndcg_visual_rag`.
    """
    paper, edition = published("visual_rag", table=2), data_source(benchmark).edition
    if not edition:
        return retrieval_table_with_published(results, paper)
    theirs = paper.rename(columns={"value": "paper", "retriever": "paper_retriever"})
    ours = results.assign(paper_retriever=results["retriever"].map(PAPER_RETRIEVERS))
    columns = ["retriever", "metric", "k", "value", "paper"]
    table = ours.merge(theirs, on=["paper_retriever", "metric", "k"])[columns]
    in_images = margin * table["k"] / 100
    allowed = in_images.where(table["metric"] == "hit_count", margin)
    table = with_equivalence_verdict(_with_difference(table, _HALF_UNIT), allowed)
    queries = (table["difference"] * PAPER_QUERIES / 100).round()
    table = table.assign(queries=queries.where(table["metric"] == "hit"))
    return table.round(2).assign(edition=edition)
