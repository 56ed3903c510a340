"""Claim extraction and checking: a `ClaimVerdicts` for every row of a table of answers. Each text
is split once, and each request to the checker is made once for all rows that share it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, starmap
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
from vrag_kit.judging.scale import require_columns
from vrag_kit.log import logger
from vrag_kit.types import Benchmark, Document, Failure, Query, Status

_CELLS = ["sheet", "n_claims", "n_unparsed", "no_sheet"]
Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """One answer, with the inputs of its claim extraction and checking."""

    query: Query
    answer: str
    """"" where it is empty."""
    items: tuple[Document, ...]
    """The evidence, as the answerer saw it."""
    claims: Claims | None = None
    """The claims of the answer; None: to be extracted."""
    gold_claims: Claims | None = None
    """Likewise of the first reference answer."""
    failure: Failure | None = None
    """Why there are no claims."""

    @property
    def texts(self) -> dict[str, AnswerText]:
        """What to extract: "claims" or "gold_claims" → text."""
        reference = "".join(reference_answers(self.query)[:1])
        words = {"claims": (self.claims, self.answer), "gold_claims": (self.gold_claims, reference)}
        text = partial(AnswerText, query_id=self.query.query_id, question=self.query.text)
        missing = {name: each for name, (known, each) in words.items() if each and known is None}
        return {name: text(words=each) for name, each in missing.items() if self.failure is None}

    @property
    def blocks(self) -> list[tuple[Claims, Sequence[Document]]]:
        """Claims and what they are checked against: the claims of the answer against each item and
        each reference answer, the gold claims against each item and the answer, unless it is empty.
        """
        claims, gold = self.claims or (), self.gold_claims or ()
        document = partial(answer_document, question=self.query.text)
        references = [document(ACCEPTED, words=each) for each in reference_answers(self.query)]
        answer = [document("answer", words=self.answer)] if self.answer else []
        return [(claims, self.items), (claims, references), (gold, self.items), (gold, answer)]

    def requests(self, claims: Claims, items: Sequence[Document]) -> list[EntailmentRequest]:
        """The requests that check claims against each of the items; none without claims."""
        request = partial(EntailmentRequest, query_id=self.query.query_id, claims=claims)
        return [request(item=item) for item in items if claims]


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
    require_columns(answers, ["query_id", "model", "status", "doc_ids"], "check_answers")
    rows = [_row(benchmark, row) for row in answers.to_dict("records")]
    items = chain.from_iterable(row.items for row in rows)
    if checker.name in set(answers["model"]) and any(item.image is not None for item in items):
        raise VragError(f"checker {checker.name!r} answered too; set `checker` to another model.")
    cells = [
        (None, np.nan, np.nan, str(found))
        if isinstance(found, Failure)
        else (found, len(found.claims), found.n_missing, "")
        for found in check_rows(rows, extractor, checker)
    ]
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
    blocks = (starmap(row.requests, row.blocks) for row in ready if row.failure is None)
    wanted = chain.from_iterable(chain.from_iterable(blocks))
    requests = {_key(request): request for request in wanted}
    labels = dict(zip(requests, checker.check(list(requests.values())), strict=True))
    return [row.failure or _sheet(row, labels) for row in ready]


def _row(benchmark: Benchmark, row: Mapping[Hashable, Any]) -> ClaimRow:
    """Raises `VragError` for a query or document that the benchmark lacks, and for a document with
    nothing to show.
    """
    query_id, status = row["query_id"], Status(row["status"])
    if query_id not in benchmark.queries:
        raise VragError(f"an answer is to {query_id!r}, which is no query of {benchmark.name}.")
    items = []
    for doc_id in row["doc_ids"]:
        item = as_evidence(benchmark.corpus.get(doc_id) or Document(doc_id=doc_id))
        if item.image is None and item.text is None:
            raise VragError(f"claims of query {query_id!r}: {doc_id!r} has no image and no text.")
        items.append(item)
    query = benchmark.queries[query_id]
    gold = tuple(query.metadata.get("gold_claims") or ()) or None
    answer = row["answer"] if status is Status.OK else ""
    failure = None if status.is_answer else Failure(status, row["detail"])
    return ClaimRow(query, answer, tuple(items), gold_claims=gold, failure=failure)


def _with_claims(row: ClaimRow, extracted: Mapping[AnswerText, Claims | Failure]) -> ClaimRow:
    """The row with claims, or with the failure of their extraction."""
    found: dict[str, Any] = {name: extracted[text] for name, text in row.texts.items()}
    failures = [each for each in found.values() if isinstance(each, Failure)]
    return replace(row, failure=failures[0]) if failures else replace(row, **found)


def _key(request: EntailmentRequest) -> Key:
    item = request.item
    return request.query_id, request.claims, item.doc_id, item.text, item.image is None


def _sheet(row: ClaimRow, labels: Mapping[Key, tuple[Label, ...]]) -> ClaimVerdicts:
    blocks = []
    for claims, items in row.blocks:
        found = [labels[_key(request)] for request in row.requests(claims, items)]
        scores = np.array([[VERDICT_SCORES[label] for label in each] for each in found], float)
        blocks.append(scores.reshape(len(items), len(claims)).T)
    on_claims, accepted = blocks[:2]
    on_gold, recalled = blocks[2:]
    hidden = np.full(len(accepted), np.nan)
    right = combined_labels(accepted) if accepted.shape[1] else hidden
    if not row.answer:
        recalled = np.zeros((len(on_gold), 1))  # an empty answer recalls nothing
    kinds = ["text" if item.image is None else "image" for item in row.items]
    return ClaimVerdicts(
        query_id=row.query.query_id,
        claims=row.claims or (),
        gold_claims=row.gold_claims or (),
        items=tuple(map(EvidenceItem, [item.doc_id for item in row.items], kinds)),
        verdicts=np.block([[right[:, None], on_claims], [recalled, on_gold]]),
    )
