"""Human labels of answers: which answers to label, how labels are kept in a file, and
how they meet the judge's verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.frames import require_columns
from vrag_kit.judging.scale import SHARES, Scale, scale_of
from vrag_kit.order import ordered
from vrag_kit.tables import read_rows, write_rows

LABELS = {"true": 1.0, "partial": 0.5, "false": 0.0}
"""What a person says of an answer (Visual-RAG, Table 9) → how far up the scale it is."""
COLUMNS = ["query_id", "answer", "label", "labeller"]
_ARM = ["model", "setting", "k"]
_ROW = [*_ARM, "draw", "sample", "query_id"]


def label_of_score(score: float, scale: Scale = SHARES) -> str:
    """A judge's score as a label: the best of its scale is true, the worst is false,
    anything between is partial (also a mean over verdicts that differ).
    """
    return {scale.best: "true", scale.worst: "false"}.get(score, "partial")


def score_of_label(label: str, scale: Scale = SHARES) -> float:
    """What an answer with a label earns on a judge's scale; partial is its middle."""
    return scale.worst + scale.width * LABELS[label]


def sample_to_label(
    judged: pd.DataFrame, n: int, *, of_each: Sequence[str] = _ARM, seed: int = 0
) -> pd.DataFrame:
    """A random sample of `n` rows of each arm of a table of answers, all where an arm
    has fewer, in random order; with `of_each` empty, of `n` rows of all.

    An arm is a combination of the columns `of_each`. Only rows with the status "ok" are
    drawn: what is empty or cut off earns the worst, and needs no label. Within an arm
    every row is as likely as any other, as prediction-powered inference assumes. Which
    rows are drawn depends on their model, setting, k, m, draw, sample and query, not on
    their words, and a larger sample begins with the smaller one. Equal answers to a
    query may be drawn more than once: they are one thing to label, and its label goes
    to each of the *drawn* rows, so that they keep their weight. It does not go to equal
    answers that were not drawn: frequent answers would count twice. The added column
    arm_size is the number of rows of the same model, setting and k that could have been
    drawn. Raises `VragError` for n below 1, when there are fewer than `n` answers in
    all, or two with the same names.
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
    if not of_each:
        return good.head(n).reset_index(drop=True)
    place = good.groupby(list(of_each)).cumcount()
    chosen = good.assign(place=place)[place < n].sort_values("place", kind="stable")
    return chosen.drop(columns="place").reset_index(drop=True)


def _names(answers: pd.DataFrame) -> pd.Series:
    """One name a row; m stands in it where clues were counted."""
    names = answers[_ROW].astype(str).agg("/".join, axis=1)
    if "m" not in answers:
        return names
    counted = answers["m"].fillna(0).astype(int)
    return names.where(counted == 0, names + "/m=" + counted.astype(str))


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


def labels_in_hand(labels: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """The rows of `labels`, as `read_labels` has them, whose answer is among `answers`, to
    the same query; those of other models or data are not. Prints how many these are and
    by whom, and what to do where there are none.
    """
    there = set(zip(answers["query_id"], answers["answer"], strict=True))
    pairs = list(zip(labels["query_id"], labels["answer"], strict=True))
    mine = labels[pd.Series([pair in there for pair in pairs], labels.index, dtype=bool)]
    others = f"{len(labels) - len(mine):,} of {len(labels):,} labels are of other answers"
    if mine.empty:
        told = f"no label is of these answers; {others}. Label some, and set `labels` to your file"
    else:
        who = ", ".join(mine["labeller"].unique())
        told = f"{len(mine):,} labels of these answers, by {who}"
        told += f"; {others}, and left out" if len(mine) < len(labels) else ""
    print(told, flush=True)
    return mine


def write_labels(path: Path | str, labels: pd.DataFrame) -> None:
    """Write labels as `read_labels` reads them, replacing the file only once the new
    one is complete. Raises `OSError` when it cannot be written.
    """
    write_rows(Path(path), COLUMNS, labels[COLUMNS].itertuples(index=False))


def labelled(sample: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """The rows of `sample` that have a label and a verdict, with the columns human and
    judge (labels), labeller and weight; `score` is the judge's.

    `sample` is what `sample_to_label` drew from judged answers. weight is how many
    answers of its arm (model, setting, k) a row stands for, among those labelled: so
    estimates over all arms are of all answers, however many of each were labelled. Says
    how many answers of the sample have no label, and how many labels belong to none of
    them, as happens when a model was changed since.
    """
    require_columns(sample, ["query_id", "group", "answer", "score"], "labelled")
    if "arm_size" not in sample:
        raise VragError(
            "labelled: the sample has no column 'arm_size', which weighs its labels; draw it with"
            " `sample_to_label`."
        )
    of_answers = list(zip(labels["query_id"], labels["answer"], strict=True))
    said = dict(zip(of_answers, labels["label"], strict=True))
    by = dict(zip(of_answers, labels["labeller"], strict=True))
    keys = list(zip(sample["query_id"], sample["answer"], strict=True))
    found, unused = sum(key in said for key in keys), len(set(said) - set(keys))
    print(
        f"labels: {found:,} of {len(keys):,} sampled answers have one; {unused:,} of {len(said):,}"
        " labels belong to none of them",
        flush=True,
    )
    human = pd.Series([said.get(key) for key in keys], index=sample.index, dtype=object)
    labeller = pd.Series([by.get(key) for key in keys], index=sample.index, dtype=object)
    rows = sample.assign(human=human, labeller=labeller)
    rows = rows[rows["human"].notna() & rows["score"].notna()]
    scale, sizes = scale_of(sample), rows.groupby(_ARM)["human"].transform("size")
    judge = [label_of_score(score, scale) for score in rows["score"]]
    return rows.assign(judge=judge, weight=rows["arm_size"] / sizes).reset_index(drop=True)


def _checked(row: Mapping[str, str], where: str) -> tuple[str, str]:
    """(query_id, answer) of a row whose cells are as they should be."""
    if row["label"] not in LABELS:
        raise VragError(
            f"{where}: found the label {row['label']!r}, expected one of {', '.join(LABELS)}."
        )
    for name in ("query_id", "labeller"):
        if not row[name]:
            raise VragError(f"{where}: the {name} is empty; expected a name.")
    return row["query_id"], row["answer"]
