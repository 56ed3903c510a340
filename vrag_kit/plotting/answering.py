"""Figures of answer quality: the baselines, accuracy over k, and gCUE.

Ours and the paper's numbers go through the same functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.plotting.style import colors_of, new_figure

BASELINES = {"zero_shot": "zero-shot (no image)", "gt_clue": "one clue", "non_clue": "one non-clue"}
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
        for marker, shift, (setting, label) in zip(
            "o^X", (-0.18, 0.0, 0.18), settings.items(), strict=True
        ):
            rows = table[table["setting"] == setting].set_index("model").reindex(models)
            for x, (model, row) in enumerate(rows.iterrows()):
                low, high = (
                    abs(row["value"] - row[bound]) if np.isfinite(row[bound]) else 0.0
                    for bound in ("ci_low", "ci_high")
                )
                axis.errorbar(
                    x + shift,
                    row["value"],
                    yerr=[[low], [high]],
                    fmt=marker,
                    markersize=8,
                    color=colors[str(model)],
                    capsize=0,
                    linewidth=1.6,
                    markerfacecolor="white" if marker == "o" else colors[str(model)],
                )
            axis.plot(
                [],
                [],
                marker,
                color="#3B3B3B",
                markerfacecolor="white" if marker == "o" else "#3B3B3B",
                markersize=8,
                label=label,
            )
        axis.set(
            title=panel_title(title, table),
            ylabel=f"{metric} (%)",
            ylim=(-3, 103),
            xlim=(-0.6, len(models) - 0.4),
        )
        slant = {"rotation": 25, "ha": "right"} if len(models) > 3 else {}
        axis.set_xticks(
            range(len(models)),
            [model.replace("field-guide-", "") for model in models],
            fontsize=9,
            **slant,
        )
        axis.grid(axis="x", visible=False)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9)
    return figure


def accuracy_figure(sources: Mapping[str, pd.DataFrame], metric: str = "Accuracy") -> Figure:
    """One row a source (title → table with model, setting, k, value, ci_low, ci_high,
    in percent), top-k on the left, 1-in-k on the right.

    Both panels begin with zero-shot at k = 0; 1-in-1 is the clue alone. Bands are 95 %
    intervals where there are any. A hollow point has fewer queries than others, because
    answers failed.
    """
    panels = (
        ("top_k", ("zero_shot",), "top-k", "images shown, the first k retrieved"),
        ("one_in_k", ("zero_shot", "gt_clue"), "1-in-k", "images shown, one of k a clue"),
    )
    figure, axes = new_figure(
        len(sources), 3, (12, 3.6 * len(sources) + 0.6), sharey="row", width_ratios=(1, 1, 0.32)
    )
    for row, (title, table) in zip(axes[:, :-1], sources.items(), strict=True):
        colors = colors_of(table["model"])
        for axis, (setting, first, label, shown) in zip(row, panels, strict=True):
            chosen = table[table["setting"].isin([setting, *first])]
            ticks = sorted(chosen["k"].unique())
            for model, line in chosen.sort_values("k").groupby("model", sort=False):
                x = line["k"].map(ticks.index)
                axis.plot(
                    x, line["value"], "-", color=colors[str(model)], label=str(model), linewidth=2
                )
                _points(
                    axis,
                    x.to_numpy(),
                    line["value"].to_numpy(),
                    line["n"].to_numpy() < table["n"].max(),
                    colors[str(model)],
                )
                if line["ci_low"].notna().any():
                    axis.fill_between(
                        x,
                        line["ci_low"],
                        line["ci_high"],
                        color=colors[str(model)],
                        alpha=0.15,
                        linewidth=0,
                    )
            axis.set_xticks(
                range(len(ticks)),
                [
                    {0: "zero-\nshot", 1: "clue" if setting == "one_in_k" else "1"}.get(
                        int(k), str(int(k))
                    )
                    for k in ticks
                ],
            )
            axis.set(
                title=f"{panel_title(title, table)}: {label}", xlabel=shown, ylabel=f"{metric} (%)"
            )
        row[0].set_ylim(0, min(103.0, 1.12 * float(table[["value", "ci_high"]].max().max())))
    _legends(axes, [table["n"].nunique() > 1 for table in sources.values()])
    return figure


def gcue_figure(sources: Mapping[str, pd.DataFrame]) -> Figure:
    """Figure 3: gCUE over k, one row a source (title → table of `gcue` or
    `gcue_printed`), one column a λ.

    Bands are 95 % Fieller intervals; an unbounded one is hatched over the whole height.
    Values outside the axis sit at its edge as a triangle. A hollow point has fewer
    queries than others, because answers failed.
    """
    lambdas = sorted({lam for table in sources.values() for lam in table["lambda"]})
    figure, axes = new_figure(
        len(sources),
        len(lambdas) + 1,
        (4.4 * len(lambdas) + 1.6, 3.3 * len(sources) + 0.4),
        sharey=True,
        width_ratios=[1] * len(lambdas) + [0.4],
    )
    for row, (title, table) in zip(axes[:, :-1], sources.items(), strict=True):
        ticks, colors = sorted(table["k"].unique()), colors_of(table["model"])
        for axis, lam in zip(row, lambdas, strict=True):
            axis.axhline(1, color="#3B3B3B", linewidth=1)
            axis.axhline(0, color="#3B3B3B", linewidth=1, linestyle=":")
            for model, line in (
                table[table["lambda"] == lam].sort_values("k").groupby("model", sort=False)
            ):
                _gcue_line(
                    axis,
                    line["k"].map(ticks.index).to_numpy(),
                    line,
                    int(table["n"].max()),
                    str(model),
                    colors[str(model)],
                )
            axis.set_xticks(range(len(ticks)), [str(int(k)) for k in ticks])
            axis.set(
                title=f"{panel_title(title, table)}, λ = {lam:g}",
                xlabel="images shown, k",
                ylabel="gCUE",
                ylim=_GCUE_RANGE,
            )
    _legends(axes, [table["n"].nunique() > 1 for table in sources.values()])
    return figure


def _legends(axes: np.ndarray, hollow: Sequence[bool]) -> None:
    """One legend a row, in its last and else empty panel, each model once; with a line
    on hollow points in the rows that have some.
    """
    for row, some in zip(axes, hollow, strict=True):
        if some:
            row[0].plot(
                [],
                [],
                "o",
                color="#3B3B3B",
                markerfacecolor="white",
                label="fewer queries:\nanswers failed",
            )
        entries = {
            label: handle
            for axis in row
            for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        row[-1].axis("off")
        row[-1].legend(entries.values(), entries.keys(), fontsize=9, loc="center left")


def _points(axis: Axes, x: np.ndarray, y: np.ndarray, hollow: np.ndarray, color: str) -> None:
    for some, face in ((~hollow, color), (hollow, "white")):
        if some.any():  # an empty line that is not clipped has no place, and breaks the layout
            axis.plot(
                x[some],
                y[some],
                "o",
                color=color,
                markerfacecolor=face,
                markersize=6,
                clip_on=False,
            )


def _gcue_line(
    axis: Axes, x: np.ndarray, line: pd.DataFrame, most: int, model: str, color: str
) -> None:
    (low, high), value = _GCUE_RANGE, line["value"].to_numpy()
    axis.plot(x, np.clip(value, low, high), "-", color=color, linewidth=2, label=model)
    for outside, marker in ((value > high, "^"), (value < low, "v")):
        if outside.any():
            axis.plot(
                x[outside],
                np.clip(value[outside], low, high),
                marker,
                color=color,
                markersize=9,
                clip_on=False,
            )
    inside = (value >= low) & (value <= high)
    _points(axis, x[inside], value[inside], line["n"].to_numpy()[inside] < most, color)
    if line["ci_low"].notna().any():
        unbounded = ~np.isfinite(line["ci_low"].to_numpy() - line["ci_high"].to_numpy())
        axis.fill_between(
            x,
            np.clip(line["ci_low"], low, high),
            np.clip(line["ci_high"], low, high),
            color=color,
            alpha=0.15,
            linewidth=0,
        )
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
