"""Claim extraction and checking: a `ClaimVerdicts` for every row of a table of answers. Each text
is split once, and each request to the checker is made once for all rows that share it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any  # cells of a table

import numpy as np
import pandas as pd

from vrag_kit.claims.metrics import combined_labels
from vrag_kit.claims.verdicts import (
    ACCEPTED,
    VERDICT_SCORES,
    AnswerText,
    ClaimChecker,
    ClaimExtractor,
    Claims,
    ClaimVerdicts,
    EntailmentRequest,
    EvidenceItem,
    Label,
)
from vrag_kit.errors import VragError
from vrag_kit.log import logger
from vrag_kit.tables import require_columns
from vrag_kit.types import Benchmark, Document, Failure, Query, Status

_CELLS = ["sheet", "n_claims", "n_unparsed", "no_sheet"]
Key = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRow:
    """One answer, with the inputs of its claim extraction and checking."""

    query_id: str
    texts: Mapping[str, AnswerText] = field(default_factory=dict)
    """What to extract: "claims" or "gold_claims" → text."""
    claims: Claims = ()
    gold_claims: Claims = ()
    items: tuple[Document, ...] = ()
    """The evidence, as the answerer saw it."""
    accepted: tuple[Document, ...] = ()
    """The reference answers, against which claims are checked."""
    answer: tuple[Document, ...] = ()
    """The answer, against which gold claims are checked; none if it is empty."""
    failure: Failure | None = None
    """Why the answer has no claims."""


def claim_row(
    query: Query,
    answer: str,
    items: Iterable[Document],
    claims: Claims | None = None,
    gold_claims: Claims | None = None,
) -> ClaimRow:
    """Returns the row of an answer, "" where it is empty. Claims that are None are extracted: from
    the answer, and from the first reference answer.
    """
    references = reference_answers(query)
    words = {
        "claims": answer if claims is None else "",
        "gold_claims": references[0] if references and gold_claims is None else "",
    }
    text = partial(AnswerText, query_id=query.query_id, question=query.text)
    return ClaimRow(
        query_id=query.query_id,
        texts={name: text(words=each) for name, each in words.items() if each},
        claims=claims or (),
        gold_claims=gold_claims or (),
        items=tuple(items),
        accepted=tuple(answer_document(ACCEPTED, query.text, each) for each in references),
        answer=(answer_document("answer", query.text, answer),) if answer else (),
    )


def reference_answers(query: Query) -> tuple[str, ...]:
    """The reference answers of a query: its reference, where the data has one, else every accepted
    answer.
    """
    reference = query.metadata.get("reference")
    return (str(reference),) if reference else query.answers


def answer_document(name: str, question: str, words: str) -> Document:
    """Return an answer as a document that claims can be checked against.
    Its text is question and answer, which gives a bare "red" its context; its doc_id is `name`.
    """
    return Document(doc_id=name, text=f"{question} {words}")


def as_evidence(document: Document) -> Document:
    """Return a document as answerer and checker see it: an image without its caption, a page
    without its sidecar text, a text unchanged.
    """
    return document if document.image is None else replace(document, text=None)


def check_answers(
    benchmark: Benchmark, answers: pd.DataFrame, extractor: ClaimExtractor, checker: ClaimChecker
) -> pd.DataFrame:
    """Extracts and checks the claims of every answer. Adds the columns sheet (a `ClaimVerdicts`, or
    None), n_claims, n_unparsed (missing verdicts of the sheet) and no_sheet (why there is none).

    Gold claims are the query's gold_claims; else they are extracted from its reference or first
    accepted answer. A claim is accepted when one of the accepted answers (or the reference, where
    there is one) entails it. An empty or truncated answer has a sheet without claims, which recalls
    nothing; a failed call, and an answer whose claims could not be parsed, have none.

    Prints how many sheets and verdicts are missing. Raises `VragError` for a document that is not
    in the corpus, or that has nothing to show, and where the checker is the model that answered and
    there are images.
    """
    require_columns(answers, ["query_id", "status", "doc_ids"], "check_answers")
    rows = [_row(benchmark, row) for row in answers.to_dict("records")]
    items = chain.from_iterable(row.items for row in rows)
    answered = "model" in answers and checker.name in set(answers["model"])
    if answered and any(item.image is not None for item in items):
        raise VragError(
            f"checker {checker.name!r} answered too, and would repeat its own errors about the same"
            " images. Set `checker` to another model."
        )
    cells: list[tuple[object, ...]] = []
    for found in check_rows(rows, extractor, checker):
        if isinstance(found, Failure):
            cells.append((None, np.nan, np.nan, str(found)))
        else:
            cells.append((found, len(found.claims), found.n_missing, ""))
    table = pd.DataFrame(cells, columns=_CELLS, index=answers.index)
    sheets = table["sheet"].dropna()
    logger.info(
        f"claims by {extractor.name}, checked by {checker.name}: {len(sheets):,} sheets of"
        f" {len(table):,} answers, {sum(sheet.verdicts.size for sheet in sheets):,} verdicts,"
        f" {int(table['n_unparsed'].sum()):,} of them missing"
    )
    reasons = table["no_sheet"][table["sheet"].isna()]
    if len(reasons):
        logger.info(f'  {len(reasons):,} answers have no sheet, such as "{reasons.iloc[0]}"')
    return answers.assign(**{str(name): column for name, column in table.items()})


def check_rows(
    rows: Sequence[ClaimRow], extractor: ClaimExtractor, checker: ClaimChecker
) -> list[ClaimVerdicts | Failure]:
    """Extracts and checks the claims of each row, and returns its sheet or the failure. Requests
    that several rows share are made once.
    """
    texts = list(dict.fromkeys(chain.from_iterable(row.texts.values() for row in rows)))
    extracted = dict(zip(texts, extractor.extract(texts), strict=True))
    ready = [_with_claims(row, extracted) for row in rows]
    requests = {_key(request): request for request in chain.from_iterable(map(_requests, ready))}
    labels = dict(zip(requests, checker.check(list(requests.values())), strict=True))
    return [row.failure or _sheet(row, labels) for row in ready]


def _row(benchmark: Benchmark, row: Mapping[Hashable, Any]) -> ClaimRow:
    """Raises `VragError` for a query or document that the benchmark lacks, and for a document with
    nothing to show.
    """
    query_id, status = row["query_id"], Status(row["status"])
    if query_id not in benchmark.queries:
        raise VragError(
            f"an answer is to {query_id!r}, which is no query of {benchmark.name}; expected answers"
            " to this benchmark."
        )
    items = []
    for doc_id in row["doc_ids"]:
        if doc_id not in benchmark.corpus:
            raise VragError(
                f"claims of query {query_id!r}: {doc_id!r} is no document of {benchmark.name};"
                " expected the benchmark of these answers."
            )
        items.append(as_evidence(benchmark.corpus[doc_id]))
        if items[-1].image is None and items[-1].text is None:
            raise VragError(f"claims of query {query_id!r}: {doc_id!r} has no image and no text.")
    query = benchmark.queries[query_id]
    if not status.is_answer:
        return ClaimRow(query_id=query_id, failure=Failure(status, row["detail"]))
    gold = tuple(query.metadata.get("gold_claims") or ()) or None
    return claim_row(query, row["answer"] if status is Status.OK else "", items, gold_claims=gold)


def _with_claims(row: ClaimRow, extracted: Mapping[AnswerText, Claims | Failure]) -> ClaimRow:
    found: dict[str, Any] = {name: extracted[text] for name, text in row.texts.items()}
    failures = [each for each in found.values() if isinstance(each, Failure)]
    return replace(row, failure=failures[0]) if failures else replace(row, **found)


def _requests(row: ClaimRow) -> list[EntailmentRequest]:
    if row.failure is not None:
        return []
    pairs = [(row.claims, item) for item in (*row.items, *row.accepted)]
    pairs += [(row.gold_claims, item) for item in (*row.items, *row.answer)]
    request = partial(EntailmentRequest, query_id=row.query_id)
    return [request(claims=claims, item=item) for claims, item in pairs if claims]


def _key(request: EntailmentRequest) -> Key:
    item = request.item
    return request.query_id, request.claims, item.doc_id, item.text, item.image is None


def _sheet(row: ClaimRow, labels: Mapping[Key, tuple[Label, ...]]) -> ClaimVerdicts:
    def verdicts(claims: Claims, items: Sequence[Document]) -> np.ndarray:
        """Shape [claims, items]."""
        request = partial(EntailmentRequest, query_id=row.query_id, claims=claims)
        found = [labels[_key(request(item=item))] for item in items if claims]
        scores = [[VERDICT_SCORES[label] for label in each] for each in found]
        return np.array(scores, float).reshape(len(items), len(claims)).T

    accepted = np.full((len(row.claims), 1), np.nan)  # where accepted answers are hidden
    if row.accepted:
        accepted[:, 0] = combined_labels(verdicts(row.claims, row.accepted))
    recalled = np.zeros((len(row.gold_claims), 1))  # an empty answer recalls nothing
    if row.answer:
        recalled = verdicts(row.gold_claims, row.answer)
    on_claims, on_gold = verdicts(row.claims, row.items), verdicts(row.gold_claims, row.items)
    kinds = ["text" if item.image is None else "image" for item in row.items]
    return ClaimVerdicts(
        query_id=row.query_id,
        claims=row.claims,
        gold_claims=row.gold_claims,
        items=tuple(map(EvidenceItem, [item.doc_id for item in row.items], kinds)),
        verdicts=np.block([[accepted, on_claims], [recalled, on_gold]]),
    )
