"""Comparison of a replication with the paper, on the paper's own data only: each cell's difference
with its interval, and a verdict.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd

from vrag_kit.analysis.means import ARM
from vrag_kit.analysis.report_tables import settings_table
from vrag_kit.papers.visual_rag.equivalence import MARGIN, NOT_COMPARABLE, with_equivalence_verdict
from vrag_kit.papers.visual_rag.printed import PAPER_NAMES, is_paper_data, release_of
from vrag_kit.papers.visual_rag.run_noise import run_noise
from vrag_kit.types import Benchmark

PAPERS_JUDGE = "o4-mini"
_METRICS = {"idk_rate": ("abstention", "judge_flag", "phrase_match")}
"""Maps a published metric to our metrics, where the names differ."""
_PLACES = ("corpus", "m")
"""Columns that identify cells beyond model, setting and k, where both tables have them."""


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
    """Builds a notebook's last table, which compares results with the paper. On the paper's own
    data with its judge it is `differences_from_published` with the data's edition, otherwise both
    sets of results without a verdict.

    `is_paper_data` decides which data they are; `judge` is the judge's name, which matters except
    for ROUGE. The caller must use the paper's retriever, clue position and models.
    """
    results = _of_metric(results, paper)
    same = is_paper_data(benchmark)
    if same and (judge == PAPERS_JUDGE or set(results["metric"]) == {"rouge"}):
        held = differences_from_published(results, paper, judged, margin=margin).round(2)
        return held.assign(edition=release_of(benchmark))
    return settings_table(_labelled(results), _labelled(paper), same_data=same)


def _of_metric(results: pd.DataFrame, paper: pd.DataFrame) -> pd.DataFrame:
    """The rows of ours that measure what the paper's table prints."""
    names = [_METRICS.get(name, (name,)) for name in paper["metric"].unique()]
    return results[results["metric"].isin(set().union(*names))]


def _labelled(table: pd.DataFrame) -> pd.DataFrame:
    """With one of several corpora and metrics in the model's name; the paper's corpora by
    the names that it prints (`dataset`), not by those of ours that they stand beside.
    """
    for column in ("dataset" if "dataset" in table else "corpus", "metric"):
        if column in table and table[column].nunique() > 1:
            table = table.assign(model=table["model"] + ", " + table[column])
    return table


def differences_from_published(
    results: pd.DataFrame, paper: pd.DataFrame, judged: pd.DataFrame, *, margin: float = MARGIN
) -> pd.DataFrame:
    """Computes the difference of our means from the paper's on the same data, for each cell that
    both have. Columns: model, setting, k, metric, value, paper, difference, ci_low, ci_high, n,
    verdict.

    All in percent and points; `results` as `to_percent(accuracy(judged, …))`, or `column_means` of
    ROUGE or of marks, `paper` as `published(…)`. It tests whether two means over
    the *same* queries differ by more than runs do: the interval is the 95 % one of `run_noise`,
    widened by what missing verdicts could change. Verdicts are those of `with_equivalence_verdict`;
    "not comparable" is a cell whose number of queries (`n`) differs from the paper's (as in Table
    6, but for its 266). A bias shared by the paper's judge and ours is not covered. The best top-k
    is compared whatever its k.
    """
    results = _of_metric(results, paper)
    keys = ["setting", "place"]
    keys += [name for name in _PLACES if name in results and name in paper]
    theirs = _placed(paper).rename(columns={"model": "paper_model", "value": "paper"})
    theirs = theirs.rename(columns={"n": "queries"})[["paper_model", *keys, "paper", "queries"]]
    named = _placed(results).assign(paper_model=results["model"].map(PAPER_NAMES))
    table = named.merge(theirs, on=["paper_model", *keys])
    difference = table["value"] - table["paper"]
    rows = [_interval(row, judged) for row in table.to_dict("records")]
    ends = pd.DataFrame(rows, columns=["low", "high", "n"], index=table.index)
    table = table.assign(
        difference=difference,
        ci_low=difference + ends["low"],
        ci_high=difference + ends["high"],
        n=ends["n"],
    )
    table = with_equivalence_verdict(table, margin)
    other = table["n"] != table["queries"]
    table = table.assign(verdict=table["verdict"].mask(other, NOT_COMPARABLE))
    numbers = ["value", "paper", "difference", "ci_low", "ci_high", "n"]
    return table[["model", "setting", "k", *keys[2:], "metric", *numbers, "verdict"]]


def _placed(table: pd.DataFrame) -> pd.DataFrame:
    """With the column place: k, or −1 for the best top-k, whatever its k."""
    return table.assign(place=table["k"].mask(table["setting"] == "rag_best", -1))


def _interval(
    row: dict[Hashable, Any],  # any cells
    judged: pd.DataFrame,
) -> tuple[float, float, int]:
    """(how far below and above a difference its interval ends, queries asked)."""
    arm = answers_of_cell(judged, row)
    cell = (row["paper_model"], row["setting"], row["k"])
    noise = run_noise(cell, arm, row["metric"], (row["value"] + row["paper"]) / 2)
    low, high = noise.missing
    return low - noise.allowed, high + noise.allowed, arm["query_id"].nunique()


def answers_of_cell(judged: pd.DataFrame, row: dict[Hashable, Any]) -> pd.DataFrame:  # any cells
    """Returns the judged answers behind a row of results; the best top-k is a top-k."""
    same = judged["setting"] == str(row["setting"]).replace("rag_best", "top_k")
    for name in ("model", "k", *_PLACES):
        if name in row and name in judged:
            same &= judged[name] == row[name]
    return judged[same]
