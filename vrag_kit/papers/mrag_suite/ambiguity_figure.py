"""Figure of what ambiguity costs: contrasts by data set and stratum."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.analysis.strata import ALL
from vrag_kit.papers.mrag_suite.ambiguity_answers import LESS_CLEAR, REWRITTEN_MINUS_ORIGINAL
from vrag_kit.plotting.panels import forest_plot


def ambiguity_figure(contrasts: pd.DataFrame) -> Figure:
    """Draws `to_percent(ambiguity_contrasts(…))` of both sources of evidence, by stratum; all
    questions of a data set only where it has no strata. The title counts intervals on either side
    of 0.
    """
    strata = contrasts.groupby("dataset")["stratum"].transform("nunique")
    drawn = contrasts[(contrasts["stratum"] != ALL) | (strata == 1)]
    drawn = drawn.assign(part=drawn["dataset"] + ", " + drawn["stratum"])
    cost = drawn[drawn["contrast"] == LESS_CLEAR]
    gain = drawn[drawn["contrast"] == REWRITTEN_MINUS_ORIGINAL]
    title = (
        f"ambiguous questions score lower than clear ones in {(cost['ci_high'] < 0).sum()} of"
        f" {len(cost)} comparisons, rewritten ones higher than their originals in"
        f" {(gain['ci_low'] > 0).sum()} of {len(gain)}"
    )
    return forest_plot(
        drawn,
        rows=["part", "contrast"],
        xlabel="Difference in the data set's own metric (percentage points)",
        color="evidence_source",
        style="model",
        names={"retrieved": "retrieved evidence", "gold": "gold evidence"},
        title=title,
        caption="The intervals are not corrected for their number.",
    )
