"""People who answer (Figures 6 and 7 and Table 3): their means in both weighings, since
the paper's are not those of its models, and how often two answerers say the same.
"""

from __future__ import annotations

from itertools import combinations

import pandas as pd

from vrag_kit.analysis import Mix, estimate
from vrag_kit.judging.choice_reader import read_choice
from vrag_kit.papers.mrag_bench.audit import QUESTIONS
from vrag_kit.papers.mrag_bench.results import OVERALL, accuracy_of_choices, papers_mix
from vrag_kit.papers.published import published
from vrag_kit.types import Benchmark

BY_QUESTIONS, PLAIN = "by questions", "plain mean"
_EACH_ALIKE = Mix("scenario", dict.fromkeys(QUESTIONS, 1.0))


def both_means(judged: pd.DataFrame, benchmark: Benchmark) -> pd.DataFrame:
    """`accuracy_of_choices` of every model and setting, weighing "by questions" (in the paper's
    proportions, as its models' overall numbers are) and "plain mean" (of scenarios, as
    its people's are): model, setting, weighing, and the columns from metric on.

    `judged` comes from `with_scenarios`.
    """
    keys = ["model", "setting"]
    tables = {
        BY_QUESTIONS: accuracy_of_choices(judged, by=keys, mix=papers_mix(benchmark)),
        PLAIN: accuracy_of_choices(judged, by=keys, mix=_EACH_ALIKE),
    }
    both = pd.concat(tables, names=["weighing"]).reset_index("weighing").reset_index(drop=True)
    both = both[both["metric"] == "accuracy"]
    return both[[*keys, "weighing", *(name for name in both if name not in (*keys, "weighing"))]]


def printed_people() -> pd.DataFrame:
    """Overall numbers of Table 3's people in both weighings, out of its nine cells, in
    percent: model, setting, weighing, value, ci_low, ci_high (NaN), n (questions).

    Printed are the plain means: 38.47, 61.38 and 71.63.
    """
    table = published("mrag_bench", 3)
    cells = table[(table["model_group"] == "human") & (table["scenario"] != OVERALL)]
    rows = []
    for (model, setting), part in cells.groupby(["model", "setting"], sort=False):
        weight = part["scenario"].map(QUESTIONS)
        weighed = (part["value"] * weight).sum() / weight.sum()
        values = {BY_QUESTIONS: weighed, PLAIN: part["value"].mean()}
        for weighing, value in values.items():
            rows.append((model, setting, weighing, value, float("nan"), float("nan")))
    columns = ["model", "setting", "weighing", "value", "ci_low", "ci_high"]
    return pd.DataFrame(rows, columns=columns).assign(n=sum(QUESTIONS.values()))


def answerers_agree(judged: pd.DataFrame, benchmark: Benchmark) -> pd.DataFrame:
    """How often two answerers choose the same option, right or wrong: setting, first,
    second, value, ci_low, ci_high, n, n_failed, kappa; shares over the questions that
    both were asked in a setting, with intervals over groups.

    n_failed counts questions of which one answer names no option, or several. kappa is
    Cohen's: agreement beyond that of two who choose letters as often but at random; NaN
    where that is all there can be. Raises as `read_choice`.
    """
    chosen = judged.drop_duplicates(["model", "setting", "query_id"])
    letters = []
    for query_id, answer in zip(chosen["query_id"], chosen["answer"], strict=True):
        options = benchmark.queries[query_id].choices
        letters.append(read_choice(answer, options).letter if isinstance(answer, str) else None)
    chosen = chosen.assign(letter=pd.Series(letters, chosen.index, dtype=object))
    rows = []
    for setting, part in chosen.groupby("setting", sort=False):
        wide = part.pivot(index="query_id", columns="model", values="letter")
        asked = part.assign(asked=True).pivot(index="query_id", columns="model", values="asked")
        for first, second in combinations(dict.fromkeys(part["model"]), 2):
            both = wide[[first, second]][asked[[first, second]].notna().all(axis=1)]
            if not both.empty:
                rows.append((setting, first, second, *_agreement(both, benchmark)))
    numbers = ["value", "ci_low", "ci_high", "n", "n_failed", "kappa"]
    return pd.DataFrame(rows, columns=["setting", "first", "second", *numbers])


def _agreement(both: pd.DataFrame, benchmark: Benchmark) -> tuple[float, ...]:
    """The numbers of one pair: two columns of letters, None where none can be read."""
    one, other = both.iloc[:, 0], both.iloc[:, 1]
    readable = one.notna() & other.notna()
    same = (one == other).astype(float).where(readable)
    found = estimate(same.to_numpy(), both.index.map(benchmark.groups).to_numpy())
    shares = one[readable].value_counts(normalize=True)
    others = other[readable].value_counts(normalize=True)
    expected = float(shares.mul(others, fill_value=0.0).sum())
    kappa = (found.value - expected) / (1 - expected) if expected < 1 else float("nan")
    return found.value, found.ci_low, found.ci_high, found.n, found.n_failed, kappa
