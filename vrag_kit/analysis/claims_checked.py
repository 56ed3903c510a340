"""Answers taken apart and checked: a `ClaimSheet` for every row of a table of answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np
import pandas as pd

from vrag_kit.analysis.claims import ClaimSheet, Item, Row
from vrag_kit.analysis.claims_asked import AskedRow, Told, Verdicts, asked_row
from vrag_kit.analysis.claims_evidence import label_of
from vrag_kit.errors import VragError
from vrag_kit.frames import require_columns
from vrag_kit.judging.claims import ClaimChecker, ClaimExtractor, Relation
from vrag_kit.types import Benchmark, Evidence, Failure


def as_picture(evidence: Evidence) -> Evidence:
    """A picture without its caption, a page without its sidecar text; texts as they are."""
    return evidence if evidence.image is None else replace(evidence, text=None)


def with_caption(evidence: Evidence) -> Evidence:
    """A picture with its caption, where it has one."""
    return evidence


def as_text(evidence: Evidence) -> Evidence:
    """The text alone: a caption, or the sidecar of a page, in the picture's place."""
    return replace(evidence, image=None)


def with_claims(
    benchmark: Benchmark,
    answers: pd.DataFrame,
    extractor: ClaimExtractor,
    checker: ClaimChecker,
    *,
    column: str = "answer",
    shown_as: Callable[[Evidence], Evidence] = as_picture,
) -> pd.DataFrame:
    """The table of answers with the columns sheet (a `ClaimSheet`, or None), n_claims,
    n_unread (verdicts that are missing in the sheet) and no_sheet (why there is none).

    `column` holds the words that are taken apart. `shown_as` says how the answerer saw a
    document: the checker sees it so too. Gold claims are the query's own (its
    gold_claims); else they are taken out of its reference or first accepted answer. A
    claim is accepted when one of the accepted answers (or the reference, where there is
    one) entails it. An answer that the model left empty, or that was cut off, has a sheet
    without claims, which recalls nothing; a failed call, and an answer whose claims could
    not be read, have none. What is the same in several rows is asked once.

    Prints how many sheets and verdicts are missing. Raises `VragError` for a document that
    is not in the corpus, or that has nothing to show, and where the checker is the model
    that answered and there are pictures.
    """
    require_columns(answers, ["query_id", "status", "doc_ids"], "with_claims")
    rows = [asked_row(benchmark, row, column, shown_as) for row in answers.to_dict("records")]
    _check_eyes(checker, answers, rows)
    found = sheets_of(rows, extractor, checker)
    table = pd.DataFrame([_cells(each) for each in found], columns=_CELLS, index=answers.index)
    _tell(table, extractor.name, checker.name)
    return answers.assign(**{str(name): cells for name, cells in table.items()})


def sheets_of(
    rows: Sequence[AskedRow], extractor: ClaimExtractor, checker: ClaimChecker
) -> list[ClaimSheet | Failure]:
    """The sheet of each answer, or why it has none; what several have in common is asked
    once.
    """
    told = Told(extractor, rows)
    verdicts = Verdicts()
    for row in rows:
        _want(row, told, verdicts)
    verdicts.ask(checker)
    return [_sheet(row, told, verdicts) for row in rows]


_CELLS = ["sheet", "n_claims", "n_unread", "no_sheet"]


def _check_eyes(checker: ClaimChecker, answers: pd.DataFrame, rows: Sequence[AskedRow]) -> None:
    models = set(answers["model"]) if "model" in answers else set()
    items = chain.from_iterable(row.items for row in rows)
    pictures = any(item.image is not None for item in items)
    if checker.name in models and pictures:
        raise VragError(
            f"checker {checker.name!r} answered too, and would look at the same pictures by the"
            " same eyes. Set `checker` to another model."
        )


def _want(row: AskedRow, told: Told, verdicts: Verdicts) -> None:
    """All verdicts of a sheet."""
    if row.failure is None:
        claims, gold = told.claims(row).claims, told.gold(row.query).claims
        verdicts.want(row, claims, (*row.items, *row.accepted))
        verdicts.want(row, gold, (*row.items, *((row.answer,) if row.words else ())))


def _sheet(row: AskedRow, told: Told, verdicts: Verdicts) -> ClaimSheet | Failure:
    if row.failure is not None:
        return row.failure
    said, right = told.claims(row), told.gold(row.query)
    if failure := said.failure or right.failure:
        return failure
    claims, gold = said.claims, right.claims
    accepted: Row = (None,) * len(claims)  # where accepted answers are hidden
    if row.accepted:
        accepted = tuple(label_of(each) for each in verdicts.of(row, claims, row.accepted))
    recalled: Row = (Relation.NEUTRAL,) * len(gold)  # by silence
    if row.words:
        recalled = tuple(label for (label,) in verdicts.of(row, gold, (row.answer,)))
    on_claims, on_gold = (verdicts.of(row, each, row.items) for each in (claims, gold))
    query_id, items = row.query.query_id, tuple(map(_item, row.items))
    sheet = partial(ClaimSheet, query_id=query_id, claims=claims, gold_claims=gold, items=items)
    return sheet(accepted=accepted, recalled=recalled, on_claims=on_claims, on_gold=on_gold)


def _item(shown: Evidence) -> Item:
    return Item(shown.doc_id, "text" if shown.image is None else "image")


def _cells(found: ClaimSheet | Failure) -> tuple[object, ...]:
    """The columns of a row."""
    if isinstance(found, Failure):
        return None, np.nan, np.nan, str(found)
    return found, len(found.claims), found.unread, ""


def _tell(table: pd.DataFrame, extractor: str, checker: str) -> None:
    """Print what is missing."""
    none, unread = int((table["no_sheet"] != "").sum()), int(table["n_unread"].sum())
    sheets = table["sheet"].dropna()
    verdicts = sum(len(each.verdicts) for each in sheets)
    print(
        f"claims by {extractor}, checked by {checker}: {len(sheets):,} sheets of"
        f" {len(table):,} answers, {verdicts:,} verdicts, {unread:,} of them missing",
        flush=True,
    )
    if none:
        why = table["no_sheet"][table["no_sheet"] != ""].iloc[0]
        print(f'  {none:,} answers have no sheet, such as "{why}"', flush=True)
