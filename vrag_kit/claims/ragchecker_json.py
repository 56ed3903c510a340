"""One result of a RAGChecker file: its texts, claims and labels."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any  # what JSON holds

import numpy as np
import pandas as pd

from vrag_kit.benchmarks.images import ImageFile
from vrag_kit.benchmarks.sources import half_surrogate
from vrag_kit.claims.checking import check_rows
from vrag_kit.claims.extraction import ClaimRow, reference_text
from vrag_kit.claims.metrics import GENERATOR, OVERALL, RETRIEVER, ragchecker_metrics
from vrag_kit.claims.verdicts import (
    ClaimChecker,
    ClaimExtractor,
    ClaimVerdicts,
    EntailmentLabel,
    EvidenceItem,
    Label,
    VerdictRow,
)
from vrag_kit.errors import VragError, short_repr
from vrag_kit.files import safe_join, write_file
from vrag_kit.log import logger
from vrag_kit.types import Benchmark, Document, Json, JsonView, Query

RAGCHECKER_LABELS: dict[str | None, Label] = {
    "Entailment": EntailmentLabel.ENTAILMENT,
    "Neutral": EntailmentLabel.NEUTRAL,
    "Contradiction": EntailmentLabel.CONTRADICTION,
    None: None,
}
"""RAGChecker's label → the kit's; null where the kit could not parse a verdict."""
CLAIMS = ("response_claims", "gt_answer_claims")
MATRICES = {
    "answer2response": "accepted",
    "response2answer": "recalled",
    "retrieved2response": "on_claims",
    "retrieved2answer": "on_gold",
}
"""RAGChecker's name of a matrix → the sheet's."""
_CLAIMED = {"response": "response_claims", "answer": "gt_answer_claims"}
"""How a matrix's name ends → the list whose claims its rows, or labels, are of."""
_OF_ITEMS = ("retrieved2response", "retrieved2answer")
_NOT_YET = (
    "It is not extracted and checked yet: name a model that does so, as in `vrag claims FILE"
    " --extractor gpt-4o-mini@openai`, or let RAGChecker do it"
)


