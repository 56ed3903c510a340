"""The names under which endpoints answer: another model's, or another version's."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from vrag_kit.generation.answers import AnswerStore

SERVED = "served"
"""In an answer's fields, and a column of saved answers: what the endpoint calls the model."""


def other_names(asked: str, served: Sequence[str], what: str) -> str:
    """A line where answers (`what`) came from other models than `asked`, or from several
    versions of it; "" where all came from one.

    A version is the name with a date or number behind it ("gpt-4o-2024-08-06"), or a
    revision ("@main", ":latest"); "gpt-4o-mini" is another model than "gpt-4o".
    """
    counts = Counter(served)
    version = re.compile(rf"{re.escape(asked)}((-\d+)+|[@:].*)?")
    others = Counter({name: counts[name] for name in counts if not version.fullmatch(name)})
    if others:
        came = f"{others.total():,} of {len(served):,} {what} came from {counted(others)}"
        return f"{came}, not {asked!r}"
    return f"{what} came from {counted(counts)}" if len(counts) > 1 else ""


def counted(names: Counter[str]) -> str:
    """Names in quotes; of several each with its count."""
    if len(names) == 1:
        return repr(next(iter(names)))
    return ", ".join(f"{name!r} ({count:,})" for name, count in names.most_common())


def served_names(answers: pd.DataFrame, answers_dir: Path | str) -> pd.Series:
    """What the endpoint called the model, of each row of answers; "" where none did."""
    place = Path(answers_dir) / "answers.sqlite"
    if "answer_id" not in answers or not place.is_file():
        return pd.Series("", answers.index)
    with AnswerStore(place) as store:
        stored = store.read(list(answers["answer_id"].dropna().unique()))
    names = {each: answer.fields.get(SERVED, "") for each, answer in stored.items()}
    return answers["answer_id"].map(lambda each: names.get(each, "")).astype(object)
