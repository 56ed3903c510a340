"""Option selection rates by letter, and consistency of answers when options are rotated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_uppercase

import pandas as pd

from vrag_kit.analysis import column_means
from vrag_kit.errors import VragError
from vrag_kit.judging.multiple_choice import correct_letters, read_choice
from vrag_kit.papers.mrag_bench.results import with_scenarios
from vrag_kit.types import Benchmark, Query

NO_LETTER = "none"
"""Value of option where no single letter was parsed."""
SAME, ALL_RIGHT = "same option in all", "right in all"
_OF_QUERY = ["query_id", "group", "scenario", "aspect", "stratum"]


def with_options(judged: pd.DataFrame, benchmark: Benchmark) -> pd.DataFrame:
    """Adds the columns of `with_scenarios`, correct_option (its letter), option (the parsed letter,
    or "none"; missing where the call failed) and option_text (its text, or "").

    `benchmark` is the one behind the answers: rotated, if the options were.
    """
    letters, options = [], []
    for query_id, answer in judged[["query_id", "answer"]].itertuples(index=False, name=None):
        query = benchmark.queries[query_id]
        letter = _letter(query, answer)
        letters.append(letter)
        at = ascii_uppercase.find(letter) if letter and letter != NO_LETTER else None
        options.append("" if at is None else query.choices[at])
    right = judged["query_id"].map(lambda query_id: correct_letters(benchmark.queries[query_id]))
    told = with_scenarios(judged, benchmark)
    chosen = pd.Series(letters, judged.index, dtype=object)
    return told.assign(correct_option=right, option=chosen, option_text=options)


def option_selection_rates(
    judged: pd.DataFrame,
    *,
    weights: pd.Series | None,
    by: Sequence[str] = ("model", "setting"),
) -> pd.DataFrame:
    """Computes the share of answers that choose each letter, or "none": `by`, option, metric
    ("selection_rate"), value, ci_low, ci_high, n, n_failed, as shares. Takes `with_options`.
    """
    letters = [*sorted({*"ABCD", *judged["option"].dropna()} - {NO_LETTER}), NO_LETTER]
    said = judged["option"].notna()
    columns = {letter: (judged["option"] == letter).astype(float) for letter in letters}
    marked = judged.assign(**{name: column.where(said) for name, column in columns.items()})
    table = column_means(marked, letters, by=by, weights=weights)
    return table.rename(columns={"metric": "option"}).assign(metric="selection_rate")


def rotation_consistency(
    rotations: Mapping[int, pd.DataFrame],
    *,
    weights: pd.Series | None,
    by: Sequence[str] = ("model",),
) -> pd.DataFrame:
    """Computes how consistent answers are under rotations of the options: `by`, metric, value,
    ci_low, ci_high, n, n_failed, as shares of questions.

    metric is `SAME` (one option was chosen, by its text, under all rotations) or `ALL_RIGHT` (and
    it was correct, which guessing achieves in 1 of 256). `rotations` maps the rotation of the
    options to a table of `with_options`; a question without an answer under one of them is
    excluded. Raises `VragError` for fewer than two.
    """
    if len(rotations) < 2:
        raise VragError(
            f"rotation_consistency: {len(rotations)} rotation of the options; expected two or more."
        )
    every = pd.concat(list(rotations.values()), ignore_index=True)
    keys = list(dict.fromkeys([*by, *_OF_QUERY]))
    asked = every.groupby(keys, sort=False, dropna=False)
    options = asked["option_text"].agg(["nunique", "min"])
    answered = asked["option"].count() == len(rotations)
    same = (options["nunique"] == 1) & (options["min"] != "")
    steady = pd.DataFrame(
        {
            SAME: same.astype(float).where(answered),
            ALL_RIGHT: asked["score"].min().where(answered),
        }
    )
    return column_means(steady.reset_index(), [SAME, ALL_RIGHT], by=by, weights=weights)


def _letter(query: Query, answer: str | None) -> str | None:
    """What was chosen; None where the call failed."""
    if not isinstance(answer, str):
        return None
    return read_choice(answer, query.choices).letter or NO_LETTER
