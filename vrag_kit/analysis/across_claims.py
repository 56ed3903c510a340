"""Why answers have no metric of claims, where they have none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from vrag_kit.analysis.claims import ClaimSheet

NO_SHEET = "no answer has a sheet of claims"
_GOLD = "no gold claims can be read"
_CLAIMS = "its answers make no claim that can be read"
_SHOWN = "nothing was shown"
_LACKS: Mapping[str, Callable[[ClaimSheet], bool]] = {
    _GOLD: lambda sheet: not sheet.gold_claims,
    _CLAIMS: lambda sheet: not sheet.claims,
    _SHOWN: lambda sheet: not sheet.items,
}
_NEEDS = {
    "claim_recall": (_GOLD, _SHOWN),
    "answer_claim_recall": (_GOLD, _CLAIMS),
    "faithfulness": (_CLAIMS, _SHOWN),
    "evidence_used": (_CLAIMS, _SHOWN),
}
"""An answer without claims uses no evidence, and recalls nothing; where no answer of all
has any, it is the reader of claims who says nothing.
"""


def claims_lacking(sheets: Iterable[ClaimSheet | None], metric: str) -> str:
    """What all sheets lack of what a metric needs, in words; "" where some lack nothing."""
    there = [sheet for sheet in sheets if isinstance(sheet, ClaimSheet)]
    if not there:
        return NO_SHEET
    for reason in _NEEDS[metric]:
        if all(_LACKS[reason](sheet) for sheet in there):
            return reason
    return ""
