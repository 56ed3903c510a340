"""Reasons why a claim metric is undefined for a table of answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from vrag_kit.analysis.claims import ClaimVerdicts

NO_SHEET = "no answer has a sheet of claims"
_GOLD = "no gold claims"
_CLAIMS = "no claims in answers"
_SHOWN = "nothing was shown"
_LACKS: Mapping[str, Callable[[ClaimVerdicts], bool]] = {
    _GOLD: lambda sheet: not sheet.gold_claims,
    _CLAIMS: lambda sheet: not sheet.claims,
    _SHOWN: lambda sheet: not sheet.items,
}
_NEEDS = {
    "claim_recall": (_GOLD, _SHOWN),
    "answer_claim_recall": (_GOLD, _CLAIMS),
    "faithfulness": (_CLAIMS, _SHOWN),
    "evidence_utilization": (_CLAIMS, _SHOWN),
}
"""Metric → what it needs. An answer without claims uses no evidence and recalls nothing; where no
answer has any claim, that is due to the claim extractor.
"""


def missing_for_claim_metric(sheets: Iterable[ClaimVerdicts | None], metric: str) -> str:
    """Names the requirement of a claim metric that all sheets lack; "" where there is none."""
    there = [sheet for sheet in sheets if isinstance(sheet, ClaimVerdicts)]
    if not there:
        return NO_SHEET
    for reason in _NEEDS[metric]:
        if all(_LACKS[reason](sheet) for sheet in there):
            return reason
    return ""
