"""Claim metrics over images alone, over texts alone and over both, and a table of the verdicts on
one answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd

from vrag_kit.analysis.means import ARM
from vrag_kit.claims.label_agreement import UNREADABLE, corrected_claim_means
from vrag_kit.claims.means import METRIC, claim_means
from vrag_kit.claims.metrics import GENERATOR, RETRIEVER, SHARES_OF_CLAIMS
from vrag_kit.claims.verdicts import MODALITIES, ClaimVerdicts

_APART = (*RETRIEVER, *GENERATOR, *SHARES_OF_CLAIMS, "conflicted_share")
"""Metrics over all evidence that can be restricted to one modality; others have a modality, or use
no evidence.
"""


def claim_means_by_modality(checked: pd.DataFrame, *, by: Sequence[str] = ARM) -> pd.DataFrame:
    """The table of `claim_means`, with every evidence metric also over images alone and over texts
    alone (modality "image" and "text").

    Over one modality an answer is evaluated as if it had been shown that alone, as MRAG-Suite runs
    RAGChecker once over texts and once over images. Answers without evidence of a modality are left
    out of it, and counted nowhere.
    """
    return _apart(lambda part: claim_means(part, by=by), by, checked)


def corrected_claims_by_modality(
    checked: pd.DataFrame, pairs: pd.DataFrame, *, by: Sequence[str] = ARM
) -> pd.DataFrame:
    """The table of `corrected_claim_means`, also over images alone and over texts alone as in
    `claim_means_by_modality`.
    """
    return _apart(lambda *parts: corrected_claim_means(*parts, by=by), by, checked, pairs)


def _apart(
    means: Callable[..., pd.DataFrame], by: Sequence[str], *tables: pd.DataFrame
) -> pd.DataFrame:
    """What `means` makes of tables of sheets, and of the same over each modality alone."""
    found = [means(*tables)]
    for modality in MODALITIES:
        parts = [_shown_only(table, modality) for table in tables]
        if any(parts[0]["sheet"]):
            table = means(*parts)
            table = table[table["metric"].isin(_APART) & (table["modality"] == "all")]
            found.append(table.assign(modality=modality))
    together = pd.concat(found, ignore_index=True)
    return together.drop_duplicates([*by, *METRIC], ignore_index=True)


def _shown_only(table: pd.DataFrame, modality: str) -> pd.DataFrame:
    """The answers that were shown something of a modality, their sheets over it alone."""
    columns = [name for name in ("sheet", "true_sheet") if name in table]
    sheets = {name: [_only(sheet, modality) for sheet in table[name]] for name in columns}
    part = table.assign(
        **{name: pd.Series(each, index=table.index, dtype=object) for name, each in sheets.items()}
    )
    return part.loc[[sheet is None or bool(sheet.items) for sheet in sheets["sheet"]]]


def _only(sheet: object, modality: str) -> ClaimVerdicts | None:
    return sheet.restrict_to_modality(modality) if isinstance(sheet, ClaimVerdicts) else None


def verdict_table(sheet: ClaimVerdicts) -> pd.DataFrame:
    """Formats a sheet as a table: a row for each claim of the answer, then for each gold claim.
    Columns are the verdicts of the accepted answers (for gold claims, of the answer) and of each
    item, "unparsed" where one is missing.
    """
    names = [f"{item.modality}: {item.doc_id}" for item in sheet.items]
    parts = {
        "claim": (sheet.claims, sheet.accepted, sheet.on_claims),
        "gold claim": (sheet.gold_claims, sheet.recalled, sheet.on_gold),
    }
    rows: list[list[str]] = []
    index: list[tuple[str, str]] = []
    for kind, (claims, held, labels) in parts.items():
        for claim, own, row in zip(claims, held, labels, strict=True):
            index.append((kind, claim))
            rows.append([UNREADABLE if each is None else each.value for each in (own, *row)])
    places = pd.MultiIndex.from_tuples(index, names=["", "claim"]) if index else None
    return pd.DataFrame(rows, index=places, columns=["accepted answer, or answer", *names])
