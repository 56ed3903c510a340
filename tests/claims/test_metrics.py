"""Claim metrics: both families from one sheet of verdicts, against slow, obvious definitions."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from claim_sheets import W1, W2, sheets, slow_evidence, slow_ragchecker
from hypothesis import given

from vrag_kit.claims import (
    ClaimVerdicts,
    claim_means_by_modality,
    evidence_metrics,
    ragchecker_metrics,
)

NAN = math.nan


def shares(of: ClaimVerdicts) -> dict[tuple[str, str], float]:
    return {key: found.value for key, found in evidence_metrics(of).items()}


def test_w1_in_both_families() -> None:
    """Worked by hand, as are those of RAGChecker below."""
    by_hand = {
        ("neutral_share", "all"): 1 / 3,
        ("entailed_share", "all"): 1 / 2,
        ("contradicted_share", "all"): 1 / 6,
        ("conflicted_share", "all"): 1 / 6,
        ("answer_claim_recall", "all"): 1 / 2,
        ("evidence_utilization", "image"): 1,
        ("evidence_utilization", "text"): 1 / 2,
        ("evidence_utilization_gap", "all"): 1 / 2,
        ("claim_recall", "all"): 3 / 4,
        ("claim_recall_gap", "all"): -1 / 4,
        ("cross_modal_agreement", "all"): 1 / 3,
        ("error_support", "image"): 1 / 2,
        ("error_support", "text"): 0,
    }
    found = shares(W1)
    assert {key: found[key] for key in by_hand} == pytest.approx(by_hand)
    assert ragchecker_metrics(W1) == pytest.approx(
        {
            "precision": 2 / 3,
            "recall": 1 / 2,
            "f1": 4 / 7,
            "claim_recall": 3 / 4,
            "context_precision": 3 / 4,
            "context_utilization": 2 / 3,
            "noise_sensitivity_in_relevant": 0,
            "noise_sensitivity_in_irrelevant": 1 / 6,
            "hallucination": 1 / 6,
            "self_knowledge": 1 / 3,
            "faithfulness": 1 / 2,
        }
    )


@given(sheets())
def test_random_sheets_agree_with_the_definitions_taken_literally(of: ClaimVerdicts) -> None:
    for empty, nothing in (("nan", NAN), ("zero", 0.0)):
        found = ragchecker_metrics(of, empty=empty)
        assert found == pytest.approx(slow_ragchecker(of, nothing), nan_ok=True)
    expected = slow_evidence(of)
    assert shares(of).keys() == expected.keys()
    assert shares(of) == pytest.approx(expected, nan_ok=True)


def test_ragcheckers_metrics_are_there_for_each_modality() -> None:
    table = pd.DataFrame({"model": "small", "query_id": list("abc"), "group": list("abc")})
    means = claim_means_by_modality(table.assign(sheet=[W1, W2, None]), by=["model"])
    found = means.set_index(["family", "metric", "modality"])["value"]
    for modality in ("image", "text"):
        slow = [slow_ragchecker(each.restrict_to_modality(modality), math.nan) for each in (W1, W2)]
        for metric in ("claim_recall", "context_precision", "hallucination", "faithfulness"):
            known = [each[metric] for each in slow if not math.isnan(each[metric])]
            mine = found["ragchecker", metric, modality]
            assert mine == pytest.approx(sum(known) / len(known))
    # by hand, W1's claims: an image entails the first, second and fifth
    assert found["mm_ragchecker", "entailed_share", "image"] == pytest.approx(1 / 2)
    assert found["mm_ragchecker", "entailed_share", "text"] == pytest.approx(1 / 6)
    assert not means.duplicated(["family", "metric", "modality"]).any()
    assert ("ragchecker", "precision", "image") not in found.index  # it looks at no evidence
