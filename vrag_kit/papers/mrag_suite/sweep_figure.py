"""Figures of the prompt sweep: means on both halves, and gains over the mean of the prompts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.analysis.report_tables import LEVEL, TINY
from vrag_kit.analysis.strata import ALL
from vrag_kit.papers.mrag_suite.sweep import HELD_OUT, PLANTED, SELECTION
from vrag_kit.plotting.panels import forest_plot

_ENDS = ("", "_low", "_high", "_n")
_COLUMNS = ["prompt", "selected", "value", "ci_low", "ci_high", "n"]
_NAMES = {
    SELECTION: "selection split",
    HELD_OUT: "held-out split",
    "False": "other prompts",
    "True": "selected prompt",
}


def sweep_figure(sweeps: Mapping[str, pd.DataFrame]) -> Figure:
    """Draws each prompt's mean on both halves, a panel for each data set (name → `prompt_sweep` in
    percent). The title says where the selected prompt has the highest mean on the held-out half.
    """
    halves, best = [], 0
    for name, table in sweeps.items():
        for half in (SELECTION, HELD_OUT):
            means = table[["prompt", "selected", *(f"{half}{end}" for end in _ENDS)]]
            halves.append(means.set_axis(_COLUMNS, axis=1).assign(dataset=name, half=half))
        found = table[~table["prompt"].isin(PLANTED)].set_index("selected")[HELD_OUT]
        best += bool(found[True] > found.max() - TINY)
    title = (
        f"the prompt selected on one half is the best on the other half in {best} of"
        f" {len(sweeps)} data sets"
    )
    both = pd.concat(halves, ignore_index=True).astype({"selected": str})
    return forest_plot(
        both,
        rows="prompt",
        xlabel="Mean (%), each data set by its own metric",
        color="half",
        style="selected",
        panels="dataset",
        names=_NAMES | prompt_names(both["prompt"]),
        title=title,
    )


def prompt_gain_figure(gains: pd.DataFrame) -> Figure:
    """Draws `prompt_gains_by_dataset`, a panel for each data set. The title counts the differences
    over all questions that last after correction.
    """
    pooled = gains[gains["stratum"] == ALL]
    lasts, control = pooled["p_holm"] < LEVEL, pooled["prompt"].isin(PLANTED)
    title = f"{(lasts & ~control).sum()} of {(~control).sum()} prompts differ from their mean"
    if control.any():
        title += f", and {(lasts & control).sum()} of {control.sum()} controls"
    return forest_plot(
        gains,
        rows="prompt",
        xlabel="Score − mean of the prompts (percentage points)",
        color="stratum",
        style="model",
        panels="dataset",
        names=prompt_names(gains["prompt"]),
        title=f"{title}, after correction",
    )


def prompt_names(prompts: Iterable[str]) -> dict[str, str]:
    """The names of prompts in figures, as in "plain, ex3, reasoning"."""
    return {
        prompt: prompt.replace("retrieve_then_reason", "reasoning").replace("-", ", ")
        for prompt in prompts
    }
