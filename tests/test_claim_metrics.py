"""Claim diagnostics: both families of metrics from one sheet of verdicts, against hand
calculation (the five cases of the specification) and slow, obvious definitions.
"""

from __future__ import annotations

import math

import pytest
from claim_sheets import sheet, sheets, slow_evidence, slow_ragchecker
from hypothesis import given

from vrag_kit.claims import ClaimVerdicts, evidence_metrics, ragchecker_metrics
from vrag_kit.errors import VragError

W1 = sheet(
    "iitt",
    ["ENNN", "ENEN", "NNNC", "NNNN", "NENC", "NNNN"],
    ["ENNN", "NNEN", "NNNE", "NNNN"],
    "110101",
    "1100",
)
W2 = sheet("it", [], ["EN", "NN"], "", "10")
W3 = sheet("", ["", ""], ["", ""], "10", "10")
W4 = sheet("ii", ["EN", "NN"], [], "00", "")
W5 = sheet("it", ["?E", "?N"], ["EN"], "10", "1")
W6 = sheet("it", ["?E", "NE", "NN", "E?"], ["E?", "NE"], "1000", "11")
NAN = math.nan


def shares(of: ClaimVerdicts) -> dict[tuple[str, str], float]:
    return {key: found.value for key, found in evidence_metrics(of).items()}


def same(found: dict, expected: dict) -> None:
    assert {key: found[key] for key in expected} == pytest.approx(expected, nan_ok=True)


def test_w1_in_both_families() -> None:
    same(
        shares(W1),
        {
            ("neutral_share", "all"): 1 / 3,
            ("entailed_share", "all"): 1 / 2,
            ("contradicted_share", "all"): 1 / 6,
            ("conflicted_share", "all"): 1 / 6,
            ("answer_claim_recall", "all"): 1 / 2,
            ("evidence_utilization", "all"): 3 / 4,
            ("evidence_utilization", "image"): 1,
            ("evidence_utilization", "text"): 1 / 2,
            ("evidence_utilization_gap", "all"): 1 / 2,
            ("claim_recall", "all"): 3 / 4,
            ("claim_recall", "image"): 1 / 4,
            ("claim_recall", "text"): 1 / 2,
            ("claim_recall_gap", "all"): -1 / 4,
            ("cross_modal_agreement", "all"): 1 / 3,
            ("error_support", "image"): 1 / 2,
            ("error_support", "text"): 0,
        },
    )
    for empty in ("nan", "zero"):
        assert ragchecker_metrics(W1, empty=empty) == pytest.approx(
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


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (
            W2,
            {
                "recall": 0.5,
                "claim_recall": 0.5,
                "context_precision": 0.5,
                "context_utilization": 1,
            },
        ),
        (W3, {"precision": 0.5, "recall": 0.5, "f1": 0.5}),
        (W4, {"precision": 0, "hallucination": 0.5, "self_knowledge": 0, "faithfulness": 0.5}),
    ],
    ids=["w2, no claim", "w3, no item", "w4, no gold claim"],
)
def test_empty_cases_are_zero_in_ragchecker_and_undefined_here(
    of: ClaimVerdicts, expected: dict[str, float]
) -> None:
    theirs = ragchecker_metrics(of, empty="zero")
    assert theirs == pytest.approx(dict.fromkeys(theirs, 0.0) | expected)
    ours = ragchecker_metrics(of)
    assert ours == pytest.approx(dict.fromkeys(theirs, NAN) | expected, nan_ok=True)


def test_w2_to_w4_in_the_papers_family() -> None:
    gone = ["neutral_share", "entailed_share", "contradicted_share", "conflicted_share"]
    nothing = {(name, "all"): NAN for name in [*gone, "cross_modal_agreement"]}
    support = {("error_support", modality): NAN for modality in ("image", "text")}
    used = {("evidence_utilization", modality): 0 for modality in ("all", "image", "text")}
    same(shares(W2), {**nothing, **support, **used, ("claim_recall_gap", "all"): 0.5})
    recalled = {("answer_claim_recall", "all"): 0.5}
    same(shares(W3), dict.fromkeys(shares(W3), NAN) | recalled)
    known = [("neutral_share", "all"), ("entailed_share", "all"), ("evidence_utilization", "all")]
    known += [("evidence_utilization", "image"), ("error_support", "image")]
    unknown = [("evidence_utilization", "text"), ("error_support", "text"), ("claim_recall", "all")]
    unknown += [("answer_claim_recall", "all"), ("claim_recall_gap", "all")]
    same(shares(W4), dict.fromkeys(known, 0.5) | dict.fromkeys(unknown, NAN))


