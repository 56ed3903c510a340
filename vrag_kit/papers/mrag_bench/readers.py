"""What the official scorer would make of a run's answers, beside our reader: accuracy
under each reading, and where its run ends.
"""

from __future__ import annotations

import pandas as pd

from vrag_kit.analysis import column_means, in_percent
from vrag_kit.analysis.mix import Mix
from vrag_kit.judging.choice_reader import RULES, read_choice, right_letters
from vrag_kit.papers.mrag_bench.official_scorer import (
    Official,
    Outcome,
    after_asking,
    official_reading,
    run_end,
)
from vrag_kit.types import Benchmark, Status

READINGS = {
    "score": "ours",
    "official_low": "official, the rest as wrong",
    "official_high": "official, the rest as right",
    "official_extracted": "official, the rest as extracted",
}
"""Column of `with_official`, or of `with_extracted` → the reading that it scores by."""
RIGHT, WRONG = "right letter", "wrong letter"
_ARM = ["model", "setting"]


def with_official(judged: pd.DataFrame, benchmark: Benchmark) -> pd.DataFrame:
    """The answers that `ChoiceJudge` judged, with the columns rule (ours), ours_is
    (`RIGHT`, `WRONG`, or why there is no letter), official (a letter or an `Outcome`),
    official_is (likewise), official_low and official_high: its score if what crashes it
    or goes to GPT-3.5 is wrong, or right.

    Calls that failed have no reading, and no score. The official scorer reads what was
    cut off as it stands; here that earns nothing.
    """
    cells: list[dict[str, object]] = []
    for row in judged.to_dict("records"):
        query = benchmark.queries[row["query_id"]]
        if not Status(row["status"]).is_answer:
            cells.append({})
            continue
        ours, theirs = read_choice(row["answer"], query.choices), official_reading(row["answer"])
        right = right_letters(query)
        is_right = bool(theirs.letter) and theirs.letter in right
        cells.append(
            {
                "rule": ours.rule,
                "ours_is": _outcome(ours.letter or "", right, _why_not(ours.letters, ours.rule)),
                "official": str(theirs),
                "official_is": outcome_of(theirs, right),
                "official_low": float(is_right),
                "official_high": float(is_right or _is_open(theirs)),
            }
        )
    columns = ["rule", "ours_is", "official", "official_is", "official_low", "official_high"]
    return judged.join(pd.DataFrame(cells, index=judged.index, columns=columns))


def accuracy_by_reading(read: pd.DataFrame, *, mix: Mix | None) -> pd.DataFrame:
    """Accuracy of each model under each of `READINGS` that has scores, in percent, over
    the settings together: model, reading, metric, value, ci_low, ci_high, n, n_failed.

    Without any score, as of no answers, it is that of ours. `read` comes from
    `with_official`, and may have gone through `with_extracted`; with a
    `mix` (`papers_mix`) it needs its column.
    """
    scored = [column for column in READINGS if column in read and read[column].notna().any()]
    means = column_means(read, scored or ["score"], by=["model"], mix=mix)
    table = means.assign(reading=means["metric"].map(READINGS), metric="accuracy")
    return in_percent(table)


def outcome_of(found: Official, right: str) -> str:
    """`RIGHT`, `WRONG`, or why there is no letter; `right` are the letters that are."""
    return _outcome(found.letter, right, str(found))


def rules_of(read: pd.DataFrame) -> pd.DataFrame:
    """How many answers each rule of ours decided, and how many of them are right: rows
    the rules in their order with what they say, columns models, cells "12 (7 right)".
    """
    counts = read.groupby(["rule", "model"], sort=False)["score"].agg(["size", "sum"])
    cells = [
        f"{size:.0f} ({right:.0f} right)"
        for size, right in counts.itertuples(index=False, name=None)
    ]
    wide = pd.Series(cells, counts.index, dtype=object).unstack("model")
    wide = wide.reindex(list(RULES)).fillna("–")
    wide.insert(0, "what it says", pd.Series(RULES))
    return wide


def official_runs(read: pd.DataFrame) -> pd.DataFrame:
    """What would become of the official scorer's run over each model's answers in each
    setting, in the order of the questions: model, setting, n, how many answers end in
    each `Outcome`, with_key and without_key: how the run ends, with a key for GPT-3.5 (of
    which every reply is taken to be a letter) and without.
    """
    rows = []
    for arm, part in read[read["official"].notna()].groupby(_ARM, sort=False):
        found = [official_reading(raw) for raw in part["answer"]]
        counts = {str(outcome): 0 for outcome in Outcome if outcome is not Outcome.HANG}
        for each in found:
            counts[str(each.outcome)] += 1
        without = [after_asking(each, None) for each in found]
        ends = {"with_key": _end(found), "without_key": _end(without)}
        rows.append({**dict(zip(_ARM, arm, strict=True)), "n": len(part), **counts, **ends})
    return pd.DataFrame(rows)


def _end(found: list[Official]) -> str:
    end = run_end(found)
    return f"{end[0]} at answer {end[1] + 1}" if end else "a score is written"


def _is_open(found: Official) -> bool:
    return found.outcome in (Outcome.CRASH, Outcome.ASKS)


def _outcome(letter: str, right: str, otherwise: str) -> str:
    if not letter:
        return otherwise
    return RIGHT if letter in right else WRONG


def _why_not(letters: str, rule: str) -> str:
    """Why our reader finds no letter."""
    return "ambiguous" if letters else rule
