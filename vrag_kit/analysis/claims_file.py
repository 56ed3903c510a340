"""RAGChecker's JSON, read into sheets of claims, and written with metrics."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # what JSON holds

import numpy as np

from vrag_kit.analysis.claims import ClaimSheet, Item, Label, Row
from vrag_kit.analysis.claims_ragchecker import GENERATOR, OVERALL, RETRIEVER, ragchecker_metrics
from vrag_kit.errors import VragError, short
from vrag_kit.files import write_file
from vrag_kit.judging.claims import Relation
from vrag_kit.plain import Json, JsonView

LABELS: dict[str | None, Label] = {
    "Entailment": Relation.ENTAILMENT,
    "Neutral": Relation.NEUTRAL,
    "Contradiction": Relation.CONTRADICTION,
    None: None,
}
"""RAGChecker's words; null where the kit could not read a verdict."""
GROUPS = {
    "overall_metrics": OVERALL,
    "retriever_metrics": RETRIEVER,
    "generator_metrics": GENERATOR,
}
_NOT_YET = "It is not extracted and checked yet: let RAGChecker do that, or give both models"


@dataclass(frozen=True, slots=True)
class ClaimsFile:
    """A file of RAGChecker's."""

    document: JsonView
    """What it holds."""
    sheets: tuple[ClaimSheet, ...]
    """One for each of its results, in order."""


def read_claims_file(path: Path | str) -> ClaimsFile:
    """The results of a file of RAGChecker's (0.1.9) whose claims are extracted and
    checked.

    A claim is a triple or words; a context item may say its modality ("image", "text",
    which it is unless it does), a label may be null. Raises `VragError`, which names
    query and matrix, for a label that is missing, surplus or unknown, and for a matrix
    that is not there; and for a file that is missing or no such JSON.
    """
    file = Path(path)
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise VragError(f"{file}: there is no such file; expected RAGChecker's JSON.") from None
    except (ValueError, RecursionError) as error:
        raise VragError(f"{file}: no JSON in UTF-8 ({error}); expected RAGChecker's.") from None
    results = document.get("results") if isinstance(document, Mapping) else None
    if not isinstance(results, list):
        raise VragError(f'{file}: no list "results" at the top; expected RAGChecker\'s JSON.')
    numbered = enumerate(results, start=1)
    return ClaimsFile(document, tuple(_Result(file, n, each).sheet() for n, each in numbered))


def with_metrics(file: ClaimsFile) -> tuple[Json, int]:
    """(the document with RAGChecker's metrics, how many results are left out because a
    verdict is missing in them, which RAGChecker does not know).

    Each result gets metrics in [0, 1], the top the three groups in percent; all else
    stays as it is. Empty cases count as 0, as RAGChecker has them.
    """
    pairs = list(zip(file.document["results"], file.sheets, strict=True))
    whole = [(result, sheet) for result, sheet in pairs if not sheet.unread]
    results = [
        {**result, "metrics": ragchecker_metrics(sheet, empty="zero")} for result, sheet in whole
    ]
    groups = ragchecker_groups([sheet for _, sheet in whole])
    return {**file.document, "results": results, **groups}, len(pairs) - len(whole)


def write_claims_file(path: Path | str, document: JsonView) -> None:
    """Write a document as RAGChecker reads it, replacing a file only once the new one is
    complete. Raises `OSError` when it cannot be written.
    """
    write_file(Path(path), json.dumps(document, ensure_ascii=False, indent=2) + "\n")


def ragchecker_groups(sheets: Sequence[ClaimSheet]) -> dict[str, dict[str, float | None]]:
    """RAGChecker's three groups of means over answers, in percent with one decimal; None
    without any value. Empty cases count as 0; answers where a verdict is missing that a
    metric needs are left out of it.
    """
    values = [ragchecker_metrics(sheet, empty="zero") for sheet in sheets]
    return {
        group: {metric: _percent([each[metric] for each in values]) for metric in metrics}
        for group, metrics in GROUPS.items()
    }


