"""Comparison of a replication with the paper: both sets of results in one table or, on the paper's
own data and with its judge, each cell's difference with its interval and a verdict.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from vrag_kit.analysis.means import ARM
from vrag_kit.analysis.report_tables import report_table, settings_table
from vrag_kit.papers.audit import CELL
from vrag_kit.papers.published import published
from vrag_kit.papers.visual_rag.abstention import RUN_TABLES, run_spreads
from vrag_kit.papers.visual_rag.gcue import format_gcue
from vrag_kit.papers.visual_rag.published import (
    PAPER_NAMES,
    PAPER_QUERIES,
    is_paper_data,
    published_gcue,
    release_of,
    retrieval_table_with_published,
)
from vrag_kit.types import Benchmark

PAPERS_JUDGE = "o4-mini"
MARGIN = 3.0
"""Points within which two accuracies count as the same: about the size of the smallest
gain by a clue that the paper reports (2 to 6 points, section 5.3).
"""
EQUIVALENT = "equivalent"
DIFFERENT = "different"
INCONCLUSIVE = "inconclusive"
NOT_COMPARABLE = "not comparable"
PAPER_RETRIEVERS = {
    "ViT-L-14-336-quickgelu-openai": "CLIP",
    "BAAI-BGE-VL-large": "BGE",
    "TIGER-Lab-VLM2Vec-Qwen2VL-2B": "VLM2Vec",
}
"""Maps a retriever's name, as `params/visual_rag/paper.yaml` loads it, to the paper's name."""
_METRICS = {"idk_rate": ("abstention", "judge_flag", "phrase_match")}
"""Maps a published metric to our metrics, where the names differ."""
_ANSWER_COLUMNS = {"accuracy": "score", "abstention": "abstained"}
"""Maps a metric to its column of judged answers, where the names differ."""
_RUN_TABLES = {"accuracy": RUN_TABLES, "rouge": (14, 16)}
"""Maps a metric to the tables with its published runs."""
_RUNS = 5  # behind a mean of the paper where it averages (footnotes 4 and 6)
_PLACES = ("corpus", "m")
"""Columns that identify cells beyond model, setting and k, where both tables have them."""
_HALF_UNIT = 0.005  # of the last printed digit
_LAMBDA = 0.5  # of the paper's gCUE
_DIFFERENCE = ["difference", "ci_low", "ci_high"]
_spreads = cache(run_spreads)
Row = dict[Hashable, Any]
"""A row of a table: column → cell of any type."""


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
    on the paper's own data (`is_paper_data`) with its judge, the difference of the means of each
    cell that both have. Columns: model, setting, k, metric, value, paper, difference, ci_low,
    ci_high, n, verdict (`with_equivalence_verdict`), edition of the data. All in percent and
    points.

    `results` are `to_percent(mean_scores(judged))`, or `column_means` of ROUGE or of marks, `paper`
    is `published(…)`; `judge` is the judge's name, which matters except for ROUGE. The caller must
    use the paper's retriever, clue position and models.

    The verdict says whether two means over the *same* queries differ by more than runs do: the 95 %
    interval is that of runs (`_run_noise`), widened by what missing verdicts could change. A cell
    is "not comparable" if its number of queries (`n`) differs from the paper's (as in Table 6, but
    for its 266). A bias shared by the paper's judge and ours is not covered. The best top-k is
    compared whatever its k.
    """
    names = [_METRICS.get(name, (name,)) for name in paper["metric"].unique()]
    results = results[results["metric"].isin(set().union(*names))]
    same = is_paper_data(benchmark)
    if not same or (judge != PAPERS_JUDGE and set(results["metric"]) != {"rouge"}):
        return settings_table(_labelled(results), _labelled(paper), same_data=same)
    places = [name for name in _PLACES if name in results and name in paper]
    keys = ["paper_model", "setting", "place", *places]
    theirs = paper.rename(columns={"model": "paper_model", "value": "paper", "n": "queries"})
    ours = results.assign(paper_model=results["model"].map(PAPER_NAMES))
    table = _placed(ours).merge(_placed(theirs)[[*keys, "paper", "queries"]], on=keys)
    rows = [_uncertainty(row, judged) for row in table.to_dict("records")]
    table[["n", "half", "low", "high"]] = pd.DataFrame(rows, columns=["n", "half", "low", "high"])
    table = _with_difference(table, table["half"], margin, low=table["low"], high=table["high"])
    verdict = table["verdict"].where(table["n"] == table["queries"], NOT_COMPARABLE)
    cell = ["model", "setting", "k", *places, "metric"]
    table = table[[*cell, "value", "paper", *_DIFFERENCE, "n"]].round(2)
    return table.assign(verdict=verdict, edition=release_of(benchmark))


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


def _uncertainty(row: Row, judged: pd.DataFrame) -> tuple[int, float, float, float]:
    """(n queries, half the width of the interval of our mean minus the paper's, lowest and highest
    change of our mean if no value were missing) of a row of results.
    """
    metric, answers = str(row["metric"]), _answers_of_cell(judged, row)
    n = answers["query_id"].nunique()
    mean = (row["value"] + row["paper"]) / 2
    half = _run_noise(row["paper_model"], answers, metric, mean / 100)
    values = answers.set_index("query_id")[_ANSWER_COLUMNS.get(metric, metric)]
    low, high = (100 * values.fillna(end).groupby(level=0).mean().mean() for end in (0.0, 1.0))
    return n, half, low - row["value"], high - row["value"]


