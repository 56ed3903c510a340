"""Figures of answer quality: the baselines, accuracy over k, and gCUE.

Ours and printed numbers go through the same functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.plotting.style import DARK, colors_of, entries, new_figure

BASELINES = {"zero_shot": "zero-shot (no image)", "gt_clue": "one clue", "non_clue": "one non-clue"}
_MARKS = (("o", -0.18), ("^", 0.0), ("X", 0.18))
"""The mark of each baseline, and how far it is shifted sideways."""
_OVER_K = {
    "top_k": ("top-k", "images shown, the first k retrieved"),
    "one_in_k": ("1-in-k", "images shown, one of k a clue"),
}
"""The panels of `accuracy_figure`: setting → its name, and its x axis."""
_GCUE_RANGE = (-1.0, 3.0)


def side_by_side(sources: Mapping[str, pd.DataFrame], settings: Sequence[str] = ()) -> pd.DataFrame:
    """The tables behind a figure as one, with their title in the column `source`; of
    some settings only, when they are given.
    """
    table = pd.concat(sources, names=["source"]).reset_index("source").reset_index(drop=True)
    return table[table["setting"].isin(settings)] if settings else table


def panel_title(title: str, table: pd.DataFrame) -> str:
    """The title of a panel with its n, or the fewest and most queries behind its
    points.
    """
    fewest, most = int(table["n"].min()), int(table["n"].max())
    return f"{title} (n = {most})" if fewest == most else f"{title} (n = {fewest} to {most})"


def baseline_figure(
    sources: Mapping[str, pd.DataFrame],
    metric: str = "Accuracy",
    *,
    settings: Mapping[str, str] = BASELINES,
) -> Figure:
    """One panel a source (title → table with model, setting, value, ci_low, ci_high, in
    percent): every model in three settings (setting → its name), the first of them
    hollow.
    """
    widths = [max(2, table["model"].nunique()) for table in sources.values()]
    figure, axes = new_figure(1, len(sources), (1.05 * sum(widths) + 2.5, 4.4), width_ratios=widths)
    for axis, (title, table) in zip(axes[0], sources.items(), strict=True):
        models, colors = list(dict.fromkeys(table["model"])), colors_of(table["model"])
        for mark, (setting, label) in zip(_MARKS, settings.items(), strict=True):
            rows = table[table["setting"] == setting].set_index("model").reindex(models)
            _baseline(axis, rows, mark, colors)
            face = "white" if mark[0] == "o" else DARK
            axis.plot([], [], mark[0], color=DARK, markerfacecolor=face, markersize=8, label=label)
        axis.set(title=panel_title(title, table), ylabel=f"{metric} (%)")
        axis.set(ylim=(min(-3.0, _lowest(table)), 103), xlim=(-0.6, len(models) - 0.4))
        slant = {"rotation": 25, "ha": "right"} if len(models) > 3 else {}
        names = [model.replace("field-guide-", "") for model in models]
        axis.set_xticks(range(len(models)), names, fontsize=9, **slant)
        axis.grid(axis="x", visible=False)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9)
    return figure


def _baseline(
    axis: Axes, rows: pd.DataFrame, mark: tuple[str, float], colors: Mapping[str, str]
) -> None:
    """One setting of every model: a mark, shifted sideways, with its interval."""
    marker, shift = mark
    for x, (model, row) in enumerate(rows.iterrows()):
        bounds = np.array([[row["ci_low"]], [row["ci_high"]]], float)
        whiskers = np.nan_to_num(abs(row["value"] - bounds))
        axis.errorbar(
            x + shift,
            row["value"],
            yerr=whiskers,
            fmt=marker,
            markersize=8,
            color=colors[str(model)],
            capsize=0,
            linewidth=1.6,
            markerfacecolor="white" if marker == "o" else colors[str(model)],
        )


def accuracy_figure(sources: Mapping[str, pd.DataFrame], metric: str = "Accuracy") -> Figure:
    """One row a source (title → table with model, setting, k, value, ci_low, ci_high,
    in percent), top-k on the left, 1-in-k on the right, or the one that there is.

    The panels begin with zero-shot at k = 0; 1-in-1 is the clue alone. Bands are 95 %
    intervals where there are any. A hollow point has fewer queries than others, because
    answers failed.
    """
    found = set(pd.concat(list(sources.values()))["setting"])
    panels = [setting for setting in _OVER_K if setting in found] or list(_OVER_K)
    figure, axes = new_figure(
        len(sources),
        len(panels) + 1,
        (5.3 * len(panels) + 1.4, 3.6 * len(sources) + 0.6),
        sharey="row",
        width_ratios=(*[1.0] * len(panels), 0.32),
    )
    for row, (title, table) in zip(axes[:, :-1], sources.items(), strict=True):
        for axis, setting in zip(row, panels, strict=True):
            _over_k(axis, table, setting)
            label, shown = _OVER_K[setting]
            axis.set(title=f"{panel_title(title, table)}: {label}", xlabel=shown)
            axis.set(ylabel=f"{metric} (%)")
        highest = 1.12 * float(table[["value", "ci_high"]].max().max())
        row[0].set_ylim(_lowest(table), min(103.0, max(highest, 0.0)))
    _legends(axes, [table["n"].nunique() > 1 for table in sources.values()])
    return figure


def _lowest(table: pd.DataFrame) -> float:
    """Where the y axis begins: at 0, or below the lowest value or bound under it."""
    return min(0.0, 1.12 * float(table[["value", "ci_low"]].min().min()))


def _over_k(axis: Axes, table: pd.DataFrame, setting: str) -> None:
    """A line a model over the k of a setting, with its band, from zero-shot on."""
    first = ["zero_shot", "gt_clue"] if setting == "one_in_k" else ["zero_shot"]
    chosen, colors = table[table["setting"].isin([setting, *first])], colors_of(table["model"])
    ticks = sorted(chosen["k"].unique())
    for model, line in chosen.sort_values("k").groupby("model", sort=False):
        x, color = line["k"].map(ticks.index), colors[str(model)]
        axis.plot(x, line["value"], "-", color=color, label=str(model), linewidth=2)
        fewer = line["n"].to_numpy() < table["n"].max()
        _points(axis, x.to_numpy(), line["value"].to_numpy(), fewer, color)
        if line["ci_low"].notna().any():
            low, high = line["ci_low"], line["ci_high"]
            axis.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
    names = {0: "zero-\nshot", 1: "clue" if setting == "one_in_k" else "1"}
    axis.set_xticks(range(len(ticks)), [names.get(int(k), str(int(k))) for k in ticks])


def gcue_figure(sources: Mapping[str, pd.DataFrame]) -> Figure:
    """gCUE over k, one row a source (title → table of `gcue`), one column a λ.

    Bands are 95 % Fieller intervals; an unbounded one is hatched over the whole height.
    Values outside the axis sit at its edge as a triangle. A hollow point has fewer
    queries than others, because answers failed.
    """
    lambdas = sorted(pd.concat([table["lambda"] for table in sources.values()]).unique())
    figure, axes = new_figure(
        len(sources),
        len(lambdas) + 1,
        (4.4 * len(lambdas) + 1.6, 3.3 * len(sources) + 0.4),
        sharey=True,
        width_ratios=[1] * len(lambdas) + [0.4],
    )
    for row, (title, table) in zip(axes[:, :-1], sources.items(), strict=True):
        for axis, lam in zip(row, lambdas, strict=True):
            _gcue_panel(axis, table, lam)
            axis.set(title=f"{panel_title(title, table)}, λ = {lam:g}")
    _legends(axes, [table["n"].nunique() > 1 for table in sources.values()])
    return figure


def _gcue_panel(axis: Axes, table: pd.DataFrame, lam: float) -> None:
    ticks, colors = sorted(table["k"].unique()), colors_of(table["model"])
    axis.axhline(1, color=DARK, linewidth=1)
    axis.axhline(0, color=DARK, linewidth=1, linestyle=":")
    shown = table[table["lambda"] == lam].sort_values("k")
    for model, line in shown.groupby("model", sort=False):
        x, fewer = line["k"].map(ticks.index).to_numpy(), line["n"] < int(table["n"].max())
        _gcue_line(axis, x, line.assign(fewer=fewer), colors[str(model)])
    axis.set_xticks(range(len(ticks)), [str(int(k)) for k in ticks])
    axis.set(xlabel="images shown, k", ylabel="gCUE", ylim=_GCUE_RANGE)


def _legends(axes: np.ndarray, hollow: Sequence[bool]) -> None:
    """One legend a row, in its last and else empty panel, each model once; with a line
    on hollow points in the rows that have some.
    """
    for row, some in zip(axes, hollow, strict=True):
        if some:
            label = "fewer queries:\nanswers failed"
            row[0].plot([], [], "o", color=DARK, markerfacecolor="white", label=label)
        row[-1].axis("off")
        row[-1].legend(*entries(row), fontsize=9, loc="center left")


def _points(axis: Axes, x: np.ndarray, y: np.ndarray, hollow: np.ndarray, color: str) -> None:
    for some, face in ((~hollow, color), (hollow, "white")):
        if some.any():  # an empty line that is not clipped has no place, and breaks the layout
            (marks,) = axis.plot(x[some], y[some], "o", color=color, clip_on=False)
            marks.set(markerfacecolor=face, markersize=6)


def _gcue_line(axis: Axes, x: np.ndarray, line: pd.DataFrame, color: str) -> None:
    """One model's gCUE: line, points, and band, hatched where it is unbounded."""
    low, high = _GCUE_RANGE
    value, model = line["value"].to_numpy(), str(line["model"].iloc[0])
    cut = np.clip(value, low, high)
    axis.plot(x, cut, "-", color=color, linewidth=2, label=model)
    for outside, marker in ((value > high, "^"), (value < low, "v")):
        if outside.any():
            axis.plot(x[outside], cut[outside], marker, color=color, markersize=9, clip_on=False)
    inside = (value >= low) & (value <= high)
    _points(axis, x[inside], value[inside], line["fewer"].to_numpy()[inside], color)
    if not line["ci_low"].notna().any():
        return
    bounds = [np.clip(line[name], low, high) for name in ("ci_low", "ci_high")]
    axis.fill_between(x, *bounds, color=color, alpha=0.15, linewidth=0)
    unbounded = ~np.isfinite(line["ci_low"].to_numpy() - line["ci_high"].to_numpy())
    for at in x[unbounded]:
        axis.bar(
            at,
            high - low,
            bottom=low,
            width=0.25,
            color="none",
            edgecolor=color,
            hatch="///",
            linewidth=0,
            alpha=0.5,
        )
