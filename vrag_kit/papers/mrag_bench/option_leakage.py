"""Option-format leakage: how far the format of the options reveals the answer, and the same
questions with normalised options.

Often only the correct option keeps ImageNet's form of a label: "wood_rabbit" among "Eastern
cottontail" and "Marsh rabbit".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from string import ascii_uppercase

import numpy as np
import pandas as pd

from vrag_kit.judging.multiple_choice import correct_letters
from vrag_kit.papers.mrag_bench.results import with_scenarios
from vrag_kit.papers.mrag_bench.settings import with_choices
from vrag_kit.types import Benchmark, Query, ordered

SPOKE = {"right": 24, "wrong": 2, "silent": 14}
"""Counts from 40 inspected questions with ImageNet images: how often the option with the odd format
is correct, incorrect, or there is none.
"""

CUE = (
    "A cue is the only option with an underscore, else the only one in lower case. Options are"
    " original (as in the data), normalised (all in one format: no cue), or, where the data have no"
    " cue, planted: each with a capital first, but for a cue (such as wood_rabbit) on the correct"
    " option of 24 questions in 40 and on an incorrect one of 2."
)
"""What captions say of cues and of the variants of options."""


def odd_format_option(choices: Sequence[str]) -> str:
    """Returns the letter of the only option with an underscore, else of the only one in lower case;
    "" if there is neither.
    """
    for is_odd in (lambda choice: "_" in choice, str.islower):
        odd = [place for place, choice in enumerate(choices) if is_odd(choice)]
        if len(odd) == 1:
            return ascii_uppercase[odd[0]]
    return ""


def option_format_baseline(benchmark: Benchmark) -> pd.DataFrame:
    """Scores a baseline that guesses from option format alone, as a table of judged answers, one
    row per query, with the columns of `with_scenarios` and option (the one with the odd format, ""
    if none), guessed and correct (bool).

    The score is that of the odd option, or the mean score of a random option where there is none.
    """
    rows = []
    for query_id, query in benchmark.queries.items():
        option, right = odd_format_option(query.choices), correct_letters(query)
        correct = bool(option) and option in right
        score = float(correct) if option else len(right) / len(query.choices)
        row = {"query_id": query_id, "group": query.group, "option": option}
        rows.append(row | {"guessed": bool(option), "correct": correct, "score": score})
    table = pd.DataFrame(rows)
    answered = table.assign(model="option format", status="ok", abstained=0.0, marks="")
    return with_scenarios(answered, benchmark)


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
    compared with the original options. Questions whose options become equal are left out.
    """
    queries = {}
    for query_id, query in benchmark.queries.items():
        normal = _respelt(query, normalise_option)
        if len(set(normal.choices)) == len(query.choices):
            queries[query_id] = normal
    alike = benchmark.subset(queries) if len(queries) < len(benchmark.queries) else benchmark
    return alike.derive("options spelt alike", queries=queries)


def _respelt(query: Query, spell: Callable[[str], str]) -> Query:
    answers = tuple(map(spell, query.answers))
    return with_choices(replace(query, answers=answers), tuple(map(spell, query.choices)))


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
        query, kind = queries[query_id], kinds[place * len(kinds) // len(shuffled)]
        cued = [text for text in query.choices if (text in query.answers) == (kind == "right")]
        label = cued[0] if cued and kind != "silent" else None
        queries[query_id] = _respelt(query, partial(_planted, label=label))
    return benchmark.derive(f"options spelt apart, seed {seed}", queries=queries)


def _planted(text: str, label: str | None) -> str:
    """A text in the form of a label if it is `label`, else in that of a name."""
    plain = normalise_option(text)
    if text == label:
        return plain.replace(" ", "_")
    return plain if len(plain) < 2 else plain[0].upper() + plain[1:]


def option_format_variants(benchmark: Benchmark, *, seed: int = 0) -> dict[str, Benchmark]:
    """Returns the questions with original options, with normalised options and, if the originals
    have no cue, with a planted one (`with_planted_cue`).

    A question is not in the normalised arm if two of its options become equal.
    """
    arms = {"original": benchmark, "normalised": with_normalised_options(benchmark)}
    if not option_format_baseline(benchmark)["guessed"].any():
        arms["planted"] = with_planted_cue(benchmark, seed=seed)
    return arms


def with_cue_strata(judged: pd.DataFrame, arms: Mapping[str, Benchmark]) -> pd.DataFrame:
    """Returns the answers with the column stratum, by the format cue of a question in the arm that
    has one: "cue on the correct option", "no cue" or "cue on an incorrect option", in this order.

    In an arm without the cue the strata have the same questions: their scores there are not due to
    the cue. The column `named` is the score where the cue is on the correct option, else 0, and
    missing where the score is.
    """
    cues = option_format_baseline(arms.get("planted", arms["original"])).set_index("query_id")
    right, wrong = "cue on the correct option", "cue on an incorrect option"
    kinds = np.select([cues["correct"], cues["guessed"]], [right, wrong], "no cue")
    strata = judged["query_id"].map(pd.Series(kinds, cues.index))
    named = judged["score"].where(strata.eq(right) | judged["score"].isna(), 0.0)
    every = judged.assign(stratum=strata, named=named)
    parts = [every[every["stratum"] == stratum] for stratum in (right, "no cue", wrong)]
    return pd.concat(parts, ignore_index=True)
