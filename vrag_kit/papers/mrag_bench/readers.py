"""Comparison of the official scorer with our parser on a run's answers: accuracy under each
extraction, and where the scorer's run ends.
"""

from __future__ import annotations

import pandas as pd

from vrag_kit.analysis import column_means, to_percent
from vrag_kit.judging.multiple_choice import RULES, correct_letters, read_choice
from vrag_kit.papers.mrag_bench.official_scorer import (
    OfficialExtraction,
    ScorerOutcome,
    after_model_call,
    early_run_end,
    extract_officially,
)
from vrag_kit.types import Benchmark, Status

READINGS = {
    "score": "ours",
    "official_low": "official, unparsed as incorrect",
    "official_high": "official, unparsed as correct",
    "official_extracted": "official, unparsed by language model",
}
"""Maps a score column of `with_official_score`, or of `with_extracted_options`, to the name of its
extraction method.
"""
RIGHT, WRONG = "correct option", "incorrect option"
_ARM = ["model", "setting"]


def with_official_score(judged: pd.DataFrame, benchmark: Benchmark) -> pd.DataFrame:
    """Adds both extractions to the answers that `MultipleChoiceJudge` judged. Columns: rule (ours),
    ours_is (`RIGHT`, `WRONG`, or why there is no letter), official (a letter or a `ScorerOutcome`),
    official_is (likewise), official_low and official_high: its score if answers that crash it or go
    to GPT-3.5 count as incorrect, or correct.

    Calls that failed have no extraction and no score. The official scorer parses truncated answers
    as they are; here they score 0.
    """
    cells: list[dict[str, object]] = []
    for row in judged.to_dict("records"):
        query = benchmark.queries[row["query_id"]]
        if not Status(row["status"]).is_answer:
            cells.append({})
            continue
        ours, theirs = read_choice(row["answer"], query.choices), extract_officially(row["answer"])
        right = correct_letters(query)
        is_right = bool(theirs.letter) and theirs.letter in right
        cells.append(
            {
                "rule": ours.rule,
                "ours_is": _outcome(ours.letter or "", right, _why_not(ours.letters, ours.rule)),
                "official": str(theirs),
                "official_is": extraction_outcome(theirs, right),
                "official_low": float(is_right),
                "official_high": float(is_right or _is_open(theirs)),
            }
        )
    columns = ["rule", "ours_is", "official", "official_is", "official_low", "official_high"]
    return judged.join(pd.DataFrame(cells, index=judged.index, columns=columns))


def accuracy_by_extractor(read: pd.DataFrame, *, weights: pd.Series | None) -> pd.DataFrame:
    """Computes each model's accuracy under each of `READINGS` that has scores, in percent, pooled
    over settings: model, extraction, metric, value, ci_low, ci_high, n, n_failed.

    Without any score, as with no answers, only ours is given. `read` comes from
    `with_official_score`, and possibly `with_extracted_options`; with `weights`
    (`scenario_weights`) it needs their column.
    """
    scored = [column for column in READINGS if column in read and read[column].notna().any()]
    means = column_means(read, scored or ["score"], by=["model"], weights=weights)
    table = means.assign(extraction=means["metric"].map(READINGS), metric="accuracy")
    return to_percent(table)


def extraction_outcome(found: OfficialExtraction, right: str) -> str:
    """Returns `RIGHT`, `WRONG`, or why there is no letter; `right` has the correct letters."""
    return _outcome(found.letter, right, str(found))


def rule_counts(read: pd.DataFrame) -> pd.DataFrame:
    """Counts the answers that each of our rules decided, and the correct ones: rows rules in order
    with their description, columns models, cells "12 (7 right)".
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


def official_run_ends(read: pd.DataFrame) -> pd.DataFrame:
    """Simulates the official scorer's run over each model's answers in each setting, in the order
    of the questions. Columns: model, setting, n, the number of answers with each `ScorerOutcome`,
    with_key and without_key: how the run ends, with a key for GPT-3.5 (assuming every reply is a
    letter) and without.
    """
    rows = []
    for arm, part in read[read["official"].notna()].groupby(_ARM, sort=False):
        found = [extract_officially(raw) for raw in part["answer"]]
        counts = {str(outcome): 0 for outcome in ScorerOutcome if outcome is not ScorerOutcome.HANG}
        for each in found:
            counts[str(each.outcome)] += 1
        without = [after_model_call(each, None) for each in found]
        ends = {"with_key": _end(found), "without_key": _end(without)}
        rows.append({**dict(zip(_ARM, arm, strict=True)), "n": len(part), **counts, **ends})
    return pd.DataFrame(rows)


def _end(found: list[OfficialExtraction]) -> str:
    end = early_run_end(found)
    return f"{end[0]} at answer {end[1] + 1}" if end else "a score is written"


def _is_open(found: OfficialExtraction) -> bool:
    return found.outcome in (ScorerOutcome.CRASH, ScorerOutcome.ASKS)


def _outcome(letter: str, right: str, otherwise: str) -> str:
    if not letter:
        return otherwise
    return RIGHT if letter in right else WRONG


def _why_not(letters: str, rule: str) -> str:
    """Why our reader finds no letter."""
    return "ambiguous" if letters else rule
