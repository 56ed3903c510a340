"""RAGChecker's metrics of one answer, as its version 0.1.9 computes them.

Ru et al. (2024), "RAGChecker: A Fine-grained Framework for Diagnosing
Retrieval-Augmented Generation".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from vrag_kit.analysis.claims import ClaimVerdicts, VerdictRow
from vrag_kit.errors import VragError
from vrag_kit.judging.claims import EntailmentLabel

OVERALL = ("precision", "recall", "f1")
RETRIEVER = ("claim_recall", "context_precision")
GENERATOR = (
    "context_utilization",
    "noise_sensitivity_in_relevant",
    "noise_sensitivity_in_irrelevant",
    "hallucination",
    "self_knowledge",
    "faithfulness",
)
NEEDS = {
    "precision": ("accepted",),
    "recall": ("recalled",),
    "f1": ("accepted", "recalled"),
    "claim_recall": ("on_gold",),
    "context_precision": ("on_gold",),
    "context_utilization": ("on_gold", "recalled"),
    "noise_sensitivity_in_relevant": ("accepted", "on_claims", "on_gold"),
    "noise_sensitivity_in_irrelevant": ("accepted", "on_claims", "on_gold"),
    "hallucination": ("accepted", "on_claims"),
    "self_knowledge": ("accepted", "on_claims"),
    "faithfulness": ("on_claims",),
}
"""The matrices of the sheet that each metric is computed from."""
EMPTY = ("nan", "zero")


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
    hallucination. Where a verdict of a matrix is missing that a metric needs, it is NaN
    in either case. Raises `VragError` for another `empty`.
    """
    if empty not in EMPTY:
        raise VragError(f"empty is {empty!r}; expected one of {', '.join(EMPTY)}.")
    nothing = math.nan if empty == "nan" else 0.0
    values = _values(_Facts.of(sheet))
    found = {}
    for metric in (*OVERALL, *RETRIEVER, *GENERATOR):
        if _empty(sheet, metric):
            found[metric] = nothing
        elif any(sheet.n_missing(matrix) for matrix in NEEDS[metric]):
            found[metric] = math.nan
        else:
            found[metric] = nothing if math.isnan(values[metric]) else values[metric]
    return found


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is entailed, in the letters of the paper."""

    a: list[bool]  # the accepted answers entail claim i
    b: list[bool]  # the answer entails gold claim j
    c: list[bool]  # some item entails gold claim j
    f: list[bool]  # some item entails claim i
    r: list[bool]  # item d entails some gold claim: it is relevant
    g: list[bool]  # some relevant item entails claim i
    w: list[bool]  # some irrelevant item entails claim i

    @classmethod
    def of(cls, sheet: ClaimVerdicts) -> _Facts:
        s = [_entailed(row) for row in sheet.on_claims]
        t = [_entailed(row) for row in sheet.on_gold]
        r = [any(row[place] for row in t) for place in range(len(sheet.items))]
        by_relevance = [list(zip(r, row, strict=True)) for row in s]
        return cls(
            a=_entailed(sheet.accepted),
            b=_entailed(sheet.recalled),
            c=[any(row) for row in t],
            f=[any(row) for row in s],
            r=r,
            g=[(True, True) in row for row in by_relevance],
            w=[(False, True) in row for row in by_relevance],
        )


def _values(facts: _Facts) -> dict[str, float]:
    """Every metric; NaN where there is nothing to divide by."""
    wrong = [not right for right in facts.a]
    unfounded = [not found for found in facts.f]
    only_irrelevant = _both(facts.w, [not good for good in facts.g])
    precision, recall = _mean(facts.a), _mean(facts.b)
    told = [told for told, there in zip(facts.b, facts.c, strict=True) if there]
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / (precision + recall) if precision * recall else 0.0,
        "claim_recall": _mean(facts.c),
        "context_precision": _mean(facts.r),
        "context_utilization": _mean(told),
        "noise_sensitivity_in_relevant": _mean(_both(wrong, facts.g)),
        "noise_sensitivity_in_irrelevant": _mean(_both(wrong, only_irrelevant)),
        "hallucination": _mean(_both(wrong, unfounded)),
        "self_knowledge": _mean(_both(facts.a, unfounded)),
        "faithfulness": _mean(facts.f),
    }


def _empty(sheet: ClaimVerdicts, metric: str) -> bool:
    """Whether there is nothing to divide by."""
    sizes = {
        "accepted": len(sheet.claims),
        "recalled": len(sheet.gold_claims),
        "on_claims": len(sheet.claims) * len(sheet.items),
        "on_gold": len(sheet.gold_claims) * len(sheet.items),
    }
    return any(sizes[matrix] == 0 for matrix in NEEDS[metric])


def _entailed(row: VerdictRow) -> list[bool]:
    return [label is EntailmentLabel.ENTAILMENT for label in row]


def _both(first: list[bool], second: list[bool]) -> list[bool]:
    return [one and other for one, other in zip(first, second, strict=True)]


def _mean(truths: list[bool]) -> float:
    return sum(truths) / len(truths) if truths else math.nan
