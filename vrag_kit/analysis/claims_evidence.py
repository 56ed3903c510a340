"""MM-RAGChecker's metrics of one answer, under names that say what they count.

What the paper prints (equations 1 to 11) is computed from one sheet of verdicts; two of
its equations are 0 by definition, and stand here as what they could have meant. A
claim (an item) with an unparsed verdict leaves every metric that needs this verdict,
whatever its other verdicts say: it would otherwise be known only where it is entailed.

Where verdicts are lost at random, the share of the claims that are left is an unbiased
share of all, given that one is left. An answer of which none is left has no value. So a
mean over answers leans to those with more claims and fewer items, and that of
cross_modal_agreement to those with more entailed claims.
"""

from __future__ import annotations

from vrag_kit.analysis.claims import MODALITIES, ClaimSheet, Label, Row
from vrag_kit.analysis.claims_shares import NOTHING, Share, Truth, gap, is_, share, some_entails
from vrag_kit.judging.claims import Relation

SHARES_OF_CLAIMS = {
    "neutral_share": Relation.NEUTRAL,
    "entailed_share": Relation.ENTAILMENT,
    "contradicted_share": Relation.CONTRADICTION,
}
"""Equation 1, equation 2, and the rest: together they are 1."""


def evidence_metrics(sheet: ClaimSheet) -> dict[tuple[str, str], Share]:
    """(metric, modality) → value; modality is "all", "image" or "text".

    neutral_share, entailed_share, contradicted_share: of claims by their label, which is
    ENTAILMENT where an item entails the claim, else CONTRADICTION where one contradicts
    it, else NEUTRAL; conflicted_share: of claims that one item entails and another
    contradicts. NaN without claims or items.

    answer_claim_recall: gold claims that the answer entails (NaN without gold claims).
    evidence_used: items that entail some claim, all / image / text (NaN without such
    items; without claims 0), and evidence_used_gap, image less text. claim_recall: gold
    claims that some item entails, all / image / text (NaN without gold claims or such
    items), and claim_recall_gap.

    cross_modal_agreement: of the claims that a picture or a text entails, those that both
    do (NaN without a modality or such a claim). error_support, image / text: of the
    claims that no accepted answer entails, those that an item of the modality does (NaN
    without such a claim or item).

    MM-RAGChecker, section 3.4: equations 1 to 9, and 10 and 11 as they may be meant.
    """
    rows = sheet.on_claims if sheet.items else ()
    labels = [label_of(row) for row in rows]
    found: dict[tuple[str, str], Share] = {}
    for name, relation in SHARES_OF_CLAIMS.items():
        found[name, "all"] = share([is_(relation, label) for label in labels])
    found["conflicted_share", "all"] = share([_conflicted(row) for row in rows])
    recalled = [is_(Relation.ENTAILMENT, label) for label in sheet.recalled]
    found["answer_claim_recall", "all"] = share(recalled)
    for name, metric in (("evidence_used", _used), ("claim_recall", _recall)):
        for modality in ("all", *MODALITIES):
            found[name, modality] = metric(sheet, sheet.shown(modality))
        found[f"{name}_gap", "all"] = gap(found[name, "image"], found[name, "text"])
    found["cross_modal_agreement", "all"] = _agreement(sheet)
    for modality in MODALITIES:
        found["error_support", modality] = _error_support(sheet, sheet.shown(modality))
    return found


def label_of(row: Row) -> Label:
    """A claim's label, from what each item says about it; None where any verdict is
    unparsed.
    """
    if None in row:
        return None
    if Relation.ENTAILMENT in row:
        return Relation.ENTAILMENT
    return Relation.CONTRADICTION if Relation.CONTRADICTION in row else Relation.NEUTRAL


def _conflicted(row: Row) -> Truth:
    return None if None in row else {Relation.ENTAILMENT, Relation.CONTRADICTION} <= set(row)


def _used(sheet: ClaimSheet, places: tuple[int, ...]) -> Share:
    columns = [tuple(row[place] for row in sheet.on_claims) for place in places]
    return share([some_entails(column, range(len(column))) for column in columns])


def _recall(sheet: ClaimSheet, places: tuple[int, ...]) -> Share:
    if not places:
        return NOTHING
    return share([some_entails(row, places) for row in sheet.on_gold])


def _agreement(sheet: ClaimSheet) -> Share:
    """Equation 9: Σ both / Σ either."""
    pictures, texts = (sheet.shown(modality) for modality in MODALITIES)
    if not pictures or not texts:
        return NOTHING
    both: list[Truth] = []
    unknown = 0
    for row in sheet.on_claims:
        by_picture, by_text = some_entails(row, pictures), some_entails(row, texts)
        if by_picture is None or by_text is None:
            unknown += 1
        elif by_picture or by_text:
            both.append(by_picture and by_text)
    found = share(both)
    return Share(found.value, found.n, unknown)


def _error_support(sheet: ClaimSheet, places: tuple[int, ...]) -> Share:
    """What equations 10 and 11 may mean."""
    if not places:
        return NOTHING
    supported: list[Truth] = []
    unknown = 0
    for label, row in zip(sheet.accepted, sheet.on_claims, strict=True):
        right = is_(Relation.ENTAILMENT, label)
        if right is None:
            unknown += 1
        elif not right:
            supported.append(some_entails(row, places))
    found = share(supported)
    return Share(found.value, found.n, found.unknown + unknown)
