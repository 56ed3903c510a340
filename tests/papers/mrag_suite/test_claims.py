"""Claim metrics of the paper: its equations as printed, and what its figures and tables count."""

from __future__ import annotations

import numpy as np
import pandas as pd

from vrag_kit.papers import mrag_suite as paper
from vrag_kit.papers import published


def test_the_definitions_have_the_published_names() -> None:
    names = set(paper.claims.definitions_table().index.get_level_values("name"))
    assert set(published("mrag_suite", 4)["metric"]) <= names
    # the paper defines none of these
    assert set(paper.claims.PUBLISHED) - names == {"recall", "precision", "f1"}


def test_intervals_are_counted_that_contain_the_true_mean() -> None:
    rows = [("checker", 40.0, 9.0), ("corrected", 55.0, 20.0), ("true", 60.0, 5.0)]
    rows.append(("corrected", 100.0, np.nan))  # without an interval: not counted, nor drawn
    means = pd.DataFrame(rows, columns=["label_source", "value", "half"])
    means = means.assign(dataset="WebQA", model="small", setting="gt_only", n=20)
    means["measure"] = "hallucination (RAGChecker)"
    low, high = means["value"] - means["half"], means["value"] + means["half"]
    means = means.assign(ci_low=low, ci_high=high)
    assert paper.figures.count_contained(means, "true") == "checker 0 of 1, corrected 1 of 1"
    figure = paper.figures.claim_plot(means, rows="dataset", color="label_source")
    drawn = [line.get_xdata()[0] for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert sorted(drawn) == [40, 55, 60]
