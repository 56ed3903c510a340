"""What the figures of this paper have in common: outcomes with their colours, rows and titles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.analysis import finding
from vrag_kit.plotting.diagnostics import outcome_bars
from vrag_kit.plotting.panels import NO_NAMES, Names, line_plot
from vrag_kit.plotting.style import COLUMN, DARK, FEW, OUTCOME, SMALL, display_name
from vrag_kit.retrieval import best_threshold

_OUTCOMES = {"accuracy": "correct", "missing": "missing", "hallucination": "hallucination"}
"""The metrics that add up to 100 %, in the order of their bars → what each counts."""
_COLORS = {
    "accuracy": OUTCOME["correct"],
    "missing": OUTCOME["missing"],
    "hallucination": OUTCOME["incorrect"],
}
COUNTED = {
    "truthfulness": "truthfulness, conversations",
    "accuracy": "accuracy, turns",
    "missing": "missing, turns",
    "hallucination": "hallucination, turns",
}
"""Metrics of conversations → their names with what n counts."""
TRUTHFULNESS = "Truthfulness (% correct − % hallucination)"
OF_IMAGES = {"matched": "own image", "mismatched": "another image (control)"}


def outcome_figure(
    shares: pd.DataFrame,
    row: str,
    *,
    unit: str,
    **options: Any,  # those of `outcome_bars` have values of many types
) -> Figure:
    """Draws `outcome_bars` of correct, missing and hallucinated answers, in percent: a bar for each
    value of the column `row`. `unit` is what n counts; `options` are beside, panels, names, title.
    """
    names = {"truthfulness": "truthfulness =\ncorrect − hallucination"} | options["names"]
    options |= {"outcomes": _OUTCOMES, "colors": _COLORS, "caption": of_models(shares)}
    options |= {"names": names, "xlabel": f"{unit.capitalize()} (%)"}
    rows = ["model", row] if shares["model"].nunique() > 1 else row
    return outcome_bars(shares, rows=rows, unit=unit, **options)


def of_models(table: pd.DataFrame) -> str:
    """A sentence for a caption: the models of a table."""
    return f"Models: {', '.join(table['model'].unique())}."


def headline(gains: pd.DataFrame, arm: str, baseline: str) -> str:
    """The title for `to_percent(paired_differences(…))` of one metric and arm: `finding` for one
    model; for several, for how many the 95 % interval is above 0.
    """
    if len(gains) == 1:
        return finding(gains.iloc[0].to_dict(), arm, baseline)
    higher = int((gains["ci_low"] > 0).sum())
    return f"{arm} is higher than {baseline} for {higher} of {len(gains)} models"


def extremes(means: pd.DataFrame, what: str, column: str, names: Names = NO_NAMES) -> str:
    """The title for means in percent: for which value of `column` `what` is lowest and highest,
    of those with at least `FEW` cases, if any.
    """
    known = means[means["n"] >= FEW].dropna(subset="value").sort_values("value")
    if known.empty:
        return f"{what} is unknown: no mean has {FEW} cases"
    ends = [
        f"({row['value']:.0f} %) for “{display_name(row[column], names)}”".replace("(-", "(−")
        for row in known.iloc[[0, -1]].to_dict("records")
    ]
    return f"{what} is lowest {ends[0]} and highest {ends[1]}"


def threshold_figure(curve: pd.DataFrame, chosen: Mapping[str, float], n: int) -> Figure:
    """Draws precision, recall and F1 of `threshold_curve` at every fifth threshold, and vertical
    lines at `chosen` (name → threshold), the first of which is in the title. `n` counts images. An
    empty curve gives an empty figure.
    """
    (name, used), best = next(iter(chosen.items())), best_threshold(curve)
    lines = curve.iloc[::5].melt("threshold", ["precision", "recall", "f1"], var_name="metric")
    at = 100 * curve[np.isclose(curve["threshold"], used)][["precision", "recall"]]
    numbers = " and ".join(
        f"{value:.0f} % {metric}" for metric, value in at.mean().dropna().items()
    )
    figure = line_plot(
        lines.assign(value=100 * lines["value"], n=n),
        x="threshold",
        xlabel="Similarity threshold",
        ylabel="Share (%)",
        color="metric",
        names={"precision": "precision", "recall": "recall", "f1": "F1"},
        unit="images",
        width=COLUMN,
        title=f"The threshold {name}, {used:.2f}, has {numbers or 'no images with an entity'}",
        caption=f"Best F1: at {best:.2f}." if best == best else "",
    )
    axis = figure.axes[0]
    for name, value in chosen.items():
        axis.axvline(value, color=DARK, linewidth=0.8, linestyle="--", zorder=1)
        axis.text(value, 1.01, name, transform=axis.get_xaxis_transform(), ha="center", size=SMALL)
    return figure