def _percent(values: Sequence[float]) -> float | None:
    known = [value for value in values if not math.isnan(value)]
    return round(float(np.mean(known)) * 100, 1) if known else None


class _Result:
    """One result of a file, checked as it is read."""

    def __init__(self, file: Path, number: int, result: object) -> None:
        if not isinstance(result, Mapping) or not isinstance(result.get("query_id"), str | int):
            raise VragError(
                f"{file}, result {number}: found {short(result)}, expected a mapping with a"
                " query_id."
            )
        self._result: Mapping[str, Any] = result
        self._where = f"{file}, query {result['query_id']!r}"

    def sheet(self) -> ClaimSheet:
        """Its sheet."""
        claims, gold = self._claims("response_claims"), self._claims("gt_answer_claims")
        items = self._items()
        return ClaimSheet(
            query_id=str(self._result["query_id"]),
            claims=claims,
            gold_claims=gold,
            items=items,
            accepted=self._row("answer2response", len(claims)),
            recalled=self._row("response2answer", len(gold)),
            on_claims=self._rows("retrieved2response", len(claims), len(items)),
            on_gold=self._rows("retrieved2answer", len(gold), len(items)),
        )

    def _claims(self, name: str) -> tuple[str, ...]:
        claims = []
        for number, claim in enumerate(self._list(name), start=1):
            words = claim if isinstance(claim, list) else [claim]
            if not all(isinstance(word, str) for word in words) or not "".join(words).strip():
                raise VragError(
                    f"{self._where}, {name}, number {number}: found {short(claim)}, expected a"
                    " triple of texts, or a text."
                )
            claims.append(" ".join(filter(None, words)))
        return tuple(claims)

    def _items(self) -> tuple[Item, ...]:
        if self._result.get("retrieved_context") is None:
            return ()
        items = []
        for number, item in enumerate(self._list("retrieved_context"), start=1):
            found = item.get("doc_id") if isinstance(item, Mapping) else None
            modality = item.get("modality", "text") if isinstance(item, Mapping) else None
            if not isinstance(found, str | int) or modality not in ("image", "text"):
                raise VragError(
                    f"{self._where}, retrieved_context, number {number}: found {short(item)},"
                    " expected a doc_id, a text, and perhaps the modality image or text."
                )
            items.append(Item(str(found), modality))
        return tuple(items)

    def _rows(self, name: str, rows: int, length: int) -> tuple[Row, ...]:
        if length == 0 and self._result.get(name) is None:  # nothing was retrieved
            return ((),) * rows
        found = self._list(name)
        if len(found) != rows:
            raise VragError(
                f"{self._where}, {name}: found {len(found)} rows, expected {rows}, one a claim."
            )
        numbered = enumerate(found, start=1)
        return tuple(self._labels(f"{name}, row {n}", row, length) for n, row in numbered)

    def _row(self, name: str, length: int) -> Row:
        return self._labels(name, self._list(name), length)

    def _labels(self, name: str, labels: object, length: int) -> Row:
        if not isinstance(labels, list) or len(labels) != length:
            count = f"{len(labels)} labels" if isinstance(labels, list) else short(labels)
            raise VragError(
                f"{self._where}, {name}: found {count}, expected {length}: a missing label is not"
                " taken for Neutral, a surplus one is not cut."
            )
        for label in labels:
            if not isinstance(label, str | None) or label not in LABELS:
                known = ", ".join(each for each in LABELS if each)
                raise VragError(
                    f"{self._where}, {name}: found the label {short(label)}, expected one of"
                    f" {known}, or null where none could be read."
                )
        return tuple(LABELS[label] for label in labels)

    def _list(self, name: str) -> list[Any]:
        found = self._result.get(name)
        if found is None:
            raise VragError(f"{self._where}: it has no {name!r}. {_NOT_YET}.")
        if not isinstance(found, list):
            raise VragError(f"{self._where}, {name}: found {short(found)}, expected a list.")
        return found
