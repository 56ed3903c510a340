"""Human labels of answers: sampling, label files, and joining with the judge's verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from vrag_kit.benchmarks.sources import read_csv_rows
from vrag_kit.errors import VragError
from vrag_kit.files import project_path
from vrag_kit.judging.scale import SHARES, Scale, require_columns, scale_of
from vrag_kit.log import logger
from vrag_kit.types import ordered

LABEL_SCORES = {"true": 1.0, "partial": 0.5, "false": 0.0}
"""Label of a person (Visual-RAG, Table 9) → its position on the scale, from 0 to 1."""
_KEY = ["query_id", "answer"]
HUMAN_LABEL_COLUMNS = [*_KEY, "label", "annotator"]
_ARM = ["model", "setting", "k"]
_ROW = [*_ARM, "draw", "sample", "query_id"]


def label_of_score(score: float, scale: Scale = SHARES) -> str:
    """Return a judge's score as a label: "true" for the best score, "false" for the worst.
    Any other score is "partial", also a mean over verdicts that differ.
    """
    return {scale.best: "true", scale.worst: "false"}.get(score, "partial")


def score_of_label(label: str, scale: Scale = SHARES) -> float:
    """Return the score of a label on a judge's scale; partial is its middle."""
    return scale.worst + scale.width * LABEL_SCORES[label]


def annotation_sample(
    judged: pd.DataFrame, n: int, *, of_each: Sequence[str] = _ARM, seed: int = 0
) -> pd.DataFrame:
    """Draw a random sample of `n` rows of each arm of a table of answers, in random order.

    An arm is a combination of the columns `of_each`; an arm with fewer rows gives all of them. With
    `of_each` empty, `n` rows of the whole table are drawn. Only rows with the status "ok" are
    drawn: an empty or truncated answer gets the worst score, and needs no label. Within an arm
    every row is equally likely, as prediction-powered inference assumes. The draw depends on model,
    setting, k, m, draw, sample and query, not on the text of an answer. A larger sample begins with
    the smaller one. Equal answers to a query may be drawn more than once: they are labelled once,
    and the label applies to each of the *drawn* rows, which keep their weight. It does not apply to
    equal answers that were not drawn: frequent answers would count twice. The added column arm_size
    is the number of rows of the same model, setting and k that could have been drawn. Raises
    `VragError` for `n` below 1, for fewer than `n` answers in all, or for two rows with the same
    key.
    """
    good = judged[judged["status"] == "ok"]
    if not 1 <= n <= len(good):
        raise VragError(
            f"{n:,} answers to label are asked for; expected 1 to {len(good):,}, the number of"
            " answers that did not fail."
        )
    names = _names(good)
    if twice := list(names[names.duplicated()]):
        raise VragError(
            f"two answers are both {twice[0]!r}; expected one answer for each {', '.join(_ROW)}, m."
        )
    good = good.assign(arm_size=good.groupby(_ARM)["status"].transform("size"))
    good = good.set_index(names).loc[ordered(names, seed, "label")]
    place = good.groupby(list(of_each) or (lambda _: "all")).cumcount()
    chosen = place[place < n].sort_values(kind="stable").index
    return good.loc[chosen].reset_index(drop=True)


def _names(answers: pd.DataFrame) -> pd.Series:
    """One name a row; m stands in it where clues were counted."""
    names = answers[_ROW].astype(str).agg("/".join, axis=1)
    if "m" not in answers:
        return names
    counted = answers["m"].fillna(0).astype(int)
    return names.where(counted == 0, names + "/m=" + counted.astype(str))


def read_human_labels(path: Path | str) -> pd.DataFrame:
    """Read human labels from a CSV file, one row per query and answer.
    Columns: query_id, answer, label ("true", "partial" or "false"), annotator.

    Raises `VragError` naming the line for a missing column, a row that is too long or too short, an
    unknown label, an empty query or annotator, and an answer labelled twice. Also raises it for a
    file that is missing or not UTF-8.
    """
    lines: dict[tuple[str, str], int] = {}
    rows = []
    advice = "Write some with `label_answers`, or set `labels` to another file."
    for number, row in read_csv_rows(project_path(path), HUMAN_LABEL_COLUMNS, "labels", advice):
        key = (row["query_id"], row["answer"])
        if row["label"] not in LABEL_SCORES:
            expected = ", ".join(LABEL_SCORES)
            problem = f"found label {row['label']!r}; expected one of {expected}"
        elif empty := [name for name in ("query_id", "annotator") if not row[name]]:
            problem = f"the {empty[0]} is empty; expected a name"
        elif key in lines:
            problem = f"this answer to {key[0]!r} has a label already, in line {lines[key]}"
        else:
            lines[key] = number
            rows.append(row)
            continue
        raise VragError(f"{path} line {number}: {problem}.")
    return pd.DataFrame(rows, columns=HUMAN_LABEL_COLUMNS, dtype=object)


def select_labels(labels: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `labels` (`read_human_labels`) whose query and answer are in `answers`.
    Prints their number and annotators, and what to do if none is left.
    """
    mine = labels[_are_labels_of(labels, answers)]
    who = ", ".join(mine["annotator"].unique())
    advice = f", by {who}" if who else "; label some, and set `labels` to your file"
    logger.info(f"{len(mine):,} of {len(labels):,} labels are of these answers{advice}")
    return mine


def _are_labels_of(labels: pd.DataFrame, answers: pd.DataFrame) -> np.ndarray:
    """Whether the query and answer of each label are in a table of answers."""
    known = pd.MultiIndex.from_frame(answers[_KEY])
    return pd.MultiIndex.from_frame(labels[_KEY]).isin(known)


def join_labels(sample: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `sample` that have a label and a verdict.
    Added columns: human_label, judge_label, annotator and weight; `score` is the judge's.

    `sample` is the result of `annotation_sample` on judged answers. weight is the number of answers
    of its arm (model, setting, k) that a labelled row represents. With it, estimates over all arms
    refer to all answers, whatever number of each was labelled. Prints how many sampled answers have
    a label, and how many labels match none of them, as after a change of the model.
    """
    require_columns(sample, [*_KEY, "group", "score", "arm_size"], "join_labels")
    labels = labels.drop_duplicates(_KEY, keep="last").rename(columns={"label": "human_label"})
    rows = sample.merge(labels[[*_KEY, "human_label", "annotator"]], on=_KEY, how="left")
    labelled = rows["human_label"].notna()
    unused = (~_are_labels_of(labels, sample)).sum()
    logger.info(
        f"labels: {labelled.sum():,} of {len(rows):,} sampled answers have one; {unused:,} of"
        f" {len(labels):,} labels belong to none of them",
    )
    rows = rows[labelled & rows["score"].notna()]
    scale, sizes = scale_of(sample), rows.groupby(_ARM)["human_label"].transform("size")
    judge = [label_of_score(score, scale) for score in rows["score"]]
    return rows.assign(judge_label=judge, weight=rows["arm_size"] / sizes).reset_index(drop=True)
