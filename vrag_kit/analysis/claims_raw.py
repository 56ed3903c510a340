"""Completes RAGChecker files whose claims are not extracted or checked yet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any  # cells of JSON

from vrag_kit.analysis.claims import ClaimVerdicts
from vrag_kit.analysis.claims_asked import ClaimRow
from vrag_kit.analysis.claims_checked import check_rows
from vrag_kit.analysis.claims_file import RagCheckerFile, read_ragchecker_results
from vrag_kit.analysis.claims_result import CLAIMS, RagCheckerResult
from vrag_kit.analysis.claims_written import verdicts_to_json
from vrag_kit.judging.claims import ClaimChecker, ClaimExtractor
from vrag_kit.types import Query


@dataclass(frozen=True, slots=True)
class CompletedFile:
    """A RAGChecker file with all claims and labels that its metrics need."""

    file: RagCheckerFile
    asked: int
    """The number of results that lacked claims or labels."""
    lost: tuple[str, ...]
    """ "query: reason" of results whose claims failed; they are not in the file."""


def count_unchecked(path: Path | str) -> int:
    """Counts the results of a RAGChecker file that lack claims or labels. Raises `VragError` for no
    such file, as `read_ragchecker_json` does.
    """
    return sum(bool(result.lacking) for result in read_ragchecker_results(path)[1])


def complete_ragchecker_json(
    path: Path | str, extractor: ClaimExtractor, checker: ClaimChecker
) -> CompletedFile:
    """Extracts and checks the missing claims and labels of a RAGChecker file. It may be
    RAGChecker's input (query, gt_answer, response, retrieved_context) or output.

    Claims and labels that exist are kept. Gold claims are extracted from gt_answer. An item is a
    text, or with the modality "image" an image, whose path from the file's folder is in "image".
    Raises `VragError`, which names query and field, for a text or evidence that is missing, and as
    `read_ragchecker_json` does.
    """
    document, results = read_ragchecker_results(path)
    rows = {n: _row(result) for n, result in enumerate(results) if result.lacking}
    made = dict(zip(rows, check_rows(list(rows.values()), extractor, checker), strict=True))
    told: list[dict[str, Any]] = []
    sheets: list[ClaimVerdicts] = []
    lost: list[str] = []
    for n, result in enumerate(results):
        sheet = made[n] if n in made else result.verdicts()
        if not isinstance(sheet, ClaimVerdicts):
            lost.append(f"{result.query_id}: {sheet}")
            continue
        whole = replace(sheet, **result.matrices(sheet))
        new = {
            name: cells for name, cells in verdicts_to_json(whole).items() if name in result.lacking
        }
        told.append({**result.told, **new})
        sheets.append(whole)
    file = RagCheckerFile({**document, "results": told}, tuple(sheets))
    return CompletedFile(file, len(rows), tuple(lost))


def _row(result: RagCheckerResult) -> ClaimRow:
    """What is asked about a result."""
    given = {name: result.claims(name) for name in CLAIMS if name not in result.lacking}
    right = result.text("gt_answer")
    query = Query(
        query_id=result.query_id,
        text=result.text("query"),
        answers=(right,) if right.strip() else (),
        metadata={"gold_claims": given.get("gt_answer_claims", ())},
    )
    words = result.text("response")
    said = words if words.strip() else ""
    return ClaimRow(query, said, result.evidence(), None, given.get("response_claims"))
