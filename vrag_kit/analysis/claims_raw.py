"""RAGChecker's files whose claims are not extracted or checked yet, made whole."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any  # cells of JSON

from vrag_kit.analysis.claims import ClaimSheet
from vrag_kit.analysis.claims_asked import AskedRow
from vrag_kit.analysis.claims_checked import sheets_of
from vrag_kit.analysis.claims_file import ClaimsFile, read_results
from vrag_kit.analysis.claims_result import CLAIMS, ClaimsResult
from vrag_kit.analysis.claims_written import sheet_json
from vrag_kit.judging.claims import ClaimChecker, ClaimExtractor
from vrag_kit.types import Query


@dataclass(frozen=True, slots=True)
class MadeWhole:
    """A file with everything that its metrics need."""

    file: ClaimsFile
    asked: int
    """Results that lacked claims or labels."""
    lost: tuple[str, ...]
    """"query: why" of results whose claims could not be had; they are not in the file."""


def unchecked(path: Path | str) -> int:
    """How many results of a file of RAGChecker's lack claims or labels. Raises
    `VragError` as `read_claims_file` does for what is no such file.
    """
    return sum(bool(result.lacking) for result in read_results(path)[1])


def check_claims_file(
    path: Path | str, extractor: ClaimExtractor, checker: ClaimChecker
) -> MadeWhole:
    """The results of a file of RAGChecker's input (query, gt_answer, response,
    retrieved_context) or output, with the claims and labels that they lack.

    What a result has already stays as it is. Gold claims are taken out of gt_answer. An
    item is a text, or with the modality "image" a picture, whose path from the file's
    folder stands in "image". Raises `VragError`, which names query and field, for a text
    or evidence that is missing, and as `read_claims_file` does.
    """
    document, results = read_results(path)
    rows = {n: _row(result) for n, result in enumerate(results) if result.lacking}
    made = dict(zip(rows, sheets_of(list(rows.values()), extractor, checker), strict=True))
    told: list[dict[str, Any]] = []
    sheets: list[ClaimSheet] = []
    lost: list[str] = []
    for n, result in enumerate(results):
        sheet = made[n] if n in made else result.sheet()
        if not isinstance(sheet, ClaimSheet):
            lost.append(f"{result.query_id}: {sheet}")
            continue
        whole = replace(sheet, **result.matrices(sheet))
        new = {name: cells for name, cells in sheet_json(whole).items() if name in result.lacking}
        told.append({**result.told, **new})
        sheets.append(whole)
    file = ClaimsFile({**document, "results": told}, tuple(sheets))
    return MadeWhole(file, len(rows), tuple(lost))


def _row(result: ClaimsResult) -> AskedRow:
    """What is asked about a result."""
    given = {name: result.claims(name) for name in CLAIMS if name not in result.lacking}
    right = result.words("gt_answer")
    query = Query(
        query_id=result.query_id,
        text=result.words("query"),
        answers=(right,) if right.strip() else (),
        metadata={"gold_claims": given.get("gt_answer_claims", ())},
    )
    words = result.words("response")
    said = words if words.strip() else ""
    return AskedRow(query, said, result.evidence(), None, given.get("response_claims"))
