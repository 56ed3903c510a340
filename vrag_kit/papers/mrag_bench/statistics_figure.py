"""Figure of the accuracy of guessing from option format alone."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.analysis.report_tables import format_ci
from vrag_kit.papers.mrag_bench.audit import QUESTIONS
from vrag_kit.papers.mrag_bench.results import CHANCE, OVERALL
from vrag_kit.plotting.panels import forest_plot
from vrag_kit.plotting.style import DARK, SMALL

_FORMATS = {"original": "original options", "planted": "planted format cue"}


def option_format_figure(guessed: Mapping[str, pd.DataFrame]) -> Figure:
    """Plots the accuracy from option format alone, a row for all questions and for each scenario,
    a colour for each of `guessed` (option format → `option_format_by_scenario`) but normalised
    options, which have no format to guess from. Dashed: chance.
    """
    table = pd.concat(guessed, names=["format"]).reset_index("format")
    table = table[table["format"].isin(_FORMATS)]
    means = table[table["scenario"] == OVERALL].set_index("format")
    found = [
        f"{format_ci(*row, decimals=0).replace(' [', ' % [')} ({_FORMATS[name]})"
        for name, *row in means[["value", "ci_low", "ci_high"]].itertuples()
    ]
    figure = forest_plot(
        table,
        rows="scenario",
        color="format",
        names={OVERALL: "all questions", **dict.fromkeys(QUESTIONS, ""), **_FORMATS},
        limits=(0, 100),
        xlabel="Accuracy from option format alone (%)",
        title=f"A guess from option format alone is correct in {' and '.join(found)}",
        caption=f"Guesses from the options' format, without image or model. Dashed: chance"
        f" ({CHANCE:g} %). All questions: in the paper's proportions of scenarios.",
    )
    (axis,) = figure.axes
    axis.axvline(CHANCE, color=DARK, linewidth=0.8, linestyle="--", zorder=1)
    axis.text(CHANCE, -0.7, "chance", fontsize=SMALL, ha="center", color=DARK)
    return figure
