"""A replication held against the paper, on the paper's own data only: each cell's
difference with its interval, and a verdict.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd

from vrag_kit.analysis.settings_table import settings_table
from vrag_kit.papers.visual_rag.equivalence import MARGIN, NOT_COMPARABLE, with_verdict
from vrag_kit.papers.visual_rag.printed import PAPER_NAMES, edition_of, is_papers_data
from vrag_kit.papers.visual_rag.run_noise import noise_of
from vrag_kit.types import Benchmark

PAPERS_JUDGE = "o4-mini"
_METRICS = {"idk_rate": ("abstention", "mark", "words")}
"""What the paper prints → what we measure of it, where that has other names."""
_PLACES = ("corpus", "m")
"""Columns that tell cells apart beyond model, setting and k, where both tables have them."""


def beside_printed(
    results: pd.DataFrame,
    paper: pd.DataFrame,
    benchmark: Benchmark,
    judged: pd.DataFrame,
    *,
    judge: str,
    margin: float = MARGIN,
) -> pd.DataFrame:
    """The table that closes a notebook: on the paper's own data, judged by its judge,
    `held_against_paper` with the data's edition, otherwise the two side by side, without
    a verdict.

    Which data they are, `is_papers_data` tells; `judge` is the judge's name, which
    matters but for ROUGE. That the retriever, the clue's position and the models are
    the paper's is the caller's to see to.
    """
    results = _of_metric(results, paper)
    same = is_papers_data(benchmark)
    if same and (judge == PAPERS_JUDGE or set(results["metric"]) == {"rouge"}):
        held = held_against_paper(results, paper, judged, margin=margin).round(2)
        return held.assign(edition=edition_of(benchmark))
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


def held_against_paper(
    results: pd.DataFrame, paper: pd.DataFrame, judged: pd.DataFrame, *, margin: float = MARGIN
) -> pd.DataFrame:
    """Our means less the paper's on the same data, one row a cell that both have: model,
    setting, k, metric, value, paper, difference, ci_low, ci_high, n, verdict.

    All in percent and points; `results` as `in_percent(accuracy(judged, …))`, or
    `column_means` of ROUGE or of marks, `paper` as `printed(published(…))`. The
    question is whether two means over the *same* queries differ by more than runs do:
    the interval is the 95 % one of `noise_of`, widened by what missing verdicts could
    change. What it says, `with_verdict` tells; "not comparable" is a cell that we asked
    on another number of queries (`n`) than stand behind the paper's (as Table 6, but
    for its 266). A bias that the paper's judge and ours share is in none of it. The
    best top-k is compared whatever its k.
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
    table = with_verdict(table, margin)
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
    arm = arm_of(judged, row)
    cell = (row["paper_model"], row["setting"], row["k"])
    noise = noise_of(cell, arm, row["metric"], (row["value"] + row["paper"]) / 2)
    low, high = noise.missing
    return low - noise.allowed, high + noise.allowed, arm["query_id"].nunique()


def arm_of(judged: pd.DataFrame, row: dict[Hashable, Any]) -> pd.DataFrame:  # any cells
    """The judged answers behind a row of results; the best top-k is a top-k."""
    same = judged["setting"] == str(row["setting"]).replace("rag_best", "top_k")
    for name in ("model", "k", *_PLACES):
        if name in row and name in judged:
            same &= judged[name] == row[name]
    return judged[same]
