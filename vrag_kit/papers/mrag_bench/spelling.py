"""How far the spelling of the options gives the answer away, and the same questions with
options spelt alike.

Often only the right option keeps ImageNet's form of a label: "wood_rabbit" among
"Eastern cottontail" and "Marsh rabbit".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from vrag_kit.analysis.intervals import summarise
from vrag_kit.analysis.mix import Mix
from vrag_kit.analysis.percent import in_percent
from vrag_kit.errors import VragError
from vrag_kit.judging.choice_reader import right_letters
from vrag_kit.order import ordered
from vrag_kit.papers.mrag_bench.audit import QUESTIONS
from vrag_kit.papers.mrag_bench.results import OVERALL, printed_range
from vrag_kit.papers.mrag_bench.settings import with_choices, with_queries
from vrag_kit.types import Benchmark, Query

SPOKE = {"right": 24, "wrong": 2, "silent": 14}
"""Of 40 questions with ImageNet's pictures that were read: how often the option that is
spelt apart is the right one, a wrong one, and how often there is none.
"""


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


def spelling_by_scenario(baseline: pd.DataFrame, *, mix: Mix | None) -> pd.DataFrame:
    """What the guesser of `spelling_baseline` scores, in percent: scenario ("overall"
    first), value, ci_low, ci_high, n (questions), spoke and right (on how many it spoke,
    and was right).

    Intervals are over groups; overall is in the proportions of `mix` (`papers_mix`).
    """
    rows = baseline.assign(value=baseline["expected"])
    overall = summarise(rows.assign(whole=OVERALL), ["whole"], mix=mix)
    means = [overall.rename(columns={"whole": "scenario"}), summarise(rows, ["scenario"])]
    both = pd.concat([rows.assign(scenario=OVERALL), rows])
    counts = both.groupby("scenario")[["spoke", "right"]].sum().reset_index()
    table = pd.concat(means, ignore_index=True).drop(columns="n_failed")
    return in_percent(table.assign(metric="accuracy by spelling")).merge(counts, on="scenario")


def guessed_table(guessed: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """`spelling_by_scenario` of several spellings side by side: scenario → "71.0 [60.1,
    80.2] (32 of 40)", on how many questions the spelling named the right option, of those
    on which it spoke; and what the paper's 14 models reach without examples.
    """
    columns = {}
    for name, table in guessed.items():
        cells = [
            f"{row['value']:.1f} [{row['ci_low']:.1f}, {row['ci_high']:.1f}]"
            f" ({row['right']} of {row['spoke']})"
            for row in table.to_dict("records")
        ]
        columns[name] = pd.Series(cells, table["scenario"])
    table = pd.DataFrame(columns).reindex([OVERALL, *QUESTIONS]).fillna("")
    printed = "no_rag: 14 models"
    return table.assign(**{f"{printed} (paper)": printed_range()[printed]})


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


def options_spelt_apart(benchmark: Benchmark, *, seed: int = 0) -> Benchmark:
    """A copy of questions whose options are spelt alike, with the trap set: in the shares
    of `SPOKE` the right option, or a wrong one, has ImageNet's form of a label
    ("wood_rabbit") and all others that of a name ("Marsh rabbit").

    It is no data of the paper's: it shows what `spelling_baseline` finds, and whether a
    model follows it. Options that are single letters stay. `seed` says which questions
    are which.
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
        new[choice] = _as_label(choice) if place == label else _as_name(choice)
    answers = tuple(new.get(answer, answer) for answer in query.answers)
    return with_choices(replace(query, answers=answers), tuple(map(new.__getitem__, query.choices)))


def _as_label(text: str) -> str:
    plain = spelt_alike(text)
    return plain if len(plain) < 2 else plain.replace(" ", "_")


def _as_name(text: str) -> str:
    plain = spelt_alike(text)
    return plain if len(plain) < 2 else plain[0].upper() + plain[1:]


def _has_underscore(choice: str) -> bool:
    return "_" in choice


def _is_lower(choice: str) -> bool:
    return choice.islower()
