"""The filter in two steps (section 3.4): which questions a closed book answers, or the
question itself, and which of the rest are easiest; as a table of every question.

The paper prints no formula; the rules here are ours. A filter by the models under test
lowers their scores by selection alone: see `filter_controls`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.frames import require_columns
from vrag_kit.judging.scale import scale_of
from vrag_kit.order import ordered
from vrag_kit.tables import read_rows
from vrag_kit.types import Benchmark, Query

VERBATIM = "its answer stands in the question"
KNOWN = "known without evidence"
EASY = "among the easiest of its domain"
"""Reasons, in the order in which they are looked for."""
_VALUES = ("domain", "hops", "needs", "success")
_YES_NO = ("yes", "no")
_ARTICLES = ("a", "an", "the")


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterRules:
    """What makes a question too easy."""

    votes: int = 1
    """How many of the models must know it by heart."""
    confidence: float | None = 0.9
    """A model knows what it gets right with more than this; None asks for none, and
    being right is enough.
    """
    drop_share: float = 0.1
    """How much of each domain step 2 drops."""
    seed: int = 0
    """Of the order among equals."""

    def __post_init__(self) -> None:
        """Raise `VragError` for rules that nothing could meet."""
        if self.votes < 1:
            raise VragError(f"votes is {self.votes}; expected 1 or more.")
        if self.confidence is not None and not 0 <= self.confidence < 1:
            raise VragError(f"confidence is {self.confidence}; expected 0 to below 1, or null.")
        if not 0 <= self.drop_share < 1:
            raise VragError(f"drop_share is {self.drop_share}; expected 0 to below 1.")


def filter_decisions(
    benchmark: Benchmark,
    closed_book: pd.DataFrame,
    rules: FilterRules | None = None,
    *,
    baseline: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """What becomes of every question: query_id, dropped, step (1, 2; 0 for those kept),
    reason, votes (of so many models), models, domain, hops, needs, success.

    `closed_book` are judged answers of the filter's models without evidence, with the
    column confidence where `rules` need one. Step 1 drops a question whose accepted
    answer stands in it (words in a row, without articles; yes, no and single characters
    do not count), and one that `rules.votes` models get right, with the best score, and
    sure enough; a model that states no confidence is not sure. Step 2 drops the easiest
    share of what is left of each domain: fewer hops (unknown: one), one modality before
    both, higher success (mean score in [0, 1] over the answers of `baseline`, by default
    those of the closed book), then by chance. A question without a readable answer has
    votes 0 and no success, and counts as hard.

    Raises `VragError` for a table without the columns that are needed.
    """
    rules = rules or FilterRules()
    require_columns(closed_book, ["query_id", "score"], "filter_decisions")
    if rules.confidence is not None and "confidence" not in closed_book:
        raise VragError(
            "filter_decisions: the closed book's answers have no column 'confidence'. Ask with"
            " closed_book_wording() and read with with_confidence(…), or set confidence to null."
        )
    votes = _votes(closed_book, rules)
    success = _success(closed_book if baseline is None else baseline)
    rows = []
    for query in benchmark.queries.values():
        known_by = votes.get(query.query_id, 0)
        by_heart = KNOWN if known_by >= rules.votes else ""
        reason = VERBATIM if stands_in_question(query) else by_heart
        facts = _facts(query)
        rows.append((*facts, reason, known_by, success.get(query.query_id, math.nan)))
    columns = ["query_id", "domain", "hops", "needs", "reason", "votes", "success"]
    table = pd.DataFrame(rows, columns=columns).astype({"hops": "Int64"})
    easy = table["query_id"].isin(_easiest(table[table["reason"] == ""], rules))
    reasons = table["reason"].mask(easy, EASY)
    step = reasons.map({"": 0, EASY: 2}).fillna(1).astype(int)
    models = closed_book["model"].nunique()
    table = table.assign(reason=reasons, dropped=reasons != "", step=step, models=models)
    return table[["query_id", "dropped", "step", "reason", "votes", "models", *_VALUES]]


def _facts(query: Query) -> tuple[str, str, int | None, str]:
    """query_id, domain, hops and needs."""
    told = query.metadata
    return query.query_id, str(told.get("domain", "")), told.get("hops"), str(told.get("needs", ""))


def kept(benchmark: Benchmark, decisions: pd.DataFrame) -> Benchmark:
    """The questions that `filter_decisions` keeps; raises `VragError` when it keeps none."""
    left = list(decisions[~decisions["dropped"]]["query_id"])
    if not left:
        raise VragError(
            f"{benchmark.name}: the filter drops all {len(decisions):,} questions. Ask for more"
            " votes or confidence, or a smaller drop_share."
        )
    return benchmark.subset(left)


def without_dropped(suite: Mapping[str, Benchmark], file: Path | None) -> dict[str, Benchmark]:
    """The data sets without the questions that `file` lists (as `write_dropped` writes them,
    with the column dataset): the filtered split. None: all questions.

    Says how many are left. Raises `VragError` for a file that cannot be read, and for a
    data set of which it drops every question.
    """
    if file is None:
        return dict(suite)
    advice = '41_difficulty_filter writes it: run that first, or set `dropped` to "".'
    others = ("step", "reason", "votes", "models", *_VALUES)
    rows = read_rows(file, ["dataset", "query_id"], "dropped questions", advice, optional=others)
    dropped = {(row["dataset"], row["query_id"]) for _, row in rows}
    left = {}
    for name, benchmark in suite.items():
        keep = [each for each in benchmark.queries if (name, each) not in dropped]
        if not keep:
            raise VragError(f"{file}: found all questions of {name} among the dropped ones.")
        left[name] = benchmark.subset(keep)
    counts = (
        f"{len(left[name].queries):,} of {len(each.queries):,} {name}"
        for name, each in suite.items()
    )
    print("kept by the filter:", ", ".join(counts))
    return left


def write_dropped(decisions: pd.DataFrame, file: Path) -> None:
    """Write the questions that were dropped as CSV: query_id, step, reason and the values
    that decided. Raises `VragError` when the file cannot be written.
    """
    dropped = decisions[decisions["dropped"]].drop(columns="dropped")
    text = dropped.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    try:
        write_file(file, text.encode())
    except OSError as error:
        raise VragError(
            f"{file}: the dropped questions cannot be saved ({error.strerror}). Choose another"
            " folder, or free space."
        ) from error


def keep_rates(decisions: pd.DataFrame, by: Sequence[str] = ("domain",)) -> pd.DataFrame:
    """How many questions each reason drops: `by`, n, one column a reason, kept, and
    kept_share (percent).
    """
    groups = decisions.groupby(list(by), sort=False)
    counts = groups.size().rename("n").to_frame()
    reasons = groups["reason"].value_counts().unstack(fill_value=0)
    for reason in (VERBATIM, KNOWN, EASY):
        counts[reason] = reasons.get(reason, 0)
    counts["kept"] = counts["n"] - groups["dropped"].sum()
    return counts.assign(kept_share=100 * counts["kept"] / counts["n"]).reset_index()


def stands_in_question(query: Query) -> bool:
    """Whether the words of an accepted answer stand in a row in the question, whose
    options do not count; never for yes, no and single characters.
    """
    asked = _normal(query.text)
    return any(_within(_normal(answer), asked) for answer in query.answers)


def _within(answer: list[str], asked: list[str]) -> bool:
    if not answer or answer[0] in _YES_NO or len("".join(answer)) == 1:
        return False
    starts = range(len(asked) - len(answer) + 1)
    return any(asked[start : start + len(answer)] == answer for start in starts)


def _normal(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+", text.casefold()) if word not in _ARTICLES]


def _votes(closed_book: pd.DataFrame, rules: FilterRules) -> dict[str, int]:
    """Query → how many models know it: by their first readable answer."""
    first = closed_book.dropna(subset="score").drop_duplicates(["model", "query_id"])
    best = scale_of(closed_book).best
    knows = first["score"] >= best
    if rules.confidence is not None:
        knows &= first["confidence"] > rules.confidence
    counts = first[knows].groupby("query_id").size()
    return {str(query_id): int(count) for query_id, count in counts.items()}


def _success(baseline: pd.DataFrame) -> dict[str, float]:
    """Query → mean score of its answers, in [0, 1]."""
    scale = scale_of(baseline)
    means = (baseline["score"] - scale.worst).groupby(baseline["query_id"]).mean() / scale.width
    return {str(query_id): float(value) for query_id, value in means.items()}


def _easiest(left: pd.DataFrame, rules: FilterRules) -> set[str]:
    """The easiest share of each domain."""
    chance = {name: at for at, name in enumerate(ordered(left["query_id"], rules.seed, "filter"))}
    order = left.assign(
        hops=left["hops"].fillna(1),
        both=left["needs"] == "both",
        success=-left["success"].fillna(0.0),
        chance=left["query_id"].map(chance),
    )
    order = order.sort_values(["hops", "both", "success", "chance"], kind="stable")
    found: set[str] = set()
    for _, part in order.groupby("domain", sort=False):
        found |= set(part["query_id"].head(round(rules.drop_share * len(part))))
    return found
