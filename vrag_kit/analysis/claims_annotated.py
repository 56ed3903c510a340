"""How far people agree with one another, and with a checker, about claims; and what their
labels make of the metrics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import pandas as pd

from vrag_kit.analysis.accuracy import ARM
from vrag_kit.analysis.claims import ClaimSheet
from vrag_kit.analysis.claims_apart import claim_means_apart, corrected_apart
from vrag_kit.analysis.claims_error import UNREADABLE, verdict_agreement
from vrag_kit.analysis.claims_labelled import HeldSheet
from vrag_kit.judging.claim_labels import Held
from vrag_kit.judging.claims import Relation

CHECKER = "checker"
Labels = Mapping[Held, Relation]


def labels_of(sample: pd.DataFrame, *, sheets: str, column: str = "answer") -> dict[Held, Relation]:
    """The labels in sheets of `sample` (their column), as `read_claim_labels` gives
    people's; verdicts that are missing have none. `column` holds the answers' words.
    """
    found: dict[Held, Relation] = {}
    for sheet, said in zip(sample[sheets], sample[column], strict=True):
        if isinstance(sheet, ClaimSheet):
            words = said if isinstance(said, str) else ""
            labels = sheet.verdicts if words else _but_recalled(sheet)
            pairs = zip(HeldSheet.of(sheet, words).things, labels, strict=True)
            found |= {thing: label for thing, label in pairs if label is not None}
    return found


def annotator_agreement(
    sample: pd.DataFrame,
    annotators: Mapping[str, Labels],
    *,
    column: str = "answer",
    seed: int = 0,
) -> pd.DataFrame:
    """How far every two annotators agree, and each with the checker, about the claims and
    items that both have a label for: first, second, and the columns of
    `verdict_agreement`, by "image", "text", "answer" and "all".

    `annotators` are names with their labels, as `read_annotators` gives them; the checker
    is called "checker", and its verdicts are those of `sample` (group, sheet, `column`),
    each claim and item counted once. Where nothing has two labels, n is 0. Verdicts of
    the checker that could not be read are in n_failed.
    """
    known = {CHECKER: labels_of(sample, sheets="sheet", column=column), **annotators}
    things = _things(sample, column)
    rows = []
    for first, second in combinations([*annotators, CHECKER], 2):
        both = [
            (held.query_id, group, by, known[first][held].value, _word(known[second].get(held)))
            for held, (group, by) in things.items()
            if held in known[first] and (second == CHECKER or held in known[second])
        ]
        names = ["query_id", "group", "by", "true", "checker"]
        found = verdict_agreement(pd.DataFrame(both, columns=names), seed=seed)
        rows.append(found.assign(first=first, second=second))
    columns = ["first", "second", "by", "metric", "value", "ci_low", "ci_high", "n", "n_failed"]
    return pd.concat(rows, ignore_index=True)[columns] if rows else pd.DataFrame(columns=columns)


def beside_truth(
    checked: pd.DataFrame, pairs: pd.DataFrame, *, by: Sequence[str] = ARM
) -> pd.DataFrame:
    """Means by the checker's labels (`claim_means_apart`; labels "checker"), corrected by
    the true ones in `pairs` (`corrected_apart`; "corrected", with n_labelled), and where
    the truth about all answers is known (true_sheet in `checked`) by true labels
    ("true"), which the corrected ones estimate from `pairs` alone.
    """
    found = [claim_means_apart(checked, by=by).assign(labels="checker")]
    found.append(corrected_apart(checked, pairs, by=by).assign(labels="corrected"))
    if checked["true_sheet"].notna().any():
        true = checked.assign(sheet=checked["true_sheet"])
        found.append(claim_means_apart(true, by=by).assign(labels="true"))
    return pd.concat(found, ignore_index=True)


def _things(sample: pd.DataFrame, column: str) -> dict[Held, tuple[str, str]]:
    """What is labelled → its group and what it is held against."""
    found: dict[Held, tuple[str, str]] = {}
    rows = zip(sample["group"], sample["sheet"], sample[column], strict=True)
    for group, sheet, words in rows:
        if isinstance(sheet, ClaimSheet):
            kinds = {item.doc_id: item.modality for item in sheet.items}
            held = HeldSheet.of(sheet, words if isinstance(words, str) else "")
            found |= {thing: (group, kinds.get(thing.item, "answer")) for thing in held.things}
    return found


def _but_recalled(sheet: ClaimSheet) -> tuple[Relation | None, ...]:
    """The verdicts of a silent answer, which recalls nothing whoever reads it."""
    before = len(sheet.accepted)
    return sheet.verdicts[:before] + sheet.verdicts[before + len(sheet.recalled) :]


def _word(label: Relation | None) -> str:
    return UNREADABLE if label is None else label.value
