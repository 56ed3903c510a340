"""Which letters answers choose, and whether they keep to an option that changes its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_uppercase

import pandas as pd

from vrag_kit.analysis import Mix, column_means
from vrag_kit.errors import VragError
from vrag_kit.judging.choice_reader import read_choice, right_letters
from vrag_kit.papers.mrag_bench.results import with_scenarios
from vrag_kit.types import Benchmark, Query

NO_LETTER = "none"
"""Said of an answer in which no single letter was read."""
SAME, ALL_RIGHT = "same option in all", "right in all"
_OF_QUERY = ["query_id", "group", "scenario", "aspect", "stratum"]


def with_letters(judged: pd.DataFrame, benchmark: Benchmark) -> pd.DataFrame:
    """The table of answers as `with_scenarios` gives it, with the columns right (the
    letter of the right option), chosen (the letter that was read, or "none"; missing
    where the call failed) and option (the text of the chosen one, or "").

    `benchmark` is the one that was asked: rotated, where the options were.
    """
    letters, options = [], []
    for query_id, answer in judged[["query_id", "answer"]].itertuples(index=False, name=None):
        query = benchmark.queries[query_id]
        letter = _letter(query, answer)
        letters.append(letter)
        at = ascii_uppercase.find(letter) if letter and letter != NO_LETTER else None
        options.append("" if at is None else query.choices[at])
    right = judged["query_id"].map(lambda query_id: right_letters(benchmark.queries[query_id]))
    told = with_scenarios(judged, benchmark)
    chosen = pd.Series(letters, judged.index, dtype=object)
    return told.assign(right=right, chosen=chosen, option=options)


def letters_chosen(
    judged: pd.DataFrame, *, mix: Mix | None, by: Sequence[str] = ("model", "setting")
) -> pd.DataFrame:
    """Share of the answers that choose each letter, or "none": `by`, letter, metric
    ("chosen"), value, ci_low, ci_high, n, n_failed, as shares. Takes `with_letters`.
    """
    letters = [*sorted({*"ABCD", *judged["chosen"].dropna()} - {NO_LETTER}), NO_LETTER]
    said = judged["chosen"].notna()
    columns = {letter: (judged["chosen"] == letter).astype(float) for letter in letters}
    marked = judged.assign(**{name: column.where(said) for name, column in columns.items()})
    table = column_means(marked, letters, by=by, mix=mix)
    return table.rename(columns={"metric": "letter"}).assign(metric="chosen")


def over_rotations(
    rotations: Mapping[int, pd.DataFrame], *, mix: Mix | None, by: Sequence[str] = ("model",)
) -> pd.DataFrame:
    """How steady answers are when the same options stand at other letters: `by`, metric,
    value, ci_low, ci_high, n, n_failed, as shares of questions.

    metric is `SAME` (one option was chosen, by its text, under all rotations) or
    `ALL_RIGHT` (and it was the right one, which guessing does in 1 of 256). `rotations`
    are tables of `with_letters`, by how far the options were rotated; a question without
    an answer under one of them is none. Raises `VragError` for fewer than two.
    """
    if len(rotations) < 2:
        raise VragError(
            f"over_rotations: {len(rotations)} rotation of the options; expected two or more."
        )
    every = pd.concat(list(rotations.values()), ignore_index=True)
    keys = list(dict.fromkeys([*by, *_OF_QUERY]))
    asked = every.groupby(keys, sort=False, dropna=False)
    options = asked["option"].agg(["nunique", "min"])
    answered = asked["chosen"].count() == len(rotations)
    same = (options["nunique"] == 1) & (options["min"] != "")
    steady = pd.DataFrame(
        {
            SAME: same.astype(float).where(answered),
            ALL_RIGHT: asked["score"].min().where(answered),
        }
    )
    return column_means(steady.reset_index(), [SAME, ALL_RIGHT], by=by, mix=mix)


def _letter(query: Query, answer: str | None) -> str | None:
    """What was chosen; None where the call failed."""
    if not isinstance(answer, str):
        return None
    return read_choice(answer, query.choices).letter or NO_LETTER
