"""Reads RAGChecker's JSON into sheets of claims, and writes it with metrics."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vrag_kit.analysis.claims import ClaimVerdicts
from vrag_kit.analysis.claims_ragchecker import GENERATOR, OVERALL, RETRIEVER, ragchecker_metrics
from vrag_kit.analysis.claims_result import RagCheckerResult
from vrag_kit.benchmarks.sources import check_surrogates
from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.types import Json, JsonView

GROUPS = {
    "overall_metrics": OVERALL,
    "retriever_metrics": RETRIEVER,
    "generator_metrics": GENERATOR,
}


@dataclass(frozen=True, slots=True)
class RagCheckerFile:
    """The contents of a RAGChecker file."""

    document: JsonView
    """The JSON document."""
    sheets: tuple[ClaimVerdicts, ...]
    """The sheet of each of its results, in order."""


def read_ragchecker_json(path: Path | str) -> RagCheckerFile:
    """Reads a RAGChecker file (version 0.1.9) whose claims are extracted and checked.

    A claim is a triple or a text; a context item may have a modality ("image", or "text", the
    default), a label may be null. Raises `VragError`, which names query and matrix, for a label
    that is missing, surplus or unknown, and for a missing matrix; and for a file that is missing or
    no such JSON.
    """
    document, results = read_ragchecker_results(path)
    return RagCheckerFile(document, tuple(result.verdicts() for result in results))


def read_ragchecker_results(path: Path | str) -> tuple[Json, list[RagCheckerResult]]:
    """Reads a RAGChecker file, checked or not: (its JSON document, its results). Raises `VragError`
    for a file that is missing or no such JSON, a result without a query_id, and two of one query.
    """
    file = Path(path)
    if not file.is_file():  # a pipe would be waited for, and is read once
        what = "is no plain file" if file.exists() else "there is no such file"
        raise VragError(f"{file}: {what}; expected RAGChecker's JSON.")
    try:
        text = file.read_text(encoding="utf-8")
        document = json.loads(text)
    except OSError as error:
        raise VragError(f"{file}: cannot be read ({error.strerror}).") from None
    except (ValueError, RecursionError) as error:
        raise VragError(f"{file}: no JSON in UTF-8 ({error}); expected RAGChecker's.") from None
    results = document.get("results") if isinstance(document, Mapping) else None
    if not isinstance(results, list):
        raise VragError(f'{file}: no list "results" at the top; expected RAGChecker\'s JSON.')
    found = [RagCheckerResult(file, n, each) for n, each in enumerate(results, start=1)]
    _check_queries(file, found)
    for result in found:
        check_surrogates(result.told, text, result.where)
    check_surrogates(document, text, str(file))
    return dict(document), found


def _check_queries(file: Path, results: Sequence[RagCheckerResult]) -> None:
    """Raise `VragError` for two results of one query, which would count as one."""
    seen: dict[str, int] = {}
    for number, result in enumerate(results, start=1):
        first = seen.setdefault(result.query_id, number)
        if first != number:
            raise VragError(
                f"{file}, result {number}: query_id {result.query_id!r} is that of result {first},"
                " too; expected each once. Keep a file for each model."
            )


def add_ragchecker_metrics(file: RagCheckerFile) -> tuple[Json, int]:
    """Adds RAGChecker's metrics: (the document, the number of results left out). A result with a
    missing verdict is left out, as RAGChecker does not support it.

    Each result gets metrics in [0, 1], the top the three groups in percent; all else is unchanged.
    Empty cases count as 0, as in RAGChecker.
    """
    pairs = list(zip(file.document["results"], file.sheets, strict=True))
    whole = [(result, sheet) for result, sheet in pairs if not sheet.unread]
    results = [
        {**result, "metrics": ragchecker_metrics(sheet, empty="zero")} for result, sheet in whole
    ]
    groups = ragchecker_means([sheet for _, sheet in whole])
    return {**file.document, "results": results, **groups}, len(pairs) - len(whole)


def write_ragchecker_json(path: Path | str, document: JsonView) -> None:
    """Writes a document in RAGChecker's format, replacing a file only once the new one is complete.
    Raises `OSError` when it cannot be written.
    """
    write_file(Path(path), json.dumps(document, ensure_ascii=False, indent=2) + "\n")


def ragchecker_means(sheets: Sequence[ClaimVerdicts]) -> dict[str, dict[str, float | None]]:
    """RAGChecker's three groups of means over answers, in percent with one decimal; None without
    any value. Empty cases count as 0; an answer that lacks a verdict for a metric is left out of
    it.
    """
    values = [ragchecker_metrics(sheet, empty="zero") for sheet in sheets]
    return {
        group: {metric: _percent([each[metric] for each in values]) for metric in metrics}
        for group, metrics in GROUPS.items()
    }


def _percent(values: Sequence[float]) -> float | None:
    known = [value for value in values if not math.isnan(value)]
    return round(float(np.mean(known)) * 100, 1) if known else None
