"""Figure of what our parser and the official scorer make of answers."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.papers.mrag_bench.labelled_choices import ANOTHER, AS_LABELLED
from vrag_kit.papers.mrag_bench.official_scorer import ScorerOutcome
from vrag_kit.papers.mrag_bench.readers import RIGHT, WRONG
from vrag_kit.plotting import outcome_bars
from vrag_kit.plotting.style import DARK, MODEL, OUTCOME

_CLASSES = {RIGHT: "correct", AS_LABELLED: "correct", WRONG: "incorrect", ANOTHER: "incorrect"}
_CLASSES |= {ScorerOutcome.ASKS: "asks", ScorerOutcome.CRASH: "crash"}
_NAMES = {"missing": "no option found", "asks": "falls back to GPT-3.5", "crash": "crashes"}
_COLORS = {**OUTCOME, "asks": MODEL[4], "crash": DARK}


def extraction_shares(read: pd.DataFrame, by: str) -> pd.DataFrame:
    """Returns the shares, in percent, of what each extraction finds in answers: `by`, extraction
    ("official", "ours"), n, metric ("correct", "incorrect", "missing" where it finds no option,
    "asks", "crash"), value. All of them are given for each extraction, 0 where there is none.

    `read` comes from `evaluate_extractors` (then "correct" is as labelled), or from
    `with_official_score`, whose failed calls are left out.
    """
    long = read.melt(by, ["official_is", "ours_is"], "extraction", "metric").dropna()
    long["metric"] = long["metric"].map(_CLASSES).fillna("missing")
    long["extraction"] = long["extraction"].str.removesuffix("_is")
    counts = long.groupby([by, "extraction", "metric"]).size().unstack("metric", fill_value=0)
    counts = counts.reindex(columns=["correct", "incorrect", *_NAMES], fill_value=0)
    n = counts.sum(axis=1)
    shares = counts.mul(100).div(n, axis=0).assign(n=n).reset_index()
    return shares.melt([by, "extraction", "n"], var_name="metric")


def extraction_figure(shares: pd.DataFrame, right: str, wrong: str, title: str) -> Figure:
    """Draws `extraction_shares`, of which `right` and `wrong` name the first two outcomes."""
    names = {"correct": right, "incorrect": wrong, **_NAMES}
    return outcome_bars(
        shares,
        rows=[shares.columns[0], "extraction"],
        outcomes=names,
        colors=_COLORS,
        names={"ours": "our parser"},
        title=title,
        caption="What each extraction makes of the same answers; those of a row sum to 100 %.",
    )
