"""Figure of the questions that the filter keeps, and those dropped for each reason."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.papers.mrag_suite.filter import EASY, KNOWN, VERBATIM
from vrag_kit.plotting import outcome_bars

_PARTS = {
    "n_kept": "kept",
    KNOWN: "dropped, step 1: correct without evidence",
    VERBATIM: "dropped, step 1: answer in the question",
    EASY: "dropped, step 2: easiest of its domain",
}


def kept_figure(shares: pd.DataFrame) -> Figure:
    """Draws a bar per data set of all its questions (percent), split into kept and dropped by
    reason; the caption has the shares that the paper keeps. `shares` comes from `kept_shares`.
    """
    parts = shares.melt(["dataset", "n"], list(_PARTS), var_name="metric")
    parts["value"] = 100 * parts["value"] / parts["n"]
    kept, known = shares["share_kept"], shares.dropna(subset="published")
    pairs = zip(known["dataset"], known["published"], strict=True)
    theirs = ", ".join(f"{share:.0f} % of {name}" for name, share in pairs)
    return outcome_bars(
        parts,
        rows="dataset",
        outcomes=_PARTS,
        xlabel="Questions (%)",
        unit="questions",
        title=f"The filter keeps {kept.min():.0f} to {kept.max():.0f} % of a data set's questions",
        caption=f"Reported (Table 1), by another filter: {theirs}." if theirs else "",
    )
