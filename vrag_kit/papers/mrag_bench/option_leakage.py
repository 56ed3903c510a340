"""Option-format leakage: how far the format of the options reveals the answer, and the same
questions with normalised options.

Often only the correct option keeps ImageNet's form of a label: "wood_rabbit" among "Eastern
cottontail" and "Marsh rabbit".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from string import ascii_uppercase

import numpy as np
import pandas as pd

from vrag_kit.analysis import column_means, to_percent
from vrag_kit.analysis.estimates import cluster_means
from vrag_kit.analysis.report_tables import ci_cells
from vrag_kit.analysis.strata import ALL
from vrag_kit.errors import VragError
from vrag_kit.judging.multiple_choice import correct_letters
from vrag_kit.papers.mrag_bench.audit import QUESTIONS
from vrag_kit.papers.mrag_bench.results import OVERALL, published_range
from vrag_kit.papers.mrag_bench.settings import with_choices, with_queries
from vrag_kit.types import Benchmark, Query, ordered

SPOKE = {"right": 24, "wrong": 2, "silent": 14}
"""Counts from 40 inspected questions with ImageNet images: how often the option with the odd format
is correct, incorrect, or there is none.
"""


def odd_format_option(choices: Sequence[str]) -> int | None:
    """Returns the position, from 0, of the only option with an underscore, else of the only one in
    lower case; None if there is neither.
    """
    for is_odd in (lambda choice: "_" in choice, str.islower):
        odd = [place for place, choice in enumerate(choices) if is_odd(choice)]
        if len(odd) == 1:
            return odd[0]
    return None


def option_format_baseline(benchmark: Benchmark) -> pd.DataFrame:
    """Scores a baseline that guesses from option format alone, one row per query.

    Columns: query_id, scenario, group, option (the one with the odd format, "" if none), guessed,
    correct, expected. `correct` is whether that option is an accepted answer; `expected` is its
    score, or the mean score of a random option where no option has an odd format.
    """
    rows = []
    for query_id, query in benchmark.queries.items():
        place, right = odd_format_option(query.choices), correct_letters(query)
        option = "" if place is None else ascii_uppercase[place]
        correct = bool(option) and option in right
        rows.append(
            {
                "query_id": query_id,
                "scenario": query.metadata["scenario"],
                "group": query.group,
                "option": option,
                "guessed": bool(option),
                "correct": correct,
                "expected": float(correct) if option else len(right) / len(query.choices),
            }
        )
    return pd.DataFrame(rows)


def option_format_by_scenario(baseline: pd.DataFrame, *, weights: pd.Series | None) -> pd.DataFrame:
    """Averages `option_format_baseline` by scenario, in percent. Columns: scenario ("overall"
    first), value, ci_low, ci_high, n (questions), n_guessed and n_correct (questions with an odd
    option, and with a correct one).

    Intervals are over groups; overall is weighted by `weights` (`scenario_weights`).
    """
    rows = baseline.assign(value=baseline["expected"])
    overall = cluster_means(rows.assign(whole=OVERALL), ["whole"], weights=weights)
    means = [overall.rename(columns={"whole": "scenario"}), cluster_means(rows, ["scenario"])]
    both = pd.concat([rows.assign(scenario=OVERALL), rows])
    counts = both.groupby("scenario")[["guessed", "correct"]].sum().add_prefix("n_")
    table = pd.concat(means, ignore_index=True).drop(columns="n_failed")
    return to_percent(table.assign(metric="accuracy from option format")).merge(
        counts.reset_index(), on="scenario"
    )


def option_format_table(guessed: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Formats `option_format_by_scenario` of several option formats as columns: scenario → "71.0
    [60.1, 80.2] (32 of 40)". The counts are questions guessed correctly, of those with an odd
    option. The last column is the range of the paper's 14 models without examples.
    """
    columns = {}
    for name, table in guessed.items():
        counts = table["n_correct"].astype(str) + " of " + table["n_guessed"].astype(str)
        columns[name] = (ci_cells(table) + " (" + counts + ")").set_axis(table["scenario"])
    table = pd.DataFrame(columns).reindex([OVERALL, *QUESTIONS]).fillna("")
    printed = "no_rag: 14 models"
    return table.assign(**{f"{printed} (reported)": published_range()[printed]})


def normalise_option(text: str) -> str:
    """Normalises an option's format: spaces for underscores and between joined words, lower case;
    single letters stay.
    """
    if len(text.strip()) < 2:
        return text.strip()
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text.replace("_", " "))
    return " ".join(apart.split()).lower()


def with_normalised_options(benchmark: Benchmark) -> Benchmark:
    """Returns the same questions with `normalise_option` applied to options and answers: an arm
    compared with the original options.

    Raises `VragError` for a query if two options become equal.
    """
    queries = {}
    for query_id, query in benchmark.queries.items():
        choices = tuple(map(normalise_option, query.choices))
        if len(set(choices)) < len(choices):
            raise VragError(
                f"query {query_id!r}: spelt alike, its options {', '.join(query.choices)} are no"
                " longer different; leave it out with `benchmark.subset(query_ids)`."
            )
        answers = tuple(map(normalise_option, query.answers))
        queries[query_id] = with_choices(replace(query, answers=answers), choices)
    return with_queries(benchmark, queries, "options spelt alike")


