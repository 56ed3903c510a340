"""RAGChecker's and MM-RAGChecker's metrics of one answer: shares of claims and items by verdict.
Unknown verdicts are left out and counted, in both families.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

import numpy as np

from vrag_kit.claims.verdicts import MODALITIES, VERDICT_SCORES, ClaimVerdicts, EntailmentLabel

ENTAILS = VERDICT_SCORES[EntailmentLabel.ENTAILMENT]


class MetricValue(NamedTuple):
    """The value of a metric for one answer."""

    value: float
    """In [0, 1], a difference of two in [−1, 1]; NaN where it is undefined."""
    unknown: int = 0
    """Claims or items left out because a verdict on them is missing."""


def has_label(verdicts: np.ndarray, label: EntailmentLabel) -> np.ndarray:
    """Whether each verdict has this label: 1, 0, or NaN where it is unknown."""
    known = verdicts == VERDICT_SCORES[label]
    return np.where(np.isnan(verdicts), np.nan, known)


def any_entails(verdicts: np.ndarray, axis: int) -> np.ndarray:
    """Whether one of the verdicts along an axis is ENTAILMENT: 1 or 0; NaN where any of them is
    unknown, whatever the others are. Calling it known where another one entails would select on the
    outcome.
    """
    return has_label(verdicts.max(axis=axis, initial=-1), EntailmentLabel.ENTAILMENT)


def combined_labels(verdicts: np.ndarray) -> np.ndarray:
    """A claim's verdict, combined from those of items (p > 0). Shape [n, p] → [n]: ENTAILMENT where
    an item entails the claim, else CONTRADICTION where one contradicts it, else NEUTRAL; NaN where
    any verdict is unknown.
    """
    entailed = verdicts.max(axis=1, initial=-1) == ENTAILS
    return np.where(entailed, ENTAILS, verdicts.min(axis=1, initial=1))


def share(truths: np.ndarray) -> MetricValue:
    """The share of true values (1) among the known ones; NaN without any."""
    known = truths[~np.isnan(truths)]
    value = float(known.mean()) if len(known) else np.nan
    return MetricValue(value, len(truths) - len(known))


SHARES_OF_CLAIMS = {
    "neutral_share": EntailmentLabel.NEUTRAL,
    "entailed_share": EntailmentLabel.ENTAILMENT,
    "contradicted_share": EntailmentLabel.CONTRADICTION,
}
"""Equation 1, equation 2, and the rest: together they are 1."""
_UNDEFINED = MetricValue(np.nan)


def evidence_metrics(sheet: ClaimVerdicts) -> dict[tuple[str, str], MetricValue]:
    """Computes MM-RAGChecker's metrics: (metric, modality) → value, modality "all", "image" or
    "text".

    neutral_share, entailed_share, contradicted_share: of claims by their label, which is
    ENTAILMENT where an item entails the claim, else CONTRADICTION where one contradicts
    it, else NEUTRAL; conflicted_share: of claims that one item entails and another
    contradicts. NaN without claims or items.

    answer_claim_recall: gold claims that the answer entails (NaN without gold claims).
    evidence_utilization: items that entail some claim, all / image / text (NaN without such items;
    without claims 0), and evidence_utilization_gap, image − text. claim_recall: gold claims that
    some item entails, all / image / text (NaN without gold claims or such items), and
    claim_recall_gap.

    cross_modal_agreement: of the claims that an image or a text entails, those that both do (NaN
    without a modality or such a claim). error_support, image / text: of the claims that no accepted
    answer entails, those that an item of the modality does (NaN without such a claim or item).

    MM-RAGChecker, section 3.4: equations 1 to 9, and 10 and 11 as they may be meant.
    """
    rows = sheet.on_claims if sheet.items else sheet.on_claims[:0]
    labels = combined_labels(rows)
    found: dict[tuple[str, str], MetricValue] = {}
    for name, label in SHARES_OF_CLAIMS.items():
        found[name, "all"] = share(has_label(labels, label))
    contradicts = has_label(rows.min(axis=1, initial=1), EntailmentLabel.CONTRADICTION)
    found["conflicted_share", "all"] = share(any_entails(rows, axis=1) * contradicts)
    recalled = has_label(sheet.recalled, EntailmentLabel.ENTAILMENT)
    found["answer_claim_recall", "all"] = share(recalled)
    for name, metric in (("evidence_utilization", _utilization), ("claim_recall", _recall)):
        for modality in ("all", *MODALITIES):
            found[name, modality] = metric(sheet, sheet.is_of(modality))
        image, text = (found[name, modality] for modality in MODALITIES)
        gap = MetricValue(image.value - text.value, image.unknown + text.unknown)
        found[f"{name}_gap", "all"] = gap
    found["cross_modal_agreement", "all"] = _agreement(sheet)
    for modality in MODALITIES:
        found["error_support", modality] = _error_support(sheet, sheet.is_of(modality))
    return found


def _utilization(sheet: ClaimVerdicts, items: np.ndarray) -> MetricValue:
    return share(any_entails(sheet.on_claims[:, items], axis=0))


def _recall(sheet: ClaimVerdicts, items: np.ndarray) -> MetricValue:
    recalled = share(any_entails(sheet.on_gold[:, items], axis=1))
    return recalled if items.any() else _UNDEFINED


def _agreement(sheet: ClaimVerdicts) -> MetricValue:
    """Equation 9: Σ both / Σ either."""
    images, texts = (sheet.is_of(modality) for modality in MODALITIES)
    if not (images.any() and texts.any()):
        return _UNDEFINED
    by_image = any_entails(sheet.on_claims[:, images], axis=1)
    by_text = any_entails(sheet.on_claims[:, texts], axis=1)
    return share((by_image * by_text)[by_image + by_text != 0])


def _error_support(sheet: ClaimVerdicts, items: np.ndarray) -> MetricValue:
    """What equations 10 and 11 may mean."""
    right = has_label(sheet.accepted, EntailmentLabel.ENTAILMENT)
    supported = any_entails(sheet.on_claims[:, items], axis=1)
    found = share(np.where(np.isnan(right), np.nan, supported)[right != 1])
    return found if items.any() else _UNDEFINED


GROUPS: dict[str, dict[str, tuple[str, ...]]] = {
    "overall_metrics": {
        "precision": ("accepted",),
        "recall": ("recalled",),
        "f1": ("accepted", "recalled"),
    },
    "retriever_metrics": {
        "claim_recall": ("on_gold",),
        "context_precision": ("on_gold",),
    },
    "generator_metrics": {
        "context_utilization": ("on_gold", "recalled"),
        "noise_sensitivity_in_relevant": ("accepted", "on_claims", "on_gold"),
        "noise_sensitivity_in_irrelevant": ("accepted", "on_claims", "on_gold"),
        "hallucination": ("accepted", "on_claims"),
        "self_knowledge": ("accepted", "on_claims"),
        "faithfulness": ("on_claims",),
    },
}
"""RAGChecker's metrics by group, each with the parts of the sheet's verdicts that it needs."""
NEEDS = dict(chain.from_iterable(metrics.items() for metrics in GROUPS.values()))
EMPTY = {"nan": np.nan, "zero": 0.0}


def count_missing(sheet: ClaimVerdicts, metric: str) -> int:
    """The number of missing verdicts that one of RAGChecker's metrics needs."""
    return sum(int(np.isnan(getattr(sheet, part)).sum()) for part in NEEDS[metric])