class RagCheckerResult:
    """One result of a RAGChecker file, checked as it is read."""

    def __init__(self, file: Path, number: int, result: object) -> None:
        if not isinstance(result, Mapping) or not isinstance(result.get("query_id"), str | int):
            raise VragError(
                f"{file}, result {number}: found {short_repr(result)}, expected a mapping with a"
                " query_id."
            )
        self.told: Mapping[str, Any] = result
        """The JSON object of the result."""
        self.query_id = str(result["query_id"])
        self._file = file
        self.where = f"{file}, query {result['query_id']!r}"
        """The name of the result in messages."""

    @property
    def lacking(self) -> tuple[str, ...]:
        """The names in `CLAIMS` and `MATRICES` that are not extracted or checked yet."""
        bare = not self.told.get("retrieved_context")
        needed = [name for name in (*CLAIMS, *MATRICES) if not (bare and name in _OF_ITEMS)]
        return tuple(name for name in needed if self.told.get(name) is None)

    def verdicts(self) -> ClaimVerdicts:
        """The sheet of the result."""
        claims, gold = self.claims("response_claims"), self.claims("gt_answer_claims")
        items = self.items()
        return ClaimVerdicts(
            query_id=self.query_id,
            claims=claims,
            gold_claims=gold,
            items=items,
            accepted=self._row("answer2response", len(claims)),
            recalled=self._row("response2answer", len(gold)),
            on_claims=self._rows("retrieved2response", len(claims), len(items)),
            on_gold=self._rows("retrieved2answer", len(gold), len(items)),
        )

    def text(self, name: str) -> str:
        """One text of the result: "query", "response" or "gt_answer"."""
        found = self.told.get(name)
        if not isinstance(found, str):
            raise VragError(
                f"{self.where}, {name}: found {short_repr(found)}, expected a text, to take claims"
                " out"
                " of and to hold them against."
            )
        return found

    def evidence(self) -> tuple[Document, ...]:
        """The retrieved documents: the text of an item, or the image at the path in "image", from
        the file's folder. Raises `VragError` where there is neither, and for an image outside that
        folder.
        """
        found = []
        items = self.items()
        for number, (item, told) in enumerate(zip(items, self._shown(), strict=True), start=1):
            text, image = told.get("text"), told.get("image")
            if item.modality == "text" and isinstance(text, str) and text.strip():
                found.append(Document(doc_id=item.doc_id, text=text))
            elif item.modality == "image" and isinstance(image, str) and image:
                where = f"{self.where}, retrieved_context, number {number}"
                picture = safe_join(self._file.parent, image, where, links=False)
                if not os.path.isfile(picture):  # `Path.is_file` raises for a long name
                    raise VragError(
                        f"{where}: there is no picture {picture}; expected a path from the file's"
                        " folder."
                    )
                found.append(Document(doc_id=item.doc_id, image=ImageFile(picture)))
            else:
                needed = 'a path in "image"' if item.modality == "image" else 'words in "text"'
                raise VragError(
                    f"{self.where}, retrieved_context, number {number}: the evidence of"
                    f" {item.doc_id!r} is missing; expected {needed}, to check claims by."
                )
        return tuple(found)

    def matrices(self, sheet: ClaimVerdicts) -> dict[str, Any]:
        """The matrices of the sheet that the file has, by the sheet's names."""
        p = len(sheet.items)
        n, m = len(sheet.claims), len(sheet.gold_claims)
        found: dict[str, Any] = {}
        for name in set(MATRICES) - set(self.lacking):
            rows = n if name.endswith("2response") else m
            of_items = name in _OF_ITEMS
            found[MATRICES[name]] = self._rows(name, rows, p) if of_items else self._row(name, rows)
        return found

    def claims(self, name: str) -> tuple[str, ...]:
        """The claims of the answer ("response_claims"), or the gold claims."""
        claims = []
        for number, claim in enumerate(self._list(name), start=1):
            words = claim if isinstance(claim, list) else [claim]
            if not all(isinstance(word, str) for word in words) or not "".join(words).strip():
                raise VragError(
                    f"{self.where}, {name}, number {number}: found {short_repr(claim)}, expected a"
                    " triple of texts, or a text."
                )
            claims.append(" ".join(filter(None, words)))
        return tuple(claims)

    def items(self) -> tuple[EvidenceItem, ...]:
        """The retrieved items."""
        items = []
        for number, item in enumerate(self._shown(), start=1):
            found = item.get("doc_id") if isinstance(item, Mapping) else None
            modality = item.get("modality", "text") if isinstance(item, Mapping) else None
            if not isinstance(found, str | int) or modality not in ("image", "text"):
                raise VragError(
                    f"{self.where}, retrieved_context, number {number}: found {short_repr(item)},"
                    " expected a doc_id, a text, and perhaps the modality image or text."
                )
            items.append(EvidenceItem(str(found), modality))
        return tuple(items)

    def _shown(self) -> list[Any]:
        there = self.told.get("retrieved_context") is not None
        return self._list("retrieved_context") if there else []

    def _rows(self, name: str, rows: int, length: int) -> tuple[VerdictRow, ...]:
        if length == 0 and self.told.get(name) is None:  # nothing was retrieved
            return ((),) * rows
        found = self._list(name)
        if len(found) != rows:
            raise VragError(
                f"{self.where}, {name}: found {_count(found, 'row')}, expected {rows}, one a claim"
                f" of {_claimed(name)}."
            )
        numbered = enumerate(found, start=1)
        of = "an item of retrieved_context"
        return tuple(self._labels(f"{name}, row {n}", row, length, of) for n, row in numbered)

    def _row(self, name: str, length: int) -> VerdictRow:
        return self._labels(name, self._list(name), length, f"a claim of {_claimed(name)}")

    def _labels(self, name: str, labels: object, length: int, of: str) -> VerdictRow:
        """A row of labels, one `of` each ("a claim of response_claims")."""
        if not isinstance(labels, list) or len(labels) != length:
            count = _count(labels, "label") if isinstance(labels, list) else short_repr(labels)
            raise VragError(
                f"{self.where}, {name}: found {count}, expected {length}, one {of}: a missing"
                " label is not taken for Neutral, a surplus one is not cut."
            )
        for label in labels:
            if not isinstance(label, str | None) or label not in RAGCHECKER_LABELS:
                known = ", ".join(each for each in RAGCHECKER_LABELS if each)
                raise VragError(
                    f"{self.where}, {name}: found the label {short_repr(label)}, expected one of"
                    f" {known}, or null where none could be read."
                )
        return tuple(RAGCHECKER_LABELS[label] for label in labels)

    def _list(self, name: str) -> list[Any]:
        found = self.told.get(name)
        if found is None:
            raise VragError(f"{self.where}: it has no {name!r}. {_NOT_YET}.")
        if not isinstance(found, list):
            raise VragError(f"{self.where}, {name}: found {short_repr(found)}, expected a list.")
        return found


def _claimed(matrix: str) -> str:
    return _CLAIMED[matrix.partition("2")[2]]


def _count(found: Sequence[object], what: str) -> str:
    return f"{len(found)} {what}" if len(found) == 1 else f"{len(found)} {what}s"


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
    for where, part in (*((each.where, each.told) for each in found), (str(file), document)):
        if half := half_surrogate(part, text):
            raise VragError(f"{where}: {half}")
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
