"""How far the spelling of the options gives the answer away, and the same questions with
options spelt alike.

Often only the right option keeps ImageNet's form of a label: "wood_rabbit" among
"Eastern cottontail" and "Marsh rabbit".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.papers.mrag_bench.choice_judge import right_letters
from vrag_kit.papers.mrag_bench.settings import with_choices, with_queries
from vrag_kit.types import Benchmark


def spelt_apart(choices: Sequence[str]) -> int | None:
    """The place, from 0, of the only option with an underscore, else of the only one in
    lower case; None where there is neither.
    """
    for is_odd in (_has_underscore, _is_lower):
        odd = [place for place, choice in enumerate(choices) if is_odd(choice)]
        if len(odd) == 1:
            return odd[0]
    return None


def spelling_baseline(benchmark: Benchmark) -> pd.DataFrame:
    """What a guesser scores who looks at nothing but the spelling: one row a query.

    Columns: query_id, scenario, group, letter (the option that is spelt apart, "" where
    none is), spoke, right, expected. `right` is whether that option is an accepted
    answer; `expected` the score of drawing among all options where it does not speak.
    """
    rows = []
    for query_id, query in benchmark.queries.items():
        place = spelt_apart(query.choices)
        letters = right_letters(query)
        letter = "" if place is None else chr(ord("A") + place)
        right = bool(letter) and letter in letters
        by_chance = len(letters) / len(query.choices) if query.choices else float("nan")
        rows.append(
            {
                "query_id": query_id,
                "scenario": query.metadata.get("scenario", ""),
                "group": query.group,
                "letter": letter,
                "spoke": bool(letter),
                "right": right,
                "expected": float(right) if letter else by_chance,
            }
        )
    columns = ["query_id", "scenario", "group", "letter", "spoke", "right", "expected"]
    return pd.DataFrame(rows, columns=columns)


def spelt_alike(text: str) -> str:
    """An option in one spelling: spaces for underscores and between words run together,
    lower case; single letters stay.
    """
    if len(text.strip()) < 2:
        return text.strip()
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text.replace("_", " "))
    return " ".join(apart.split()).lower()


def options_spelt_alike(benchmark: Benchmark) -> Benchmark:
    """The same questions with `spelt_alike` options and answers: an arm beside the
    options as they are.

    Raises `VragError` for a query two of whose options then are equal.
    """
    queries = {}
    for query_id, query in benchmark.queries.items():
        choices = tuple(map(spelt_alike, query.choices))
        if len(set(choices)) < len(choices):
            raise VragError(
                f"query {query_id!r}: spelt alike, its options {', '.join(query.choices)} are no"
                " longer different; leave it out with `benchmark.subset(query_ids)`."
            )
        answers = tuple(map(spelt_alike, query.answers))
        queries[query_id] = with_choices(replace(query, answers=answers), choices)
    return with_queries(benchmark, queries, "options spelt alike")


def _has_underscore(choice: str) -> bool:
    return "_" in choice


def _is_lower(choice: str) -> bool:
    return choice.islower()
