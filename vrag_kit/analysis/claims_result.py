"""One result of a RAGChecker file: its texts, claims and labels."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any  # what JSON holds

from vrag_kit.analysis.claims import ClaimVerdicts, EvidenceItem, Label, VerdictRow
from vrag_kit.benchmarks.images import ImageFile
from vrag_kit.errors import VragError, short_repr
from vrag_kit.files import safe_join
from vrag_kit.judging.claims import EntailmentLabel
from vrag_kit.types import Document

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
