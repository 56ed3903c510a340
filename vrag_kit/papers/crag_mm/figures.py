"""What the figures of this paper have in common: outcomes with their colours, rows and titles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.analysis import finding
from vrag_kit.plotting.diagnostics import outcome_bars
from vrag_kit.plotting.panels import NO_NAMES, Names, line_plot
from vrag_kit.plotting.style import COLUMN, DARK, FEW, OUTCOME, display_name

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
OF_IMAGES = {"matched": "matched image", "mismatched": "mismatched image (control)"}


def model_rows(table: pd.DataFrame, *columns: str) -> list[str]:
    """The columns that name the rows of a figure: the model first where there are several."""
    return ["model", *columns] if table["model"].nunique() > 1 else list(columns)


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
    options |= {"outcomes": _OUTCOMES, "colors": _COLORS, "caption": of_models(shares)}
    rows, xlabel = model_rows(shares, row), f"{unit.capitalize()} (%)"
    return outcome_bars(shares, rows=rows, xlabel=xlabel, unit=unit, **options)


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


def on_each_model(published: pd.DataFrame, models: Iterable[str]) -> pd.DataFrame:
    """The published numbers, of whichever model, once for each of `models`: ticks in their rows."""
    rows = pd.DataFrame({"model": list(dict.fromkeys(models))})
    return published.drop(columns="model").merge(rows, how="cross")


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
    lines at `chosen` (name → threshold; NaN draws none), the first of which is in the title. `n`
    counts images. An empty curve gives an empty figure.
    """
    known = {name: value for name, value in chosen.items() if value == value}
    name, used = next(iter(known.items()))
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
        caption="Dashed: " + ", ".join(f"{each} ({value:.2f})" for each, value in known.items()),
    )
    for value in known.values():
        figure.axes[0].axvline(value, color=DARK, linewidth=0.8, linestyle="--", zorder=1)
    return figure
