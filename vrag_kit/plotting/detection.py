"""Figure of abstention as signal detection over the number of images: rates, d′, and selective
accuracy.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vrag_kit.plotting.old_panels import Mark, draw_means
from vrag_kit.plotting.old_style import DARK, model_colors, new_figure

_RATES = {
    "abstention_hit_rate": ("o", "no clue in the context"),
    "abstention_false_alarm_rate": ("s", "clue in context"),
}
"""Rate → the mark of its contexts, and what they are."""


def detection_figure(
    detected: pd.DataFrame, curve: pd.DataFrame, *, panels: str, title: str = ""
) -> Figure:
    """Draws one row per value of the column `panels`: the abstention rate with and without a clue
    in the context, and d′, over k; and selective accuracy over coverage, one point per k, the first
    and the last labelled.

    `detected` of `abstention_detection` and `curve` of `risk_coverage`, both by model, k and
    `panels`, the second also by clue_in_context. Dotted lines join the points over k; each has its
    curve, where several samples per prompt make one. Whiskers are 95 % intervals, of the accuracy
    on the right; that of the coverage is on the left. Circles have no clue in the context, squares
    one.
    """
    rows, colors = list(dict.fromkeys(detected[panels])), model_colors(detected["model"])
    figure, axes = new_figure(len(rows), 3, (14.2, 3.7 * len(rows) + 0.7))
    top = detected.loc[detected["metric"] == "d_prime", ["value", "ci_high"]].max().max()
    for line, row in zip(axes, rows, strict=True):
        mine = detected[detected[panels] == row]
        counts = mine.loc[mine["metric"].isin(list(_RATES)), "n"]
        fewest, most = int(counts.min()), int(counts.max())
        n = f"{most}" if fewest == most else f"{fewest} to {most}"
        for axis, what in zip(line, ("abstention", "d′", "answers given"), strict=True):
            axis.set_title(f"{row}, n = {n} answers of either: {what}", fontsize=9.5)
        _over_k(line[0], mine, colors)
        line[0].set(ylabel="abstention (%)", ylim=(-3, 103))
        _d_prime(line[1], mine, colors)
        line[1].set(ylabel="d′", ylim=(min(-0.3, line[1].get_ylim()[0]), 1.08 * float(top)))
        _given(line[2], curve[curve[panels] == row], colors)
    models = [
        Line2D([], [], color=color, linewidth=4, label=model) for model, color in colors.items()
    ]
    marks = [
        Line2D([], [], marker=marker, linestyle="", color=DARK, label=label)
        for marker, label in _RATES.values()
    ]
    figure.legend(handles=[*models, *marks], loc="outside lower center", ncols=4, fontsize=9)
    figure.suptitle(title, fontsize=10)
    return figure


def _shifts(colors: dict[str, str]) -> dict[str, float]:
    """How far each model stands to the side, in shares of its k."""
    middle = (len(colors) - 1) / 2
    return {model: 1 + 0.05 * (number - middle) for number, model in enumerate(colors)}


def _line(axis: Axes, rows: pd.DataFrame, shift: float, color: str, marker: str) -> None:
    """One model's values over k with their intervals, hollow where answers failed."""
    rows = rows.sort_values("k")
    draw_means(axis, rows["k"].to_numpy(float) * shift, rows, Mark(color, marker, "-"))


def _on_k(axis: Axes, table: pd.DataFrame) -> None:
    """The axis of k: a number, on a logarithmic scale."""
    ks = sorted(table["k"].unique())
    axis.set(xscale="log", xlabel="images shown, k")
    axis.set_xticks(ks, [str(k) for k in ks])
    axis.minorticks_off()


def _over_k(axis: Axes, table: pd.DataFrame, colors: dict[str, str]) -> None:
    for metric, (marker, _) in _RATES.items():
        rates = table[table["metric"] == metric]
        rates = rates.assign(**{name: 100 * rates[name] for name in ("value", "ci_low", "ci_high")})
        for model, shift in _shifts(colors).items():
            _line(axis, rates[rates["model"] == model], shift, colors[model], marker)
    _on_k(axis, table)


def _d_prime(axis: Axes, table: pd.DataFrame, colors: dict[str, str]) -> None:
    axis.axhline(0, color=DARK, linewidth=1)
    found = table[table["metric"] == "d_prime"]
    for model, shift in _shifts(colors).items():
        _line(axis, found[found["model"] == model], shift, colors[model], "D")
    _on_k(axis, table)


def _given(axis: Axes, curve: pd.DataFrame, colors: dict[str, str]) -> None:
    """The operating points, joined over k, and the curves that begin there."""
    for (model, _, _), line in curve.groupby(["model", "clue_in_context", "k"], sort=False):
        color = colors[str(model)]
        axis.plot(100 * line["coverage"], 100 * line["value"], "-", color=color, linewidth=1)
    first = curve[curve["threshold"] == 0].sort_values("k")
    for (model, evidence), points in first.groupby(["model", "clue_in_context"], sort=False):
        marker, _ = _RATES["abstention_false_alarm_rate" if evidence else "abstention_hit_rate"]
        x, y = 100 * points["coverage"], 100 * points["value"]
        color = colors[str(model)]
        axis.plot(x, y, ":", marker=marker, markersize=6, color=color, linewidth=1.2)
        axis.vlines(x, 100 * points["ci_low"], 100 * points["ci_high"], color=color, linewidth=1)
        for end in (0, -1):
            words, place = f"k = {points['k'].iloc[end]}", (x.iloc[end], y.iloc[end])
            axis.annotate(words, place, xytext=(4, 4), textcoords="offset points", fontsize=7)
    axis.set(xlabel="coverage (% of prompts)", ylabel="selective accuracy (%)")
    axis.set(xlim=(-3, 103), ylim=(-3, 103))
