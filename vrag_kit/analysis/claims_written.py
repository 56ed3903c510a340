"""Converts sheets of answers to RAGChecker's JSON, for use with its tools."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any  # cells of a table

import pandas as pd

from vrag_kit.analysis.claims import ClaimVerdicts, EvidenceItem, VerdictRow
from vrag_kit.analysis.claims_asked import reference_text
from vrag_kit.analysis.claims_file import RagCheckerFile
from vrag_kit.analysis.claims_result import RAGCHECKER_LABELS
from vrag_kit.errors import VragError
from vrag_kit.log import logger
from vrag_kit.types import Benchmark, Json

_WORDS = {label: word for word, label in RAGCHECKER_LABELS.items()}


def to_ragchecker(
    benchmark: Benchmark, checked: pd.DataFrame, *, column: str = "answer"
) -> RagCheckerFile:
    """Converts one arm's answers, with the sheets of `check_answers`, to the form of RAGChecker's
    files. `add_ragchecker_metrics` and `write_ragchecker_json` make a file of it.

    A claim is a triple of its text and two empty strings, since it is not split further; an item
    has its modality unless that is text, and the document's text, "" without. Prints how many
    answers have no sheet and are left out. Raises `VragError` for two answers to a query, which
    RAGChecker could not distinguish.
    """
    known = checked[[isinstance(sheet, ClaimVerdicts) for sheet in checked["sheet"]]]
    twice = known["query_id"][known["query_id"].duplicated()]
    if len(twice):
        raise VragError(
            f"to_ragchecker: there are several answers to query {twice.iloc[0]!r}; expected one of"
            " each: take one model, setting, k and draw."
        )
    if lost := len(checked) - len(known):
        logger.info(f"note: {lost:,} of {len(checked):,} answers have no sheet: left out")
    results = [_result(benchmark, row, column) for row in known.to_dict("records")]
    return RagCheckerFile({"results": results}, tuple(known["sheet"]))


def _result(benchmark: Benchmark, row: Mapping[Hashable, Any], column: str) -> Json:
    sheet: ClaimVerdicts = row["sheet"]
    query = benchmark.queries[sheet.query_id]
    right, words = reference_text(query), row[column]
    said = {
        "query_id": sheet.query_id,
        "query": query.text,
        "gt_answer": right[0] if right else "",
        "response": words if isinstance(words, str) else "",
        "retrieved_context": [_item(benchmark, item) for item in sheet.items],
    }
    return {**said, **verdicts_to_json(sheet)}


def verdicts_to_json(sheet: ClaimVerdicts) -> Json:
    """Converts a sheet's claims and matrices to RAGChecker's names. A claim is a triple of its text
    and two empty strings.
    """
    return {
        "response_claims": [[claim, "", ""] for claim in sheet.claims],
        "gt_answer_claims": [[claim, "", ""] for claim in sheet.gold_claims],
        "answer2response": _labels(sheet.accepted),
        "response2answer": _labels(sheet.recalled),
        "retrieved2response": [_labels(each) for each in sheet.on_claims],
        "retrieved2answer": [_labels(each) for each in sheet.on_gold],
    }


def _item(benchmark: Benchmark, item: EvidenceItem) -> Json:
    text = benchmark.corpus[item.doc_id].text or ""
    shown = {"doc_id": item.doc_id, "text": text}
    return shown if item.modality == "text" else {**shown, "modality": item.modality}


def _labels(row: VerdictRow) -> list[str | None]:
    return [_WORDS[label] for label in row]
