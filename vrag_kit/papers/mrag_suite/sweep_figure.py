"""Figures of the prompt sweep: means on both halves, and gains over the mean of the prompts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vrag_kit.analysis.report_tables import LEVEL
from vrag_kit.papers.mrag_suite.datasets import metric_label
from vrag_kit.papers.mrag_suite.sweep import HELD_OUT, PLANTED, SELECTION
from vrag_kit.plotting.panels import forest_plot
from vrag_kit.plotting.style import MODEL, REPORTED, SMALL, count_label, new_figure, set_caption

_HALVES = {SELECTION: "selection half", HELD_OUT: "held-out half"}
_SELECTED = MODEL[1]
_MIDDLE = {"ha": "center", "va": "center"}


def sweep_figure(sweeps: Mapping[str, pd.DataFrame]) -> Figure:
    """Draws a line from each prompt's rank on the selection half to that on the held-out half, with
    its means, a panel for each data set (name → `prompt_sweep` in percent), without `PLANTED`.
    Of equal means the selected prompt is first. The title has its ranks on the held-out half.
    """
    figure, (axes,) = new_figure(1, len(sweeps), height=3.6)
    found = []
    for axis, (name, table) in zip(axes, sweeps.items(), strict=True):
        prompts = table[~table["prompt"].isin(PLANTED)].sort_values(
            "selected", ascending=False, kind="stable"
        )
        ranks = prompts[list(_HALVES)].round(6).rank(ascending=False, method="first")
        found.append(f"{ranks.iloc[0][HELD_OUT]:.0f} of {len(prompts)} on {name}")
        for place, half in enumerate(_HALVES):
            for mean, rank in zip(prompts[half], ranks[half], strict=True):
                axis.text(1.3 * place - 0.15, rank, f"{mean:.1f} %", size=SMALL, **_MIDDLE)
        axis.plot([0, 1], ranks.T, "o-", color=REPORTED, linewidth=0.8, markersize=3)
        axis.plot([0, 1], ranks.iloc[0], "o-", color=_SELECTED, linewidth=2)
        counts = [count_label(prompts[f"{half}_n"], "questions") for half in _HALVES]
        ticks = [f"{name}\n{n}" for name, n in zip(_HALVES.values(), counts, strict=True)]
        axis.set_xticks([0, 1], ticks)
        axis.set_yticks(range(1, len(prompts) + 1))
        axis.set(xlim=(-0.4, 1.4), ylim=(len(prompts) + 0.5, 0.5))
        axis.grid(visible=False)
        axis.set_title(f"{name} ({metric_label(prompts['metric'].iloc[0])})")
    axes[0].set_ylabel("Rank of the prompt (1: highest mean)")
    labels = {_SELECTED: "prompt selected on the selection half", REPORTED: "other prompts"}
    handles = [Line2D([], [], color=hue, marker="o", label=each) for hue, each in labels.items()]
    title = f"the selected prompt has rank {', '.join(found)}, on the held-out half"
    set_caption(figure, title, "Of equal means the selected prompt is first.", handles)
    return figure


def prompt_gain_figure(gains: pd.DataFrame) -> Figure:
    """Draws rows of `prompt_gains_by_dataset`, a panel for each data set. The title counts the
    intervals beyond 0, and those that last after correction.
    """
    beyond = (gains["ci_low"] > 0) | (gains["ci_high"] < 0)
    lasts = gains["p_holm"] < LEVEL
    return forest_plot(
        gains,
        rows="prompt",
        xlabel="Score − mean of the prompts (percentage points)",
        color="stratum",
        style="model",
        panels="dataset",
        names=prompt_names(gains["prompt"]),
        title=f"{beyond.sum()} of {len(gains)} scores differ from the mean of the prompts (interval"
        f" beyond 0), {lasts.sum()} after correction",
        caption="A prompt: opening, answer style, reasoning.",
    )


def prompt_names(prompts: Iterable[str]) -> dict[str, str]:
    """The names of prompts in figures, as in "plain, ex3, reasoning"."""
    return {
        prompt: prompt.replace("retrieve_then_reason", "reasoning").replace("-", ", ")
        for prompt in prompts
    }
