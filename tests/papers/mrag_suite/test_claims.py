"""Claim metrics of the paper: its equations as printed, and what its figures and tables count."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from claim_sheets import sheets
from hypothesis import given, settings

from vrag_kit.claims import ClaimVerdicts, evidence_metrics
from vrag_kit.claims.metrics import any_entails, combined_labels, has_label, share
from vrag_kit.claims.verdicts import EntailmentLabel
from vrag_kit.papers import mrag_suite as paper
from vrag_kit.papers import published


def always_0(sheet: ClaimVerdicts) -> dict[str, float]:
    """The printed equations without a counterpart, word for word."""
    verdicts = sheet.on_claims if sheet.items else sheet.on_claims[:0]
    labels = combined_labels(verdicts)
    entailed = verdicts[has_label(labels, EntailmentLabel.ENTAILMENT) == 1]
    neutral = verdicts[has_label(labels, EntailmentLabel.NEUTRAL) == 1]
    recall = evidence_metrics(sheet)["answer_claim_recall", "all"].value
    return {
        "self_knowledge": share(1 - any_entails(entailed, axis=1)).value,
        "delta_cr": recall - recall,
        "v_hr": share(any_entails(neutral[:, sheet.is_of("image")], axis=1)).value,
        "d_hr": share(any_entails(neutral[:, sheet.is_of("text")], axis=1)).value,
    }


@pytest.mark.slow
@settings(deadline=None)
@given(sheets())
def test_what_the_table_calls_always_0_is_0_or_divides_by_0(of: ClaimVerdicts) -> None:
    told = paper.claims.definitions_table().reset_index("equation", drop=True)["what follows"]
    found = always_0(of)
    assert list(told.index[told.str.startswith("always 0")]) == list(found)
    assert all(value == 0 or math.isnan(value) for value in found.values())
    metrics = evidence_metrics(of)
    one, two = (metrics[name, "all"].value for name in ("neutral_share", "entailed_share"))
    assert math.isnan(one) or one + two <= 1 + 1e-12


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
