"""Claim extraction and checking: a `ClaimVerdicts` for every row of a table of answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np
import pandas as pd

from vrag_kit.claims.extraction import ClaimRow, _ExtractionCache, _VerdictCache, claim_row
from vrag_kit.claims.metrics import combined_label
from vrag_kit.claims.verdicts import (
    ClaimChecker,
    ClaimExtractor,
    ClaimVerdicts,
    EntailmentLabel,
    EvidenceItem,
    VerdictRow,
)
from vrag_kit.errors import VragError
from vrag_kit.log import logger
from vrag_kit.tables import require_columns
from vrag_kit.types import Benchmark, Document, Failure


def image_only(evidence: Document) -> Document:
    """Keeps an image without its caption, a page without its sidecar text, and texts unchanged."""
    return evidence if evidence.image is None else replace(evidence, text=None)


def with_caption(evidence: Document) -> Document:
    """Keeps an image with its caption, where it has one."""
    return evidence


def text_only(evidence: Document) -> Document:
    """Keeps only the text: the caption of an image, or the sidecar text of a page."""
    return replace(evidence, image=None)


def check_answers(
    benchmark: Benchmark,
    answers: pd.DataFrame,
    extractor: ClaimExtractor,
    checker: ClaimChecker,
    *,
    column: str = "answer",
    shown_as: Callable[[Document], Document] = image_only,
) -> pd.DataFrame:
    """Extracts and checks the claims of every answer. Adds the columns sheet (a `ClaimVerdicts`, or
    None), n_claims, n_unparsed (missing verdicts of the sheet) and no_sheet (why there is none).

    `column` holds the texts from which claims are extracted. `shown_as` gives a document as the
    answerer saw it, and as the checker sees it. Gold claims are the query's gold_claims; else they
    are extracted from its reference or first accepted answer. A claim is accepted when one of the
    accepted answers (or the reference, where there is one) entails it. An empty or truncated answer
    has a sheet without claims, which recalls nothing; a failed call, and an answer whose claims
    could not be parsed, have none. Requests that several rows share are made once.

    Prints how many sheets and verdicts are missing. Raises `VragError` for a document that is not
    in the corpus, or that has nothing to show, and where the checker is the model that answered and
    there are images.
    """
    require_columns(answers, ["query_id", "status", "doc_ids"], "check_answers")
    rows = [claim_row(benchmark, row, column, shown_as) for row in answers.to_dict("records")]
    _check_eyes(checker, answers, rows)
    found = check_rows(rows, extractor, checker)
    table = pd.DataFrame([_cells(each) for each in found], columns=_CELLS, index=answers.index)
    _tell(table, extractor.name, checker.name)
    return answers.assign(**{str(name): cells for name, cells in table.items()})


def check_rows(
    rows: Sequence[ClaimRow], extractor: ClaimExtractor, checker: ClaimChecker
) -> list[ClaimVerdicts | Failure]:
    """Checks the claims of each row, and returns its sheet or the failure. Requests that several
    rows share are made once.
    """
    told = _ExtractionCache(extractor, rows)
    verdicts = _VerdictCache()
    for row in rows:
        _want(row, told, verdicts)
    verdicts.run(checker)
    return [_sheet(row, told, verdicts) for row in rows]


_CELLS = ["sheet", "n_claims", "n_unparsed", "no_sheet"]


def _check_eyes(checker: ClaimChecker, answers: pd.DataFrame, rows: Sequence[ClaimRow]) -> None:
    models = set(answers["model"]) if "model" in answers else set()
    items = chain.from_iterable(row.items for row in rows)
    pictures = any(item.image is not None for item in items)
    if checker.name in models and pictures:
        raise VragError(
            f"checker {checker.name!r} answered too, and would look at the same pictures by the"
            " same eyes. Set `checker` to another model."
        )


def _want(row: ClaimRow, extractions: _ExtractionCache, verdicts: _VerdictCache) -> None:
    """All verdicts of a sheet."""
    if row.failure is None:
        claims, gold = extractions.claims(row).claims, extractions.gold(row.query).claims
        verdicts.request(row, claims, (*row.items, *row.accepted))
        verdicts.request(row, gold, (*row.items, *((row.answer,) if row.words else ())))


def _sheet(
    row: ClaimRow, extractions: _ExtractionCache, verdicts: _VerdictCache
) -> ClaimVerdicts | Failure:
    if row.failure is not None:
        return row.failure
    said, right = extractions.claims(row), extractions.gold(row.query)
    if failure := said.failure or right.failure:
        return failure
    claims, gold = said.claims, right.claims
    accepted: VerdictRow = (None,) * len(claims)  # where accepted answers are hidden
    if row.accepted:
        accepted = tuple(combined_label(each) for each in verdicts.get(row, claims, row.accepted))
    recalled: VerdictRow = (EntailmentLabel.NEUTRAL,) * len(gold)  # by silence
    if row.words:
        recalled = tuple(label for (label,) in verdicts.get(row, gold, (row.answer,)))
    on_claims, on_gold = (verdicts.get(row, each, row.items) for each in (claims, gold))
    query_id, items = row.query.query_id, tuple(map(_item, row.items))
    sheet = partial(ClaimVerdicts, query_id=query_id, claims=claims, gold_claims=gold, items=items)
    return sheet(accepted=accepted, recalled=recalled, on_claims=on_claims, on_gold=on_gold)


def _item(shown: Document) -> EvidenceItem:
    return EvidenceItem(shown.doc_id, "text" if shown.image is None else "image")


def _cells(found: ClaimVerdicts | Failure) -> tuple[object, ...]:
    """The columns of a row."""
    if isinstance(found, Failure):
        return None, np.nan, np.nan, str(found)
    return found, len(found.claims), found.unread, ""


def _tell(table: pd.DataFrame, extractor: str, checker: str) -> None:
    """Print what is missing."""
    none, unread = int((table["no_sheet"] != "").sum()), int(table["n_unparsed"].sum())
    sheets = table["sheet"].dropna()
    verdicts = sum(len(each.verdicts) for each in sheets)
    logger.info(
        f"claims by {extractor}, checked by {checker}: {len(sheets):,} sheets of"
        f" {len(table):,} answers, {verdicts:,} verdicts, {unread:,} of them missing",
    )
    if none:
        why = table["no_sheet"][table["no_sheet"] != ""].iloc[0]
        logger.info(f'  {none:,} answers have no sheet, such as "{why}"')
