"""Agreement of annotators with one another and with the claim checker, and claim metrics by source
of the labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import pandas as pd

from vrag_kit.analysis.means import ARM
from vrag_kit.claims.by_modality import claim_means_by_modality, corrected_claims_by_modality
from vrag_kit.claims.human_labels import ClaimPair, ClaimPairSheet
from vrag_kit.claims.label_agreement import KIND_AND_LABELS, UNREADABLE, verdict_agreement
from vrag_kit.claims.verdicts import ClaimVerdicts, EntailmentLabel

CHECKER = "checker"
Labels = Mapping[ClaimPair, EntailmentLabel]


def labels_from_verdicts(
    sample: pd.DataFrame, *, sheets: str, column: str = "answer"
) -> dict[ClaimPair, EntailmentLabel]:
    """Collects the labels in the column `sheets` of `sample`, in the form of `read_claim_labels`.
    Missing verdicts have no label. `column` holds the texts of the answers.
    """
    found: dict[ClaimPair, EntailmentLabel] = {}
    for sheet, said in zip(sample[sheets], sample[column], strict=True):
        if isinstance(sheet, ClaimVerdicts):
            words = said if isinstance(said, str) else ""
            labels = sheet.verdicts if words else _but_recalled(sheet)
            pairs = zip(ClaimPairSheet.from_verdicts(sheet, words).things, labels, strict=True)
            found |= {thing: label for thing, label in pairs if label is not None}
    return found


def annotator_agreement(
    sample: pd.DataFrame,
    annotators: Mapping[str, Labels],
    *,
    column: str = "answer",
    seed: int = 0,
) -> pd.DataFrame:
    """Agreement of every two annotators, and of each with the checker, on the claims and items that
    both labelled: first, second, and the columns of `verdict_agreement`, evidence_kind "image",
    "text", "answer" and "all".

    `annotators` maps names to labels, as from `read_annotator_labels`; the checker is called
    "checker", and its verdicts are those of `sample` (group, sheet, `column`), each claim and item
    counted once. Where nothing has two labels, n is 0. Unparsed verdicts of the checker are in
    n_failed.
    """
    known = {CHECKER: labels_from_verdicts(sample, sheets="sheet", column=column), **annotators}
    things = _things(sample, column)
    rows = []
    for first, second in combinations([*annotators, CHECKER], 2):
        both = [
            (held.query_id, group, by, known[first][held].value, _name(known[second].get(held)))
            for held, (group, by) in things.items()
            if held in known[first] and (second == CHECKER or held in known[second])
        ]
        names = ["query_id", "group", *KIND_AND_LABELS]
        found = verdict_agreement(pd.DataFrame(both, columns=names), seed=seed)
        rows.append(found.assign(first=first, second=second))
    columns = ["first", "second", "evidence_kind", "metric", "value"]
    columns += ["ci_low", "ci_high", "n", "n_failed"]
    return pd.concat(rows, ignore_index=True)[columns] if rows else pd.DataFrame(columns=columns)


def compare_label_sources(
    checked: pd.DataFrame, pairs: pd.DataFrame, *, by: Sequence[str] = ARM
) -> pd.DataFrame:
    """Means of claim metrics by label_source: "checker", "corrected" and "true". The first are
    `claim_means_by_modality`; the second are corrected by the true labels in `pairs`
    (`corrected_claims_by_modality`, with n_labelled). The third, which the second estimate from
    `pairs` alone, exist where true labels of all answers are known (true_sheet in `checked`).
    """
    found = [claim_means_by_modality(checked, by=by).assign(label_source="checker")]
    found.append(
        corrected_claims_by_modality(checked, pairs, by=by).assign(label_source="corrected")
    )
    if checked["true_sheet"].notna().any():
        true = checked.assign(sheet=checked["true_sheet"])
        found.append(claim_means_by_modality(true, by=by).assign(label_source="true"))
    return pd.concat(found, ignore_index=True)


def _things(sample: pd.DataFrame, column: str) -> dict[ClaimPair, tuple[str, str]]:
    """What is labelled → its group and what it is held against."""
    found: dict[ClaimPair, tuple[str, str]] = {}
    rows = zip(sample["group"], sample["sheet"], sample[column], strict=True)
    for group, sheet, words in rows:
        if isinstance(sheet, ClaimVerdicts):
            kinds = {item.doc_id: item.modality for item in sheet.items}
            held = ClaimPairSheet.from_verdicts(sheet, words if isinstance(words, str) else "")
            found |= {thing: (group, kinds.get(thing.item, "answer")) for thing in held.things}
    return found


def _but_recalled(sheet: ClaimVerdicts) -> tuple[EntailmentLabel | None, ...]:
    """The verdicts of a silent answer, which recalls nothing whoever reads it."""
    before = len(sheet.accepted)
    return sheet.verdicts[:before] + sheet.verdicts[before + len(sheet.recalled) :]


def _name(label: EntailmentLabel | None) -> str:
    return UNREADABLE if label is None else label.value
