"""Figure of what ambiguity costs: contrasts by data set and stratum."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.papers.mrag_suite.ambiguity_answers import (
    CHECK,
    LESS_CLEAR,
    REWRITTEN_MINUS_ORIGINAL,
)
from vrag_kit.papers.mrag_suite.modes import strata_or_pooled
from vrag_kit.plotting.panels import forest_plot


def ambiguity_figure(contrasts: pd.DataFrame) -> Figure:
    """Draws `to_percent(ambiguity_contrasts(…))` of both sources of evidence, by stratum; all
    questions of a data set only where it has no strata. The title counts intervals on either side
    of 0.
    """
    drawn = strata_or_pooled(contrasts)
    drawn = drawn.assign(part=drawn["dataset"] + ", " + drawn["stratum"])
    drawn = drawn.replace({CHECK: "control: restored − clear"})
    cost = drawn[drawn["contrast"] == LESS_CLEAR]
    gain = drawn[drawn["contrast"] == REWRITTEN_MINUS_ORIGINAL]
    title = (
        f"ambiguity costs in {(cost['ci_high'] < 0).sum()} of {len(cost)} comparisons, rewriting"
        f" helps in {(gain['ci_low'] > 0).sum()} of {len(gain)} (intervals beyond 0)"
    )
    return forest_plot(
        drawn,
        rows=["contrast", "part"],
        xlabel="Difference in the data set's own metric (percentage points)",
        color="evidence_source",
        style="model",
        names={"retrieved": "retrieved evidence", "gold": "gold evidence"},
        unit="pairs",
        title=title,
        caption="The intervals are not corrected for their number. Restored: what was left out of"
        " ambiguous questions is put back; a difference of 0 is expected.",
    )
