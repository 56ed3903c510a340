"""Two-step difficulty filter (section 3.4) as a table of every question: step 1 drops those
answered in closed book, or by the question itself; step 2 the easiest of the rest.

The paper gives no formula; the rules here are ours. A filter by the evaluated models lowers their
scores by selection alone: see `filter_controls`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from vrag_kit.analysis.estimates import cluster_bootstrap
from vrag_kit.analysis.means import per_query, to_percent
from vrag_kit.analysis.strata import ALL
from vrag_kit.benchmarks.sources import read_csv_rows
from vrag_kit.errors import VragError
from vrag_kit.files import project_path, write_file
from vrag_kit.judging.scale import scale_of
from vrag_kit.types import Benchmark, Query, ordered

VERBATIM = "answer_in_question"
KNOWN = "closed_book_correct"
EASY = "easiest_in_domain"
"""Reasons for dropping a question, in order of precedence."""
OUTCOMES = {
    "kept": "kept",
    KNOWN: "dropped, step 1: correct without evidence",
    VERBATIM: "dropped, step 1: answer in the question",
    EASY: "dropped, step 2: easiest of its domain",
}
"""Maps the fate of a question to its name in figures."""
_MARKS = ("domain", "hops", "required_modality")
_VALUES = (*_MARKS, "success_rate")
_SEED = 0
_ARTICLES = ("a", "an", "the")


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterRules:
    """Parameters of the difficulty filter."""

    min_votes: int = 1
    """Minimum number of models, at least 1, that answer a question correctly in closed book."""
    min_confidence: float | None = 0.9
    """A correct answer counts only above this confidence, in [0, 1); None: any counts."""
    drop_share: float = 0.1
    """Share of each domain, in [0, 1), that step 2 drops."""


def filter_decisions(
    benchmark: Benchmark, closed_book: pd.DataFrame, rules: FilterRules
) -> pd.DataFrame:
    """Decides for every question whether the filter drops it. Columns: query_id, dropped, step (1,
    2; 0 for those kept), reason, votes (out of models), models, domain, hops, required_modality,
    success_rate.

    `closed_book` are judged answers of the filter's models without evidence, with the column
    confidence if `rules` need one. Step 1 drops a question that contains an accepted answer
    (consecutive words, without articles; yes, no and single characters do not count), and one that
    `rules.min_votes` models answer with the best score and enough confidence; a model that states
    none has not enough. Step 2 drops the easiest share of the rest of each domain: fewer hops
    (unknown: one), one modality before both, higher success_rate (mean score in [0, 1] over the
    answers of the closed book), then at random. A question without a parsed answer has votes 0 and
    no success_rate, and counts as hard.
    """
    scale, queries = scale_of(closed_book), benchmark.queries.values()
    shares = (closed_book["score"] - scale.worst) / scale.width
    first = closed_book.dropna(subset="score").drop_duplicates(["model", "query_id"])
    knows = first["score"] >= scale.best
    if rules.min_confidence is not None:
        knows &= first["confidence"] > rules.min_confidence
    rows = [(query.query_id, *map(query.metadata.get, _MARKS)) for query in queries]
    table = pd.DataFrame(rows, columns=["query_id", *_MARKS]).astype({"hops": "Int64"})
    table = table.fillna({"domain": "", "required_modality": ""})
    votes = table["query_id"].map(knows.groupby(first["query_id"]).sum())
    table["votes"], table["models"] = votes.fillna(0).astype(int), closed_book["model"].nunique()
    success = shares.groupby(closed_book["query_id"]).mean()
    table["success_rate"] = table["query_id"].map(success)
    reason = pd.Series("", table.index).mask(table["votes"] >= rules.min_votes, KNOWN)
    reason[[answer_in_question(query) for query in queries]] = VERBATIM
    reason[_easiest(table[reason == ""], rules.drop_share)] = EASY
    step = reason.map({"": 0, VERBATIM: 1, KNOWN: 1, EASY: 2})
    table = table.assign(reason=reason, dropped=reason != "", step=step)
    return table[["query_id", "dropped", "step", "reason", "votes", "models", *_VALUES]]


def without_dropped(suite: Mapping[str, Benchmark], file: Path | str) -> dict[str, Benchmark]:
    """Returns the data sets without the questions in `file`, the filtered split. `file` is as
    written by `write_dropped`, with the column dataset. "": all questions.

    Raises `VragError` for a file that cannot be read.
    """
    if not file:
        return dict(suite)
    advice = '41_difficulty_filter writes it: run that first, or set `dropped` to "".'
    keys, others = ["dataset", "query_id"], ("step", "reason", "votes", "models", *_VALUES)
    rows = read_csv_rows(project_path(file), keys, "dropped questions", advice, optional=others)
    dropped = {(row["dataset"], row["query_id"]) for _, row in rows}
    left = {}
    for name, benchmark in suite.items():
        keep = [each for each in benchmark.queries if (name, each) not in dropped]
        left[name] = benchmark.subset(keep)
    return left


def write_dropped(decisions: pd.DataFrame, file: Path | str) -> None:
    """Writes the dropped questions as CSV: query_id, step, reason and the values that decided.
    Raises `OSError` if the file cannot be written.
    """
    dropped = decisions[decisions["dropped"]].drop(columns="dropped")
    text = dropped.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    write_file(project_path(file), text)


def answer_in_question(query: Query) -> bool:
    """Whether the question contains the words of an accepted answer consecutively. Options do not
    count; always false for yes, no and single characters.
    """
    question = f" {_words(query.text)} "
    answers = [_words(answer) for answer in query.answers]
    answers = [each for each in answers if len(each) > 1 and each.split()[0] not in ("yes", "no")]
    return any(f" {each} " in question for each in answers)


def _words(text: str) -> str:
    """The words of a text without case, marks and articles."""
    return " ".join(word for word in re.findall(r"\w+", text.casefold()) if word not in _ARTICLES)


def _easiest(left: pd.DataFrame, share: float) -> pd.Index:
    """The rows of the easiest share of each domain."""
    chance = {name: at for at, name in enumerate(ordered(left["query_id"], _SEED, "filter"))}
    order = left.assign(
        hops=left["hops"].fillna(1),
        both=left["required_modality"] == "both",
        success_rate=-left["success_rate"].fillna(0.0),
        chance=left["query_id"].map(chance),
    )
    order = order.sort_values(["hops", "both", "success_rate", "chance"], kind="stable")
    domains = order.groupby("domain")["query_id"]
    return order.index[domains.cumcount() < (share * domains.transform("size")).round()]


DRAWS = 200
"""Number of random drops."""
_Change = tuple[float, float, float, int]
"""A difference of means, its interval, and the number of questions kept."""
_NOTHING = (np.nan, np.nan, np.nan, 0)


def filter_controls(
    judged: pd.DataFrame,
    suite: Mapping[str, Benchmark],
    closed_book: pd.DataFrame,
    rules: FilterRules,
) -> pd.DataFrame:
    """Computes the filtered mean minus the full mean of every evaluated model on each data set and
    stratum, in points: dataset, stratum, model, setting (the control: "filtered", "filtered, model
    left out" or "random drop (control)"), metric, value, ci_low, ci_high, n (questions kept),
    n_full, n_failed, baseline ("all questions").

    `judged` are the answers to all questions in one arm (`training_strata`), `closed_book` those
    for the filter, as in `filter_decisions`, with the column dataset; what is dropped is decided
    for all strata together. "Model left out" are the decisions without that model's answers.

    For the filters the interval is a percentile bootstrap over groups of the difference of means;
    NaN for one group, and if all resamples agree, as for equal scores or identical groups, where it
    would be falsely certain; 0 to 0 if nothing is dropped. The random drop has the filter's number
    of questions of each domain; value is the mean over `DRAWS` drops, near 0 by construction, and
    the interval holds 95 % of them: the effect of chance for a drop of this size. Questions without
    a score count in n_failed and in no mean. If fewer models are left than `min_votes`, or no
    question with a score is kept, as in a memorised stratum, value is NaN and n is 0. Raises
    `VragError` if no question at all is kept, or a model has answers in several arms.
    """
    rows: list[tuple[object, ...]] = []
    for name, table in judged.groupby("dataset", sort=False):
        book, benchmark = closed_book[closed_book["dataset"] == name], suite[str(name)]
        if (table.groupby("model")[["setting", "k"]].nunique() > 1).any(axis=None):
            raise VragError(f"filter_controls: a model was asked about {name} in several arms.")
        decisions = filter_decisions(benchmark, book, rules)
        if decisions["dropped"].all():
            raise VragError(
                f"filter_controls: the filter drops all {len(decisions):,} questions of {name}. Ask"
                " for more votes or confidence, or a smaller drop_share."
            )
        values = per_query(table, by=["metric", "stratum", "model"])
        for stratum, of_stratum in values.groupby("stratum", sort=False):
            asked = decisions[decisions["query_id"].isin(of_stratum["query_id"])]
            drops = [_random_drop(asked, draw) for draw in range(DRAWS)]
            for (metric, model), part in of_stratum.groupby(["metric", "model"], sort=False):
                known = part.dropna(subset="value").reset_index(drop=True)
                others = book[book["model"] != model]
                changes = {
                    "filtered": _filter_change(known, benchmark, book, rules),
                    "filtered, model left out": _filter_change(known, benchmark, others, rules),
                    "random drop (control)": _by_chance(known, drops),
                }
                counts = len(known), len(part) - len(known)
                for control, change in changes.items():
                    rows.append((name, stratum, model, control, metric, *change, *counts))
    columns = ["dataset", "stratum", "model", "setting", "metric"]
    columns += ["value", "ci_low", "ci_high", "n", "n_full", "n_failed"]
    return to_percent(pd.DataFrame(rows, columns=columns).assign(baseline=ALL))


def _filter_change(
    known: pd.DataFrame, benchmark: Benchmark, book: pd.DataFrame, rules: FilterRules
) -> _Change:
    """The mean over what the filter keeps minus the mean over all, with its interval over groups;
    nothing if too few models vote.
    """
    if book["model"].nunique() < rules.min_votes:
        return _NOTHING
    decisions = filter_decisions(benchmark, book, rules)
    stays = ~known["query_id"].isin(decisions.loc[decisions["dropped"], "query_id"])
    if not stays.any():
        return _NOTHING
    if stays.all():
        return 0.0, 0.0, 0.0, len(stays)
    cells = {"kept": known["value"] * stays, "n_kept": stays, "all": known["value"], "n": 1.0}
    sums = pd.DataFrame(cells).groupby(known["group"].astype(str)).sum().to_numpy(float)
    change = cluster_bootstrap(sums, _mean_change, seed=_SEED, resamples=2000)
    return *change, int(stays.sum())


@np.errstate(invalid="ignore")
def _mean_change(sums: np.ndarray) -> np.ndarray:
    """The change of the mean from the four sums of each resample; NaN where nothing stays."""
    change: np.ndarray = sums[:, 0] / sums[:, 1] - sums[:, 2] / sums[:, 3]
    return change


def _random_drop(decisions: pd.DataFrame, draw: int) -> set[str]:
    """As many questions of each domain as the decisions drop, by hash."""
    dropped: set[str] = set()
    for _, part in decisions.groupby("domain", sort=False):
        names = ordered(part["query_id"], _SEED, "random drop", draw)
        dropped |= set(names[: int(part["dropped"].sum())])
    return dropped


def _by_chance(known: pd.DataFrame, drops: Sequence[set[str]]) -> _Change:
    kept = [known.loc[~known["query_id"].isin(drop), "value"].to_numpy() for drop in drops]
    kept = [values for values in kept if len(values)]
    if not kept:
        return _NOTHING
    changes = [values.mean() - known["value"].to_numpy().mean() for values in kept]
    low, high = np.quantile(changes, [0.025, 0.975])
    size = int(np.median([len(values) for values in kept]))
    return float(np.mean(changes).round(12)), float(low), float(high), size
