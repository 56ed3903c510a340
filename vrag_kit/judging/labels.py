"""Human labels of answers: which answers to label, how labels are kept in a file, and
how they meet the judge's verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.order import ordered
from vrag_kit.tables import read_rows, write_rows

LABELS = {"true": 1.0, "partial": 0.5, "false": 0.0}
"""What a person says of an answer, as in the paper's Table 9 → its score."""
COLUMNS = ["query_id", "answer", "label", "labeller"]
_ROW = ["model", "setting", "k", "draw", "sample", "query_id"]


def label_of_score(score: float) -> str:
    """A judge's score as a label: 1 is true, 0 is false, anything between is partial
    (also a mean over verdicts that differ).
    """
    return "true" if score == 1 else "false" if score == 0 else "partial"


def sample_to_label(judged: pd.DataFrame, n: int, *, seed: int = 0) -> pd.DataFrame:
    """A simple random sample of `n` rows of a table of answers, in random order; only
    rows with the status "ok" are drawn.

    Every row is as likely as any other, as prediction-powered inference assumes. Which
    rows are drawn depends on their model, setting, k, draw, sample and query, not on
    their words, and a larger sample begins with the smaller one. Equal answers to a
    query may be drawn more than once: they are one thing to label, and its label goes
    to each of the *drawn* rows, so that they keep their weight. It does not go to equal
    answers that were not drawn: frequent answers would count twice. Raises `VragError`
    when there are fewer than `n` answers, or two with the same names.
    """
    good = judged[judged["status"] == "ok"]
    if not 1 <= n <= len(good):
        raise VragError(
            f"{n:,} answers to label are asked for; expected 1 to {len(good):,}, the number of"
            " answers that did not fail."
        )
    names = good[_ROW].astype(str).agg("/".join, axis=1)
    if twice := list(names[names.duplicated()]):
        raise VragError(
            f"two answers are both {twice[0]!r}; expected one answer for each {', '.join(_ROW)}."
        )
    return good.set_index(names).loc[ordered(names, seed, "label")[:n]].reset_index(drop=True)


def read_labels(path: Path | str) -> pd.DataFrame:
    """The labels in a CSV file: query_id, answer, label ("true", "partial" or "false"),
    labeller; one row for each query and answer.

    Raises `VragError` naming the line for a missing column, a row that is too long or
    too short, an unknown label, an empty query or labeller, and an answer labelled
    twice; and for a file that is missing or not UTF-8.
    """
    lines: dict[tuple[str, str], int] = {}
    rows: list[tuple[str, ...]] = []
    for number, row in read_rows(
        Path(path),
        COLUMNS,
        "labels",
        "Write some with `label_answers`, or set `labels` to another file.",
    ):
        where = f"{path} line {number}"
        key = _checked(row, where)
        if key in lines:
            raise VragError(
                f"{where}: this answer to {key[0]!r} has a label already, in line {lines[key]};"
                " keep one of them, or a file for each labeller."
            )
        lines[key] = number
        rows.append(tuple(row[name] for name in COLUMNS))
    return pd.DataFrame(rows, columns=COLUMNS, dtype=object)


def write_labels(path: Path | str, labels: pd.DataFrame) -> None:
    """Write labels as `read_labels` reads them, replacing the file only once the new
    one is complete. Raises `OSError` when it cannot be written.
    """
    write_rows(Path(path), COLUMNS, labels[COLUMNS].itertuples(index=False))


def labelled(sample: pd.DataFrame, labels: pd.DataFrame, groups: Mapping[str, str]) -> pd.DataFrame:
    """The rows of `sample` that have a label and a verdict, with the columns human and
    judge (labels) and group (the species); `score` is the judge's.

    `sample` is what `sample_to_label` drew from judged answers. Says how many of its
    answers have no label, and how many labels belong to none of them, as happens when a
    model was changed since.
    """
    said = dict(
        zip(zip(labels["query_id"], labels["answer"], strict=True), labels["label"], strict=True)
    )
    keys = list(zip(sample["query_id"], sample["answer"], strict=True))
    found, unused = sum(key in said for key in keys), len(set(said) - set(keys))
    print(
        f"labels: {found:,} of {len(keys):,} sampled answers have one; {unused:,} of {len(said):,}"
        " labels belong to none of them",
        flush=True,
    )
    rows = sample.assign(human=[said.get(key) for key in keys])
    rows = rows[rows["human"].notna() & rows["score"].notna()]
    return rows.assign(
        judge=rows["score"].map(label_of_score), group=rows["query_id"].map(groups)
    ).reset_index(drop=True)


def _checked(row: Mapping[str, str], where: str) -> tuple[str, str]:
    query_id, answer, label, labeller = (row[name] for name in COLUMNS)
    if label not in LABELS:
        raise VragError(f"{where}: found the label {label!r}, expected one of {', '.join(LABELS)}.")
    if not query_id or not labeller:
        raise VragError(
            f"{where}: the {'query_id' if not query_id else 'labeller'} is empty; expected a name."
        )
    return query_id, answer
