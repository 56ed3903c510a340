"""MM-RAGChecker's metrics of one answer, under names that say what they count.

The published equations 1 to 11 are computed from one sheet of verdicts; two of them are 0 by
definition, and are computed as what they may mean. A claim (an item) with an unparsed verdict is
left out of every metric that needs it, whatever its other verdicts are: it would otherwise be known
only where it is entailed.

Where verdicts are missing at random, the share of the claims that are left is an unbiased share of
all, given that one is left. An answer of which none is left has no value. So a mean over answers
leans to those with more claims and fewer items, and that of cross_modal_agreement to those with
more entailed claims.
"""

from __future__ import annotations

from vrag_kit.analysis.claims import MODALITIES, ClaimVerdicts, Label, VerdictRow
from vrag_kit.analysis.claims_shares import (
    NOTHING,
    MetricValue,
    Truth,
    any_entails,
    difference,
    has_label,
    share,
)
from vrag_kit.judging.claims import EntailmentLabel

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
