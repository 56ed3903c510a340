"""Metrics of claims over pictures alone and over texts alone, beside both together;
and a sheet to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd

from vrag_kit.analysis.accuracy import ARM
from vrag_kit.analysis.claims import MODALITIES, ClaimSheet
from vrag_kit.analysis.claims_error import UNREADABLE, corrected_claims
from vrag_kit.analysis.claims_evidence import SHARES_OF_CLAIMS
from vrag_kit.analysis.claims_means import METRIC, claim_means
from vrag_kit.analysis.claims_ragchecker import GENERATOR, RETRIEVER

_APART = (*RETRIEVER, *GENERATOR, *SHARES_OF_CLAIMS, "conflicted_share")
"""Metrics of a whole sheet that look at what was shown; others have their modality, or
look at no evidence.
"""


def claim_means_apart(checked: pd.DataFrame, *, by: Sequence[str] = ARM) -> pd.DataFrame:
    """The table of `claim_means`, and every metric that looks at evidence over pictures
    and over texts alone (modality "image" and "text").

    Over one modality an answer is judged as if it had been shown that alone, as
    MRAG-Suite runs RAGChecker once over texts and once over pictures. Answers that were
    shown nothing of a modality are left out of it, and count nowhere.
    """
    return _apart(lambda part: claim_means(part, by=by), by, checked)


def corrected_apart(
    checked: pd.DataFrame, pairs: pd.DataFrame, *, by: Sequence[str] = ARM
) -> pd.DataFrame:
    """The table of `corrected_claims`, over pictures and over texts alone as
    `claim_means_apart` has it.
    """
    return _apart(lambda *parts: corrected_claims(*parts, by=by), by, checked, pairs)


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


def _only(sheet: object, modality: str) -> ClaimSheet | None:
    return sheet.only(modality) if isinstance(sheet, ClaimSheet) else None


def sheet_table(sheet: ClaimSheet) -> pd.DataFrame:
    """A sheet as people read it: a row a claim of the answer, then a row a gold claim;
    columns what the accepted answers (of gold claims the answer) and each item say
    about it, "unreadable" where that is not known.
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
