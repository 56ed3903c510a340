"""Sheets of one's own answers as RAGChecker's JSON, for who goes on with its tools."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any  # cells of a table

import pandas as pd

from vrag_kit.analysis.claims import ClaimSheet, Item, Row
from vrag_kit.analysis.claims_asked import references
from vrag_kit.analysis.claims_file import ClaimsFile
from vrag_kit.analysis.claims_result import LABELS
from vrag_kit.errors import VragError
from vrag_kit.plain import Json
from vrag_kit.types import Benchmark

_WORDS = {label: word for word, label in LABELS.items()}


def claims_file_of(
    benchmark: Benchmark, checked: pd.DataFrame, *, column: str = "answer"
) -> ClaimsFile:
    """One arm's answers, as `with_claims` gave them sheets, in the form of RAGChecker's
    files; `with_metrics` and `write_claims_file` make a file of it.

    A claim stands as a triple of its words and twice nothing, since it is not taken apart
    further; items say their modality, and have the document's text, "" without. Prints
    how many answers have no sheet: those are not in it. Raises `VragError` for two
    answers to a query, which RAGChecker could not tell apart.
    """
    known = checked[[isinstance(sheet, ClaimSheet) for sheet in checked["sheet"]]]
    twice = known["query_id"][known["query_id"].duplicated()]
    if len(twice):
        raise VragError(
            f"claims_file_of: there are several answers to query {twice.iloc[0]!r}; expected one of"
            " each: take one model, setting, k and draw."
        )
    if lost := len(checked) - len(known):
        print(f"note: {lost:,} of {len(checked):,} answers have no sheet: left out", flush=True)
    results = [_result(benchmark, row, column) for row in known.to_dict("records")]
    return ClaimsFile({"results": results}, tuple(known["sheet"]))


def _result(benchmark: Benchmark, row: Mapping[Hashable, Any], column: str) -> Json:
    sheet: ClaimSheet = row["sheet"]
    query = benchmark.queries[sheet.query_id]
    right, words = references(query), row[column]
    said = {
        "query_id": sheet.query_id,
        "query": query.text,
        "gt_answer": right[0] if right else "",
        "response": words if isinstance(words, str) else "",
        "retrieved_context": [_item(benchmark, item) for item in sheet.items],
    }
    return {**said, **sheet_json(sheet)}


def sheet_json(sheet: ClaimSheet) -> Json:
    """A sheet's claims and matrices under RAGChecker's names; a claim is a triple of its
    words and twice nothing.
    """
    return {
        "response_claims": [[claim, "", ""] for claim in sheet.claims],
        "gt_answer_claims": [[claim, "", ""] for claim in sheet.gold_claims],
        "answer2response": _labels(sheet.accepted),
        "response2answer": _labels(sheet.recalled),
        "retrieved2response": [_labels(each) for each in sheet.on_claims],
        "retrieved2answer": [_labels(each) for each in sheet.on_gold],
    }


def _item(benchmark: Benchmark, item: Item) -> Json:
    text = benchmark.corpus[item.doc_id].text or ""
    shown = {"doc_id": item.doc_id, "text": text}
    return shown if item.modality == "text" else {**shown, "modality": item.modality}


def _labels(row: Row) -> list[str | None]:
    return [_WORDS[label] for label in row]
