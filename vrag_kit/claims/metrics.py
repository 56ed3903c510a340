"""Shares of claims and items by verdict. Unknown verdicts are left out and counted, in both
families of metrics.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vrag_kit.claims.verdicts import MODALITIES, ClaimVerdicts, EntailmentLabel, Label, VerdictRow
from vrag_kit.errors import VragError

Truth = bool | None
"""Whether something holds; None where that is unknown."""


@dataclass(frozen=True, slots=True)
class MetricValue:
    """The value of a metric for one answer."""

    value: float
    """In [0, 1], a difference of two in [−1, 1]; NaN where it is undefined."""
    n: int = 0
    """Claims or items that it is a share of."""
    unknown: int = 0
    """Claims or items left out because a verdict on them is missing."""


NOTHING = MetricValue(math.nan)


def has_label(relation: EntailmentLabel, label: Label) -> Truth:
    """Whether a verdict has this label; None where it is unknown."""
    return None if label is None else label is relation


def any_true(truths: Iterable[Truth]) -> Truth:
    """Whether one of them is true; unknown where any of them is, whatever the others are. Calling
    it known where another one is true would select on the outcome.
    """
    found = set(truths)
    return None if None in found else True in found


def any_entails(row: VerdictRow, places: Sequence[int]) -> Truth:
    """Whether one of the labels at these positions is ENTAILMENT."""
    return any_true(has_label(EntailmentLabel.ENTAILMENT, row[place]) for place in places)


def share(truths: Sequence[Truth]) -> MetricValue:
    """The share of true values among the known ones; NaN without any."""
    known = [truth for truth in truths if truth is not None]
    unknown = len(truths) - len(known)
    if not known:
        return MetricValue(math.nan, 0, unknown)
    return MetricValue(sum(known) / len(known), len(known), unknown)


def difference(first: MetricValue, second: MetricValue) -> MetricValue:
    """The first minus the second; NaN where either is missing."""
    unknown = first.unknown + second.unknown
    return MetricValue(first.value - second.value, first.n + second.n, unknown)


SHARES_OF_CLAIMS = {
    "neutral_share": EntailmentLabel.NEUTRAL,
    "entailed_share": EntailmentLabel.ENTAILMENT,
    "contradicted_share": EntailmentLabel.CONTRADICTION,
}
"""Equation 1, equation 2, and the rest: together they are 1."""


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
    rows = sheet.on_claims if sheet.items else ()
    labels = [combined_label(row) for row in rows]
    found: dict[tuple[str, str], MetricValue] = {}
    for name, relation in SHARES_OF_CLAIMS.items():
        found[name, "all"] = share([has_label(relation, label) for label in labels])
    found["conflicted_share", "all"] = share([_conflicted(row) for row in rows])
    recalled = [has_label(EntailmentLabel.ENTAILMENT, label) for label in sheet.recalled]
    found["answer_claim_recall", "all"] = share(recalled)
    for name, metric in (("evidence_utilization", _used), ("claim_recall", _recall)):
        for modality in ("all", *MODALITIES):
            found[name, modality] = metric(sheet, sheet.item_positions(modality))
        found[f"{name}_gap", "all"] = difference(found[name, "image"], found[name, "text"])
    found["cross_modal_agreement", "all"] = _agreement(sheet)
    for modality in MODALITIES:
        found["error_support", modality] = _error_support(sheet, sheet.item_positions(modality))
    return found


def combined_label(row: VerdictRow) -> Label:
    """A claim's label, combined from the verdicts of all items; None where any is unparsed."""
    if None in row:
        return None
    if EntailmentLabel.ENTAILMENT in row:
        return EntailmentLabel.ENTAILMENT
    return (
        EntailmentLabel.CONTRADICTION
        if EntailmentLabel.CONTRADICTION in row
        else EntailmentLabel.NEUTRAL
    )


def _conflicted(row: VerdictRow) -> Truth:
    return (
        None
        if None in row
        else {EntailmentLabel.ENTAILMENT, EntailmentLabel.CONTRADICTION} <= set(row)
    )


def _used(sheet: ClaimVerdicts, places: tuple[int, ...]) -> MetricValue:
    columns = [tuple(row[place] for row in sheet.on_claims) for place in places]
    return share([any_entails(column, range(len(column))) for column in columns])


def _recall(sheet: ClaimVerdicts, places: tuple[int, ...]) -> MetricValue:
    if not places:
        return NOTHING
    return share([any_entails(row, places) for row in sheet.on_gold])


def _agreement(sheet: ClaimVerdicts) -> MetricValue:
    """Equation 9: Σ both / Σ either."""
    pictures, texts = (sheet.item_positions(modality) for modality in MODALITIES)
    if not pictures or not texts:
        return NOTHING
    both: list[Truth] = []
    unknown = 0
    for row in sheet.on_claims:
        by_picture, by_text = any_entails(row, pictures), any_entails(row, texts)
        if by_picture is None or by_text is None:
            unknown += 1
        elif by_picture or by_text:
            both.append(by_picture and by_text)
    found = share(both)
    return MetricValue(found.value, found.n, unknown)


def _error_support(sheet: ClaimVerdicts, places: tuple[int, ...]) -> MetricValue:
    """What equations 10 and 11 may mean."""
    if not places:
        return NOTHING
    supported: list[Truth] = []
    unknown = 0
    for label, row in zip(sheet.accepted, sheet.on_claims, strict=True):
        right = has_label(EntailmentLabel.ENTAILMENT, label)
        if right is None:
            unknown += 1
        elif not right:
            supported.append(any_entails(row, places))
    found = share(supported)
    return MetricValue(found.value, found.n, found.unknown + unknown)


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
