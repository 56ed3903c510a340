"""Human labels of claims: what to label, annotators' CSV files, and verdicts by their labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from vrag_kit.benchmarks.sources import read_csv_rows
from vrag_kit.claims.verdicts import (
    ACCEPTED,
    LABEL_NAMES,
    VERDICT_SCORES,
    ClaimVerdicts,
    EntailmentLabel,
)
from vrag_kit.errors import VragError
from vrag_kit.files import project_path
from vrag_kit.judging.scale import require_columns
from vrag_kit.log import logger

_ANSWER = "answer: "
_COLUMNS = ["query_id", "claim", "item", "label", "annotator"]


class ClaimPair(NamedTuple):
    """A claim and the item that it is checked against: the unit that gets a label."""

    query_id: str
    claim: str
    item: str
    """A doc_id; or `ACCEPTED`; or "answer: …", the text of an answer, for a gold claim."""


PAIR = list(ClaimPair._fields)
Labels = Mapping[ClaimPair, EntailmentLabel]


def read_annotator_labels(
    *paths: Path | str, only: str = ""
) -> dict[str, dict[ClaimPair, EntailmentLabel]]:
    """Read labels of claims from CSV files, one row per claim and item: annotator → labels.
    Columns: query_id, claim, item, label (ENTAILMENT, NEUTRAL or CONTRADICTION), annotator.

    Raises `VragError` naming the line for a missing column, an unknown label, an empty cell, a
    claim and item that an annotator labels twice, and a label by anybody but `only`, if given. Also
    raises it for a file that is missing or not UTF-8.
    """
    advice = "Write some with `label_claims`, or name another file in `labelling`."
    found: dict[str, dict[ClaimPair, EntailmentLabel]] = {}
    for path in paths:
        for number, row in read_csv_rows(project_path(path), _COLUMNS, "labels", advice):
            annotator, pair = row["annotator"], ClaimPair(*(row[name] for name in PAIR))
            labels = found.setdefault(annotator, {})
            if empty := [name for name in _COLUMNS if not row[name]]:
                problem = f"the {empty[0]} is empty; expected text"
            elif row["label"] not in list(EntailmentLabel):
                expected = ", ".join(EntailmentLabel)
                problem = f"found the label {row['label']!r}; expected one of {expected}"
            elif only and annotator != only:
                problem = f"found a label of {annotator!r}; expected only labels of {only!r}"
            elif pair in labels:
                problem = f"{annotator!r} has labelled this claim for {pair.item!r} before"
            else:
                labels[pair] = EntailmentLabel(row["label"])
                continue
            raise VragError(f"{path} line {number}: {problem}.")
    return found


def verdict_rows(table: pd.DataFrame, sheets: str = "sheet") -> pd.DataFrame:
    """One row per verdict of the sheets in a column, row by row of each sheet: row (the position of
    the answer in `table`), query_id, group, of ("claims" or "gold claims"), evidence_kind ("image",
    "text", or "answer" where an answer is the evidence), claim, item (as in `ClaimPair`), score
    (the number of the verdict). Rows without a sheet have none.
    """
    require_columns(table, [sheets], "verdict_rows")
    rows: list[tuple[object, ...]] = []
    for number, row in enumerate(table.to_dict("records")):
        sheet, answer = row[sheets], row.get("answer")
        if not isinstance(sheet, ClaimVerdicts):
            continue
        answer_item = _ANSWER + (answer if isinstance(answer, str) else "")
        claims = [("claims", claim, ACCEPTED) for claim in sheet.claims]
        claims += [("gold claims", claim, answer_item) for claim in sheet.gold_claims]
        items = [(item.doc_id, item.modality) for item in sheet.items]
        for (of, claim, first), scores in zip(claims, sheet.verdicts, strict=True):
            for (item, kind), score in zip([(first, "answer"), *items], scores, strict=True):
                pair = (sheet.query_id, claim, item)
                rows.append((number, row.get("group"), *pair, of, kind, score))
    return pd.DataFrame(rows, columns=["row", "group", *PAIR, "of", "evidence_kind", "score"])


def rows_to_label(sample: pd.DataFrame, sheets: str = "sheet") -> pd.DataFrame:
    """The rows of `verdict_rows` that need a label: an empty answer recalls nothing, whoever reads
    it.
    """
    rows = verdict_rows(sample, sheets)
    return rows[rows["item"] != _ANSWER]


def pairs_to_label(sample: pd.DataFrame) -> list[ClaimPair]:
    """Lists the pairs that give every sheet of `sample` true labels, each claim and item once.
    Those of the first answer come first.

    `sample` has the columns sheet and answer, as `annotation_sample` draws from a table of
    `check_answers`.
    """
    return list(dict.fromkeys(claim_pairs(rows_to_label(sample))))


def labels_from_verdicts(sample: pd.DataFrame, *, sheets: str) -> dict[ClaimPair, EntailmentLabel]:
    """Collects the labels in the column `sheets` of `sample`, without missing verdicts, in the form
    of `add_human_verdicts`.
    """
    known = rows_to_label(sample, sheets).dropna(subset="score")
    labels = map(EntailmentLabel, known["score"].map(LABEL_NAMES))
    return dict(zip(claim_pairs(known), labels, strict=True))


def add_human_verdicts(sample: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """Adds the column true_sheet to `sample`: its sheet with human labels, None where one of them
    is missing. Prints how many are complete.
    """
    rows = verdict_rows(sample)
    by_label = [VERDICT_SCORES[labels.get(pair)] for pair in claim_pairs(rows)]
    scores = rows["score"].where(rows["item"] == _ANSWER, by_label)
    sheets: list[ClaimVerdicts | None] = []
    for number, sheet in enumerate(sample["sheet"]):
        known = scores[rows["row"] == number].to_numpy(float)
        complete = isinstance(sheet, ClaimVerdicts) and not np.isnan(known).any()
        verdicts = known.reshape(sheet.verdicts.shape) if complete else known
        sheets.append(replace(sheet, verdicts=verdicts) if complete else None)
    n = len(sheets) - sheets.count(None)
    logger.info(f"labels: {n:,} of {len(sheets):,} sheets have all of theirs")
    return sample.assign(true_sheet=pd.Series(sheets, index=sample.index, dtype=object))


def claim_pairs(rows: pd.DataFrame) -> list[ClaimPair]:
    """The pair of each of `verdict_rows`."""
    return [ClaimPair(*row) for row in rows[PAIR].itertuples(index=False)]
