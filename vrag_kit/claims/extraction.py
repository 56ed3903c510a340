"""Requests for the claims of answers and the verdicts on them, each made once for all rows that
share it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any  # cells of a table

from vrag_kit.claims.human_labels import ACCEPTED
from vrag_kit.claims.verdicts import (
    AnswerText,
    ClaimChecker,
    ClaimExtraction,
    ClaimExtractor,
    EntailmentRequest,
    VerdictRow,
    answer_document,
    entailment_label,
)
from vrag_kit.errors import VragError
from vrag_kit.types import Benchmark, Document, Failure, Query, Status

ANSWER = "answer"
"""The doc_id of an answer that is the evidence for gold claims."""


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """One row of a table of answers, with the inputs of its claim extraction and checking."""

    query: Query
    words: str  # "" where the model was silent
    items: tuple[Document, ...]  # as the answerer saw them
    failure: Failure | None  # why there is nothing to take apart
    claims: tuple[str, ...] | None = None  # taken out of the words before; None: not yet

    @property
    def said(self) -> AnswerText:
        """The answer, as the claim extractor takes it."""
        query = self.query
        return AnswerText(query_id=query.query_id, question=query.text, words=self.words)

    @property
    def answer(self) -> Document:
        """The answer as a document, against which gold claims are checked."""
        return answer_document(ANSWER, self.query.text, self.words)

    @property
    def accepted(self) -> tuple[Document, ...]:
        """The accepted answers as documents, against which claims are checked."""
        return tuple(
            answer_document(ACCEPTED, self.query.text, words)
            for words in reference_text(self.query)
        )


def reference_text(query: Query) -> tuple[str, ...]:
    """The reference answers of a query: its reference, where the data has one, else every accepted
    answer.
    """
    reference = query.metadata.get("reference")
    return (str(reference),) if reference else query.answers


class _ExtractionCache:
    """The claims of answers and of what is right, each taken out once."""

    def __init__(self, extractor: ClaimExtractor, rows: Iterable[ClaimRow]) -> None:
        said: dict[AnswerText, None] = {}
        for row in rows:
            if row.failure is None and row.words and row.claims is None:
                said[row.said] = None
            if row.failure is None and (right := _right(row.query)):
                said[right] = None
        self._found = dict(zip(said, extractor.extract(list(said)), strict=True))

    def claims(self, row: ClaimRow) -> ClaimExtraction:
        """Of an answer."""
        if row.claims is not None:
            return ClaimExtraction(claims=row.claims)
        return self._found[row.said] if row.words else ClaimExtraction()

    def gold(self, query: Query) -> ClaimExtraction:
        """Of what should have been answered; none where nobody knows."""
        if own := query.metadata.get("gold_claims"):
            return ClaimExtraction(claims=tuple(own))
        right = _right(query)
        return self._found[right] if right else ClaimExtraction()


def _right(query: Query) -> AnswerText | None:
    """The words that gold claims are taken out of; None where the data has its own, or
    answers are hidden.
    """
    known = reference_text(query)
    if query.metadata.get("gold_claims") or not known:
        return None
    return AnswerText(query_id=query.query_id, question=query.text, words=known[0])


class _VerdictCache:
    """The verdicts that are wanted, each asked for once."""

    def __init__(self) -> None:
        self._wanted: dict[tuple[object, ...], EntailmentRequest] = {}
        self._found: dict[tuple[object, ...], VerdictRow] = {}

    def request(self, row: ClaimRow, claims: tuple[str, ...], items: Iterable[Document]) -> None:
        """Have these claims held against each of these items."""
        for item in items if claims else ():
            checking = EntailmentRequest(query_id=row.query.query_id, claims=claims, item=item)
            self._wanted[_key(row, claims, item)] = checking

    def run(self, checker: ClaimChecker) -> None:
        """Get all that is wanted."""
        found = checker.check(list(self._wanted.values()))
        for key, judgments in zip(self._wanted, found, strict=True):
            self._found[key] = tuple(entailment_label(each) for each in judgments)

    def get(
        self, row: ClaimRow, claims: tuple[str, ...], items: Sequence[Document]
    ) -> tuple[VerdictRow, ...]:
        """Shape [claims][items]."""
        columns = [self._found[_key(row, claims, item)] if claims else () for item in items]
        places = range(len(claims))
        return tuple(tuple(column[place] for column in columns) for place in places)


def _key(row: ClaimRow, claims: tuple[str, ...], item: Document) -> tuple[object, ...]:
    return row.query.query_id, claims, item.doc_id, item.text, item.image is None


def claim_row(
    benchmark: Benchmark,
    row: Mapping[Hashable, Any],
    column: str,
    shown_as: Callable[[Document], Document],
) -> ClaimRow:
    """Builds the `ClaimRow` of a row of a table whose answers are in `column`. Raises `VragError`
    for a query or document that the benchmark lacks, and for a document with nothing to show.
    """
    query_id = row["query_id"]
    if query_id not in benchmark.queries:
        raise VragError(
            f"the answers hold one to {query_id!r}, which is no query of {benchmark.name}; expected"
            " answers to this benchmark."
        )
    items = tuple(_shown(benchmark, query_id, doc_id, shown_as) for doc_id in row["doc_ids"])
    status, words = Status(row["status"]), row[column]
    failure = None
    if not status.is_answer:
        failure = Failure(status, row["detail"])
    elif status is Status.OK and not isinstance(words, str):
        failure = Failure(Status.UNREADABLE, f"no words in the column {column!r}")
    said = words if status is Status.OK and failure is None else ""
    return ClaimRow(benchmark.queries[query_id], said, items, failure)


def _shown(
    benchmark: Benchmark, query_id: str, doc_id: str, shown_as: Callable[[Document], Document]
) -> Document:
    """A document as the answerer saw it."""
    if doc_id not in benchmark.corpus:
        raise VragError(
            f"claims of query {query_id!r}: it was shown {doc_id!r}, which is no document of"
            f" {benchmark.name}. Take the benchmark that the answers were asked with."
        )
    item = shown_as(benchmark.corpus[doc_id])
    if item.image is None and item.text is None:
        raise VragError(
            f"claims of query {query_id!r}: {doc_id!r} has neither a picture nor a text as it is"
            " shown; see `shown_as`."
        )
    return item
