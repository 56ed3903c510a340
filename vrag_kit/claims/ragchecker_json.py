"""RAGChecker's JSON files: read, complete with claims and labels, measure and write."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from types import UnionType
from typing import Any  # what JSON holds

import numpy as np

from vrag_kit.benchmarks.images import ImageFile
from vrag_kit.benchmarks.sources import half_surrogate
from vrag_kit.claims.checking import ClaimRow, check_rows
from vrag_kit.claims.metrics import GROUPS, ragchecker_metrics
from vrag_kit.claims.verdicts import (
    MODALITIES,
    VERDICT_SCORES,
    ClaimChecker,
    ClaimExtractor,
    Claims,
    ClaimVerdicts,
    EvidenceItem,
)
from vrag_kit.errors import VragError, short_repr
from vrag_kit.files import safe_join
from vrag_kit.types import Document, Failure, Json, JsonView, Query

LABELS: dict[str | None, float] = {
    label and label.title(): score for label, score in VERDICT_SCORES.items()
}
"""RAGChecker's label → number of a verdict; null where a verdict could not be parsed."""
_NAMES = {score: label for label, score in LABELS.items()}
CLAIMS = ("response_claims", "gt_answer_claims")
MATRICES = {
    "answer2response": "accepted",
    "response2answer": "recalled",
    "retrieved2response": "on_claims",
    "retrieved2answer": "on_gold",
}
"""RAGChecker's name of a matrix → the part of the sheet's verdicts."""


@dataclass(frozen=True, slots=True)
class RagCheckerFile:
    """The contents of a RAGChecker file, with all claims and labels that its metrics need."""

    document: JsonView
    """The JSON document."""
    sheets: tuple[ClaimVerdicts, ...]
    """The sheet of each of its results, in order."""
    n_completed: int = 0
    """The number of results that lacked claims or labels."""
    failures: tuple[str, ...] = ()
    """ "query: reason" of results whose claims failed; they are not in the document."""