def test_w5_an_unreadable_verdict_is_unknown_and_never_neutral() -> None:
    entailed = evidence_metrics(W5)["entailed_share", "all"]
    assert math.isnan(entailed.value)
    assert entailed.unknown == 2
    same(
        shares(W5),
        {
            ("entailed_share", "all"): NAN,
            ("neutral_share", "all"): NAN,
            ("evidence_utilization", "image"): NAN,
            ("evidence_utilization", "text"): 1,
            ("error_support", "image"): NAN,
            ("error_support", "text"): 0,
        },
    )
    needs_none = {
        "precision": 0.5,
        "recall": 1,
        "f1": 2 / 3,
        "claim_recall": 1,
        "context_precision": 0.5,
        "context_utilization": 1,
    }
    for empty in ("nan", "zero"):  # what needs the missing verdicts has no value in either
        theirs = ragchecker_metrics(W5, empty=empty)
        assert theirs == pytest.approx(dict.fromkeys(theirs, NAN) | needs_none, nan_ok=True)


def test_w6_an_unparsed_verdict_drops_its_claim_though_another_item_entails_it() -> None:
    found = evidence_metrics(W6)
    entailed = found["entailed_share", "all"]
    assert entailed == (1 / 2, 2)
    recall = found["claim_recall", "all"]
    assert recall == (1, 1)
    used = found["evidence_utilization", "all"]  # of either item one verdict is missing
    assert used.unknown == 2
    same(
        shares(W6),
        {("claim_recall", "image"): 1 / 2, ("claim_recall", "text"): 1}
        | {("cross_modal_agreement", "all"): 0, ("error_support", "image"): 1 / 3},
    )


@given(sheets())
def test_random_sheets_agree_with_the_definitions_taken_literally(of: ClaimVerdicts) -> None:
    for empty, nothing in (("nan", NAN), ("zero", 0.0)):
        found = ragchecker_metrics(of, empty=empty)
        assert found == pytest.approx(slow_ragchecker(of, nothing), nan_ok=True)
    expected = slow_evidence(of)
    assert shares(of).keys() == expected.keys()
    assert shares(of) == pytest.approx(expected, nan_ok=True)


@given(sheets("ENC"))
def test_what_follows_from_the_definitions_holds_for_every_sheet(of: ClaimVerdicts) -> None:
    theirs = ragchecker_metrics(of)
    parts = ("faithfulness", "hallucination", "self_knowledge")
    if of.claims and of.items:
        assert sum(theirs[part] for part in parts) == pytest.approx(1)
        ours = ("neutral_share", "entailed_share", "contradicted_share")
        assert sum(shares(of)[part, "all"] for part in ours) == pytest.approx(1)
        assert shares(of)["entailed_share", "all"] == pytest.approx(theirs["faithfulness"])
    if of.claims and of.items and of.gold_claims:
        noise = [theirs[f"noise_sensitivity_in_{kind}relevant"] for kind in ("", "ir")]
        assert sum(noise) + theirs["hallucination"] == pytest.approx(1 - theirs["precision"])


@given(sheets())
def test_every_value_is_a_share_and_what_is_left_out_is_counted(of: ClaimVerdicts) -> None:
    for (metric, _), found in evidence_metrics(of).items():
        lowest = -1 if metric.endswith("gap") else 0
        assert math.isnan(found.value) or lowest <= found.value <= 1
        assert found.unknown == 0 or of.n_missing > 0


def test_other_names_of_empty_are_refused() -> None:
    with pytest.raises(VragError, match="empty is 'none'; expected one of nan, zero"):
        ragchecker_metrics(W1, empty="none")
