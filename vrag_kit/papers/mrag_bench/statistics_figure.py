"""Figure of the accuracy of guessing from option format alone."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.papers.mrag_bench.audit import QUESTIONS
from vrag_kit.papers.mrag_bench.results import CHANCE, OVERALL
from vrag_kit.plotting.panels import forest_plot
from vrag_kit.plotting.style import DARK

_FORMATS = {
    "original": "original options",
    "normalised": "normalised options",
    "planted": "planted format cue",
}


def option_format_figure(guessed: Mapping[str, pd.DataFrame]) -> Figure:
    """Plots the accuracy from option format alone, a row for all questions and for each scenario,
    a colour for each of `guessed` (option format → `option_format_by_scenario`). Dashed: chance.
    """
    table = pd.concat(guessed, names=["format"]).reset_index("format")
    most = table[table["scenario"] == OVERALL].nlargest(1, "value").iloc[0]
    reach = f"{most['value']:.0f} % [{most['ci_low']:.0f}, {most['ci_high']:.0f}]"
    which = _FORMATS.get(most["format"], most["format"])
    figure = forest_plot(
        table,
        rows="scenario",
        color="format",
        names={OVERALL: "all questions", **dict.fromkeys(QUESTIONS, ""), **_FORMATS},
        limits=(0, 100),
        xlabel="Accuracy from option format alone (%)",
        title=f"Option format alone answers at most {reach} of questions ({which})",
        caption=f"Guesses from the options' format, without image or model. Dashed: chance"
        f" ({CHANCE:g} %). All questions: in the paper's proportions of scenarios.",
    )
    figure.axes[0].axvline(CHANCE, color=DARK, linewidth=0.8, linestyle="--", zorder=1)
    return figure