@dataclass(frozen=True, slots=True)
class RagCheckerResult:
    """One result of a RAGChecker file (version 0.1.9), checked as it is read."""

    file: Path
    query_id: str
    values: Mapping[str, Any]

    @property
    def missing(self) -> list[str]:
        """The names in `CLAIMS` and `MATRICES` that are not extracted or checked yet."""
        needed = [*CLAIMS, *MATRICES]
        if not self.values.get("retrieved_context"):
            needed = [name for name in needed if not name.startswith("retrieved")]
        return [name for name in needed if self.values.get(name) is None]

    def sheet(self) -> ClaimVerdicts:
        """The verdicts of the result. Raises `VragError` where it lacks any."""
        if self.missing:
            raise VragError(
                f"{self._where()}it has no {self.missing[0]!r}. Name a model that extracts and"
                " checks claims, as in `vrag claims FILE --extractor gpt-4o-mini@openai`."
            )
        claims, gold = map(self._claims, CLAIMS)
        items = self._items()
        n, m = len(claims), len(gold)
        own = [self._verdicts("answer2response", (n,)), self._verdicts("response2answer", (m,))]
        on_claims = self._verdicts("retrieved2response", (n, len(items)))
        on_gold = self._verdicts("retrieved2answer", (m, len(items)))
        return ClaimVerdicts(
            query_id=self.query_id,
            claims=claims,
            gold_claims=gold,
            items=items,
            verdicts=np.block([[own[0], on_claims], [own[1], on_gold]]),
        )

    def row(self) -> ClaimRow:
        """The texts, evidence and claims of the result, to be completed. Raises `VragError` for a
        text that is missing, an item without a text or image, and an image outside the file's
        folder.
        """
        text, answer = (self._field(name, str, "a text") for name in ("query", "response"))
        reference = self._field("gt_answer", str, "a text")
        answers = (reference,) if reference.strip() else ()
        query = Query(query_id=self.query_id, text=text, answers=answers)
        claims, gold = (None if name in self.missing else self._claims(name) for name in CLAIMS)
        items = map(self._document, self._items(), self._list("retrieved_context"), count(1))
        return ClaimRow(query, answer if answer.strip() else "", tuple(items), claims, gold)

    def _claims(self, name: str) -> Claims:
        """The claims of the answer ("response_claims"), or the gold claims: each a text, or a
        triple of texts.
        """
        claims = []
        for number, claim in enumerate(self._list(name), start=1):
            words = claim if isinstance(claim, list) else [claim]
            if not all(isinstance(word, str) for word in words) or not "".join(words).strip():
                raise self._error(f"{name}, number {number}", claim, "a triple of texts, or a text")
            claims.append(" ".join(filter(None, words)))
        return tuple(claims)

    def _items(self) -> tuple[EvidenceItem, ...]:
        items = []
        for n, item in enumerate(self._list("retrieved_context"), start=1):
            values = item if isinstance(item, Mapping) else {}
            doc_id, modality = values.get("doc_id"), values.get("modality", "text")
            if not isinstance(doc_id, str | int) or modality not in MODALITIES:
                raise self._error(f"retrieved_context, number {n}", item, "doc_id, image or text")
            items.append(EvidenceItem(str(doc_id), modality))
        return tuple(items)

    def _document(self, item: EvidenceItem, values: Json, number: int) -> Document:
        """A retrieved item: its text, or the image at a path from the file's folder."""
        where, content = f"retrieved_context, number {number}", values.get(item.modality)
        if not isinstance(content, str) or not content.strip():
            raise self._error(f"{where}, {item.doc_id!r}", content, f'text in "{item.modality}"')
        if item.modality == "text":
            return Document(doc_id=item.doc_id, text=content)
        image = safe_join(self.file.parent, content, self._where(where), links=False)
        if not os.path.isfile(image):  # `Path.is_file` raises for a long name
            raise VragError(f"{self._where(where)}there is no picture {image}; expected a file.")
        return Document(doc_id=item.doc_id, image=ImageFile(image))

    def _verdicts(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Shape [claims, evidence]: the numbers of a list or matrix of labels; null where nothing
        was retrieved.
        """
        found = self.values.get(name)
        scores = [] if found is None else self._scores(name, found, shape)
        return np.array(scores, float).reshape((*shape, 1)[:2])

    def _scores(self, where: str, found: object, shape: tuple[int, ...]) -> Any:
        """Nested lists of labels, as nested lists of numbers of a `shape`."""
        if not shape:
            if not isinstance(found, str | None) or found not in LABELS:
                raise self._error(where, found, f"one of {', '.join(map(str, LABELS))}")
            return LABELS[found]
        if not isinstance(found, list) or len(found) != shape[0]:
            unit = "rows" if len(shape) == 2 else "labels"
            what = f"{len(found)} {unit}" if isinstance(found, list) else short_repr(found)
            raise VragError(f"{self._where(where)}found {what}, expected {shape[0]}.")
        rows = enumerate(found, start=1)
        return [self._scores(f"{where}, row {n}", each, shape[1:]) for n, each in rows]

    def _field(self, name: str, kind: type | UnionType, expected: str) -> Any:
        """The value of this name. Raises `VragError` for a value of another type."""
        if not isinstance(found := self.values.get(name), kind):
            raise self._error(name, found, expected)
        return found

    def _list(self, name: str) -> list[Any]:
        """The list of this name; [] for null."""
        return self._field(name, list | None, "a list") or []

    def _where(self, field: str = "") -> str:
        return f"{self.file}, query {self.query_id!r}{field and ', '}{field}: "

    def _error(self, field: str, found: object, expected: str) -> VragError:
        return VragError(f"{self._where(field)}found {short_repr(found)}, expected {expected}.")


def read_ragchecker_json(path: Path | str) -> RagCheckerFile:
    """Reads a RAGChecker file (version 0.1.9) whose claims are extracted and checked.

    A claim is a triple or a text; a context item may have a modality ("image", or "text", the
    default), a label may be null. Raises `VragError`, which names query and matrix, for a label
    that is missing, surplus or unknown, and for a missing matrix; and for a file that is missing or
    no such JSON, a result without a query_id, and two of one query.
    """
    document, results = _read(path)
    return RagCheckerFile(document, tuple(result.sheet() for result in results))


def count_unchecked(path: Path | str) -> int:
    """Counts the results of a RAGChecker file that lack claims or labels. Raises `VragError` for no
    such file, as `read_ragchecker_json` does.
    """
    return sum(bool(result.missing) for result in _read(path)[1])


def complete_ragchecker_json(
    path: Path | str, extractor: ClaimExtractor, checker: ClaimChecker
) -> RagCheckerFile:
    """Extracts and checks the missing claims and labels of a RAGChecker file. It may be
    RAGChecker's input (query, gt_answer, response, retrieved_context) or output.

    Claims and labels that exist are kept. Gold claims are extracted from gt_answer. An item is a
    text, or with the modality "image" an image, whose path from the file's folder is in "image".
    Raises `VragError`, which names query and field, for a text or evidence that is missing, and as
    `read_ragchecker_json` does.
    """
    document, results = _read(path)
    incomplete = [result for result in results if result.missing]
    found = check_rows([result.row() for result in incomplete], extractor, checker)
    new = {result.query_id: each for result, each in zip(incomplete, found, strict=True)}
    failures = [f"{name}: {each}" for name, each in new.items() if isinstance(each, Failure)]
    whole = []
    for result in results:
        sheet = new.get(result.query_id)
        if isinstance(sheet, ClaimVerdicts):
            added = {name: part for name, part in _to_json(sheet).items() if name in result.missing}
            result = replace(result, values={**result.values, **added})
        if not isinstance(sheet, Failure):
            whole.append(result)
    document["results"] = [result.values for result in whole]
    sheets = tuple(result.sheet() for result in whole)
    return RagCheckerFile(document, sheets, len(incomplete), tuple(failures))


def add_ragchecker_metrics(file: RagCheckerFile) -> tuple[Json, int]:
    """Adds RAGChecker's metrics: (the document, the number of results left out). A result with a
    missing verdict is left out, as RAGChecker does not support it.

    Each result gets metrics in [0, 1], the top the three groups in percent; all else is unchanged.
    Empty cases count as 0, as in RAGChecker.
    """
    pairs = list(zip(file.document["results"], file.sheets, strict=True))
    whole = [(result, sheet) for result, sheet in pairs if not sheet.n_missing]
    results = [
        {**result, "metrics": ragchecker_metrics(sheet, empty="zero")} for result, sheet in whole
    ]
    groups = ragchecker_means([sheet for _, sheet in whole])
    return {**file.document, "results": results, **groups}, len(pairs) - len(whole)


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
    known = [value for value in values if not np.isnan(value)]
    return round(float(np.mean(known)) * 100, 1) if known else None


def _read(path: Path | str) -> tuple[Json, list[RagCheckerResult]]:
    """The JSON document and its results."""
    file = Path(path)
    if not file.is_file():  # a pipe would be waited for, and is read once
        what = "is no plain file" if file.exists() else "there is no such file"
        raise VragError(f"{file}: {what}; expected RAGChecker's JSON.")
    try:
        text = file.read_bytes().decode("utf-8")
        document = json.loads(text)
    except ValueError as error:
        raise VragError(f"{file}: no JSON in UTF-8 ({error}); expected RAGChecker's.") from None
    results = document.get("results") if isinstance(document, Mapping) else None
    if not isinstance(results, list):
        raise VragError(f'{file}: no list "results" at the top; expected RAGChecker\'s JSON.')
    found: dict[str, RagCheckerResult] = {}
    for number, values in enumerate(results, start=1):
        where = f"{file}, result {number}"
        if not isinstance(values, Mapping) or not isinstance(values.get("query_id"), str | int):
            raise VragError(f"{where}: found {short_repr(values)}, expected a query_id.")
        result = RagCheckerResult(file, str(values["query_id"]), values)
        if result.query_id in found:
            first = list(found).index(result.query_id) + 1
            raise VragError(f"{where}: query_id {result.query_id!r} is in result {first}, too.")
        if half := half_surrogate(values, text):
            raise VragError(f"{file}, query {result.query_id!r}: {half}")
        found[result.query_id] = result
    return dict(document), list(found.values())


def _to_json(sheet: ClaimVerdicts) -> dict[str, list[Any]]:
    """The claims and matrices of a sheet by RAGChecker's names. A claim is a triple of its text and
    two empty strings; it is not split further.
    """
    found: dict[str, list[Any]] = {}
    for name, claims in zip(CLAIMS, (sheet.claims, sheet.gold_claims), strict=True):
        found[name] = [[claim, "", ""] for claim in claims]
    to_labels = np.vectorize(_NAMES.get, otypes=[object])
    for name, part in MATRICES.items():
        found[name] = to_labels(getattr(sheet, part)).tolist()
    return found