def with_planted_cue(benchmark: Benchmark, *, seed: int = 0) -> Benchmark:
    """Returns a copy of questions with normalised options in which a format cue is planted. In the
    shares of `SPOKE` the correct option, or an incorrect one, has ImageNet's form of a label
    ("wood_rabbit") and all others that of a name ("Marsh rabbit").

    These are not the paper's data: they show what `option_format_baseline` detects, and whether a
    model follows the cue. Options that are single letters stay. `seed` selects the questions of
    each kind.
    """
    kinds = list(Counter(SPOKE).elements())
    shuffled = ordered(benchmark.queries, seed, "spelt apart")
    queries = dict(benchmark.queries)
    for place, query_id in enumerate(shuffled):
        kind = kinds[place * len(kinds) // len(shuffled)]
        queries[query_id] = _respelt(queries[query_id], kind)
    return with_queries(benchmark, queries, f"options spelt apart, seed {seed}")


def _respelt(query: Query, kind: str) -> Query:
    """The query with the first option that is right, or that is wrong, as a label."""
    sought = kind == "right"
    places = [i for i, text in enumerate(query.choices) if (text in query.answers) == sought]
    label = places[0] if places and kind != "silent" else None
    new = {}
    for place, choice in enumerate(query.choices):
        plain = normalise_option(choice)
        name = plain if len(plain) < 2 else plain[0].upper() + plain[1:]
        new[choice] = plain.replace(" ", "_") if place == label else name
    answers = tuple(new.get(answer, answer) for answer in query.answers)
    return with_choices(replace(query, answers=answers), tuple(map(new.__getitem__, query.choices)))


AS_THEY_ARE = "original"
NORMALISED = "normalised"
APART = "planted"
NAMES_RIGHT = "cue on the correct option"
NAMES_WRONG = "cue on an incorrect option"
SILENT = "no cue"
STRATA = (NAMES_RIGHT, SILENT, NAMES_WRONG)


def option_format_variants(benchmark: Benchmark, *, seed: int = 0) -> dict[str, Benchmark]:
    """Returns the questions with original options, with normalised options and, if the originals
    have no cue, with a planted one (`with_planted_cue`).

    A question is not in the normalised arm if two of its options become equal.
    """
    kept = [name for name, query in benchmark.queries.items() if _stay_different(query)]
    alike = benchmark if len(kept) == len(benchmark.queries) else benchmark.subset(kept)
    arms = {AS_THEY_ARE: benchmark, NORMALISED: with_normalised_options(alike)}
    if not option_format_baseline(benchmark)["guessed"].any():
        arms[APART] = with_planted_cue(benchmark, seed=seed)
    return arms


def with_cue_strata(judged: pd.DataFrame, arms: Mapping[str, Benchmark]) -> pd.DataFrame:
    """Adds the column stratum: first the strata of `STRATA`, by the format cue of a question in the
    arm that has one, then all rows again as `ALL`.

    In an arm without the cue the strata have the same questions: their scores there are not due to
    the cue. The column `named` is the score where the cue is on the correct option, else 0, and
    missing where the score is.
    """
    speaking = arms.get(APART, arms[AS_THEY_ARE])
    said = option_format_baseline(speaking).set_index("query_id")
    kinds = np.select([said["correct"], said["guessed"]], [NAMES_RIGHT, NAMES_WRONG], SILENT)
    strata = judged["query_id"].map(pd.Series(kinds, said.index))
    is_named = strata == NAMES_RIGHT
    named = judged["score"].where(is_named | judged["score"].isna(), 0.0)
    every = judged.assign(named=named)
    parts = [every[strata == name].assign(stratum=name) for name in STRATA]
    return pd.concat([*parts, every.assign(stratum=ALL)], ignore_index=True)


def explained_by_cue(strata: pd.DataFrame, *, weights: pd.Series | None) -> pd.DataFrame:
    """Computes the part of each model's accuracy from questions with the cue on the correct option:
    the most that the cue could explain. In percent: model, setting, metric ("accuracy" or "of it,
    with the cue on the correct option"), value, ci_low, ci_high, n, n_failed.

    `strata` come from `with_cue_strata`. In the normalised arm, it is the score of the same
    questions without the cue.
    """
    rows = strata[strata["stratum"] == ALL]
    means = column_means(rows, ["score", "named"], by=["model", "setting"], weights=weights)
    words = {"score": "accuracy", "named": "of it, with the cue on the correct option"}
    return to_percent(means.assign(metric=means["metric"].map(words)))


def _stay_different(query: Query) -> bool:
    """Whether the options differ in more than their spelling."""
    return len(set(map(normalise_option, query.choices))) == len(query.choices)