def _answers_of_cell(judged: pd.DataFrame, row: Row) -> pd.DataFrame:
    """The judged answers behind a row of results; the best top-k is a top-k."""
    same = judged["setting"] == str(row["setting"]).replace("rag_best", "top_k")
    for name in ("model", "k", *_PLACES):
        if name in row and name in judged:
            same &= judged[name] == row[name]
    return judged[same]


def _run_noise(
    paper_model: str, answers: pd.DataFrame, metric: str, share: float = math.nan
) -> float:
    """Half the width of the 95 % interval over runs of our mean of a cell minus the paper's, in
    points.

    Accuracy and ROUGE: the paper's standard deviation between runs, pooled over all cells of the
    model, divided by the runs on either side. Metrics without published runs, such as abstention,
    are shares: their variance is p(1 − p)/n at most, with p the mean `share` of both, so verdicts
    err toward "inconclusive".
    """
    from scipy.special import stdtrit  # quantiles of Student's t

    cell = [paper_model, *answers[["setting", "k"]].iloc[0]]
    averaged = (_spreads(RUN_TABLES)[CELL] == cell).all(axis=1).any()
    runs = 1 / (_RUNS if averaged else 1) + 1 / answers["draw"].nunique()
    if metric in _RUN_TABLES:
        spreads = _spreads(_RUN_TABLES[metric])
        std = spreads.loc[spreads["model"] == paper_model, "std"]
        return float(stdtrit((_RUNS - 1) * len(std), 0.975) * np.sqrt((std**2).mean() * runs))
    n = answers["query_id"].nunique()
    likely = (share * n + 2) / (n + 4)  # Agresti and Coull's: no certainty at 0 and 1
    return float(100 * stdtrit(np.inf, 0.975) * np.sqrt(likely * (1 - likely) / n * runs))


def _with_difference(
    table: pd.DataFrame,
    half: float | pd.Series,
    margin: float | pd.Series,
    *,
    low: float | pd.Series = 0.0,
    high: float | pd.Series = 0.0,
) -> pd.DataFrame:
    """With the difference of value from the column paper, its interval and the verdict."""
    difference = table["value"] - table["paper"]
    ends = {"ci_low": difference + low - half, "ci_high": difference + high + half}
    return with_equivalence_verdict(table.assign(difference=difference, **ends), margin)


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
    words = np.select([within, (low > 0) | (high < 0)], [EQUIVALENT, DIFFERENT], INCONCLUSIVE)
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
    same = is_paper_data(benchmark)
    paper = published_gcue(published("visual_rag", table=3), lambdas=[_LAMBDA])
    ours = curves[curves["lambda"] == _LAMBDA]
    if not same or judge != PAPERS_JUDGE:
        mark = "(reported)" if same else "(reported, other data)"
        cells = paper["value"].map("{:.2f}".format)
        theirs = paper.assign(model=paper["model"] + f" {mark}", cell=cells)
        both = pd.concat([ours.assign(cell=format_gcue(ours)), theirs])
        wide = report_table(both, rows=["k"], columns=["model"], cells=both["cell"], empty="")
        return wide.sort_index()
    theirs = paper.rename(columns={"model": "paper_model", "value": "paper"})
    theirs = theirs[["paper_model", "k", "paper", "denominator"]]
    ours = ours.drop(columns="denominator").assign(paper_model=ours["model"].map(PAPER_NAMES))
    table = ours.merge(theirs, on=["paper_model", "k"])
    table["margin"] = margin / (100 * table["denominator"])
    half = [_gcue_noise(row, judged) for row in table.to_dict("records")]
    table = _with_difference(table, pd.Series(half, dtype=float), table["margin"])
    verdict = table["verdict"].where(table["n"] == PAPER_QUERIES, NOT_COMPARABLE)
    table = table[["model", "k", "value", "paper", *_DIFFERENCE, "margin", "n"]].round(2)
    return table.assign(verdict=verdict, edition=release_of(benchmark))


def _gcue_noise(row: Row, judged: pd.DataFrame) -> float:
    """Half the width of the interval of a row's difference."""
    noise = {}
    for setting, k in {"one_in_k": row["k"], "gt_clue": 1, "zero_shot": 0, "non_clue": 1}.items():
        answers = _answers_of_cell(judged, {"model": row["model"], "setting": setting, "k": k})
        noise[setting] = _run_noise(row["paper_model"], answers, "accuracy")
    g = row["paper"]
    baseline = np.hypot(noise["zero_shot"], noise["non_clue"]) / 2
    fixed = np.hypot(g * noise["gt_clue"], (1 - g) * baseline)
    return float(np.hypot(noise["one_in_k"], fixed) / (100 * row["denominator"]))


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
    paper = published("visual_rag", table=2)
    if not is_paper_data(benchmark):
        return retrieval_table_with_published(results, paper)
    theirs = paper.rename(columns={"value": "paper", "retriever": "paper_retriever"})
    ours = results.assign(paper_retriever=results["retriever"].map(PAPER_RETRIEVERS))
    columns = ["retriever", "metric", "k", "value", "paper"]
    table = ours.merge(theirs, on=["paper_retriever", "metric", "k"])[columns]
    in_images = margin * table["k"] / 100
    allowed = in_images.where(table["metric"] == "hit_count", margin)
    table = _with_difference(table, _HALF_UNIT, allowed)
    queries = (table["difference"] * PAPER_QUERIES / 100).round()
    table = table.assign(queries=queries.where(table["metric"] == "hit"))
    return table.round(2).assign(edition=release_of(benchmark))