def ragchecker_metrics(sheet: ClaimVerdicts, *, empty: str = "nan") -> dict[str, float]:
    """Computes RAGChecker's metrics in [0, 1], in the order overall, retriever, generator.

    precision: claims that the accepted answers entail; recall: gold claims that the
    answer entails; f1 of both. claim_recall: gold claims that some item entails;
    context_precision: items that entail some gold claim (relevant ones).
    context_utilization: of the gold claims that some item entails, those that the answer
    entails. faithfulness: claims that some item entails. Of the claims that the accepted
    answers do not entail: hallucination, that no item entails either;
    noise_sensitivity_in_relevant, that a relevant item entails; …_in_irrelevant, that
    only irrelevant items do. self_knowledge: claims that the accepted answers entail and
    no item does.

    What would be divided by 0 (no claim, no gold claim, no item) is NaN, or 0 with
    `empty="zero"` as in RAGChecker, where an answer without claims has the best
    hallucination. Where a verdict is missing that a metric needs, it is NaN in either case.
    """
    found = {}
    for metric, value in _ragchecker_values(sheet).items():
        is_empty = any(getattr(sheet, part).size == 0 for part in NEEDS[metric])
        if count_missing(sheet, metric) and not is_empty:
            found[metric] = np.nan
        else:
            found[metric] = EMPTY[empty] if is_empty or np.isnan(value) else value
    return found


def _ragchecker_values(sheet: ClaimVerdicts) -> dict[str, float]:
    """Every metric, with missing verdicts as if they entailed nothing; NaN for a division by 0."""
    right = sheet.accepted == ENTAILS
    recalled = sheet.recalled == ENTAILS
    by_item = sheet.on_claims == ENTAILS
    gold_by_item = sheet.on_gold == ENTAILS
    relevant = gold_by_item.any(axis=0)
    retrieved = gold_by_item.any(axis=1)
    grounded = by_item.any(axis=1)
    by_relevant = by_item[:, relevant].any(axis=1)
    precision, recall = _mean(right), _mean(recalled)
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / (precision + recall) if precision * recall else 0.0,
        "claim_recall": _mean(retrieved),
        "context_precision": _mean(relevant),
        "context_utilization": _mean(recalled[retrieved]),
        "noise_sensitivity_in_relevant": _mean(~right & by_relevant),
        "noise_sensitivity_in_irrelevant": _mean(~right & grounded & ~by_relevant),
        "hallucination": _mean(~right & ~grounded),
        "self_knowledge": _mean(right & ~grounded),
        "faithfulness": _mean(grounded),
    }


def _mean(truths: np.ndarray) -> float:
    return float(truths.mean()) if len(truths) else np.nan
