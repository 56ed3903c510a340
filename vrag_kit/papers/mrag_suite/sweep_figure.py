"""Figures of the prompt sweep: means on both halves, and gains over the mean of the prompts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vrag_kit.analysis.report_tables import LEVEL
from vrag_kit.papers.mrag_suite.datasets import metric_label
from vrag_kit.papers.mrag_suite.sweep import HELD_OUT, PLANTED, SELECTION
from vrag_kit.plotting.panels import Series, dodge, draw_interval
from vrag_kit.plotting.style import (
    DARK,
    MODEL,
    REPORTED,
    SMALL,
    count_label,
    fit,
    new_figure,
    series_colors,
    set_caption,
)

_HALVES = {SELECTION: "selection half", HELD_OUT: "held-out half"}


def sweep_figure(sweeps: Mapping[str, pd.DataFrame]) -> Figure:
    """Draws a line from each prompt's rank on the selection half to that on the held-out half, with
    its means, a panel for each data set (name → `prompt_sweep` in percent), without `PLANTED`.
    Of equal means the selected prompt is first. The title has its ranks on the held-out half.
    """
    figure, (axes,) = new_figure(1, len(sweeps), height=3.6)
    found = []
    for axis, (name, table) in zip(axes, sweeps.items(), strict=True):
        prompts = table[~table["prompt"].isin(PLANTED)].sort_values("selected", kind="stable")
        means = prompts[list(_HALVES)].round(6)
        ranks = means.iloc[::-1].rank(ascending=False, method="first").iloc[::-1]
        chosen = prompts.iloc[-1]
        found.append(f"{ranks.iloc[-1][HELD_OUT]:.0f} of {len(prompts)} on {name}")
        for row, ends in zip(prompts.to_dict("records"), ranks.to_numpy(), strict=True):
            color, width = (MODEL[1], 2.0) if row["selected"] else (REPORTED, 0.8)
            axis.plot([0, 1], ends, "o-", color=color, linewidth=width, markersize=3)
            for place, half, side in ((-0.05, 0, "right"), (1.05, 1, "left")):
                mean = f"{row[list(_HALVES)[half]]:.1f} %"
                axis.text(place, ends[half], mean, color=color, ha=side, va="center", size=SMALL)
        counts = [count_label([chosen[f"{half}_n"]], "questions") for half in _HALVES]
        ticks = [f"{name}\n{n}" for name, n in zip(_HALVES.values(), counts, strict=True)]
        axis.set_xticks([0, 1], ticks)
        axis.set(xlim=(-0.4, 1.4), ylim=(len(prompts) + 0.5, 0.5))
        axis.set_yticks(range(1, len(prompts) + 1))
        axis.grid(visible=False)
        axis.set_title(f"{name} ({metric_label(chosen['metric'])})")
    axes[0].set_ylabel("Rank of the prompt (1: highest mean)")
    handles = [
        Line2D([], [], color=MODEL[1], marker="o", label="prompt selected on the selection half"),
        Line2D([], [], color=REPORTED, marker="o", label="other prompts"),
    ]
    title = f"the selected prompt has rank {', '.join(found)}, on the held-out half"
    set_caption(figure, title, "Among equal means the selected prompt is first.", handles)
    return figure


def prompt_gain_figure(gains: pd.DataFrame) -> Figure:
    """Draws `prompt_gains_by_dataset`, a panel for each data set, and one below for `PLANTED` on an
    axis of its own. The title counts the differences that last after correction.
    """
    names = prompt_names(gains["prompt"])
    datasets = list(gains["dataset"].unique())
    colors = series_colors("stratum", list(gains["stratum"].unique()))
    control = gains["prompt"].isin(PLANTED)
    parts = [part for part in (gains[~control], gains[control]) if len(part)]
    rows = [list(part["prompt"].unique()) for part in parts]
    figure, axes = new_figure(
        len(parts), len(datasets), height=5.6, sharex="row", sharey="row",
        height_ratios=[len(each) for each in rows],
    )  # fmt: skip
    for line, part, prompts in zip(axes, parts, rows, strict=True):
        for axis, dataset in zip(line, datasets, strict=True):
            of_dataset = part[part["dataset"] == dataset]
            for shift, (stratum, color) in zip(dodge(len(colors)), colors.items(), strict=True):
                some = of_dataset[of_dataset["stratum"] == stratum]
                at = some["prompt"].map(prompts.index).to_numpy(float) + shift
                draw_interval(axis, at, some, Series(color), flat=True)
                lasts = (some["p_holm"] < LEVEL).to_numpy(bool)
                for end, place in zip(some["ci_high"][lasts], at[lasts], strict=True):
                    axis.annotate("*", (end, place), (4, -3), textcoords="offset points")
            axis.axvline(0, color=DARK, linewidth=0.8, zorder=1)
            axis.grid(visible=False, axis="y")
            axis.set_yticks(range(len(prompts)), [fit(names[each], 1.7, 7.5) for each in prompts])
            axis.set_ylim(len(prompts) - 0.4, -0.6)
    for axis, dataset in zip(axes[0], datasets, strict=True):
        counts = gains[gains["dataset"] == dataset].groupby("stratum", sort=False)["n"].max()
        each = ", ".join(f"{n:,} {stratum}" for stratum, n in counts.items())
        axis.set_title(fit(f"{dataset}\nn = {each}", 4.8 / len(datasets), 8))
    axes[0][0].set_xlim(-25, 25)
    axes[0][0].set_ylabel("Prompt: opening, answer style, reasoning")
    figure.supxlabel("Score − mean of the prompts (percentage points)", fontsize=8)
    lasts = gains["p_holm"] < LEVEL
    title = f"after correction {(lasts & ~control).sum()} of {(~control).sum()} differences of"
    title += " prompts from their mean are left (*)"
    if control.any():
        title += f", and {(lasts & control).sum()} of {control.sum()} of controls"
    handles = [
        Line2D([], [], color=color, marker="o", label=stratum) for stratum, color in colors.items()
    ]
    handles.append(Line2D([], [], color=DARK, label="95 % interval"))
    mark = f"p < {LEVEL:g}, corrected (Holm)"
    handles.append(Line2D([], [], color=DARK, marker="$*$", linestyle="", label=mark))
    set_caption(figure, title, "A control has an effect that the test should find.", handles)
    return figure


def prompt_names(prompts: Iterable[str]) -> dict[str, str]:
    """The names of prompts in figures, as in "plain, ex3, reasoning"."""
    return {
        prompt: prompt.replace("retrieve_then_reason", "reasoning").replace("-", ", ")
        for prompt in prompts
    }
