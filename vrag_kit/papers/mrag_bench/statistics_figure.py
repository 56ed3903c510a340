"""Figure of the accuracy of guessing from option format alone."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

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
    means = table[table["scenario"] == OVERALL].set_index("format")["value"]
    found = [f"{value:.0f} % ({_FORMATS[str(name)]})" for name, value in means.items()]
    figure = forest_plot(
        table,
        rows="scenario",
        color="format",
        names={OVERALL: "all questions", **dict.fromkeys(QUESTIONS, ""), **_FORMATS},
        limits=(0, 100),
        xlabel="Accuracy from option format alone (%)",
        title=f"Option format alone answers {' and '.join(found)} of questions",
        caption="Guesses without image or model. All questions: in the paper's proportions.",
    )
    (axis,) = figure.axes
    axis.axvline(CHANCE, color=DARK, linewidth=0.8, linestyle="--", zorder=1)
    axis.text(CHANCE, -0.7, "chance", fontsize=SMALL, ha="center", color=DARK)
    return figure
