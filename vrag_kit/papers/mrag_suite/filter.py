"""Two-step difficulty filter (section 3.4) as a table of every question: step 1 drops those
answered in closed book, or by the question itself; step 2 the easiest of the rest.

The paper gives no formula; the rules here are ours. A filter by the evaluated models lowers their
scores by selection alone: see `filter_controls`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from vrag_kit.analysis.estimates import cluster_bootstrap
from vrag_kit.analysis.means import per_query, to_percent
from vrag_kit.analysis.strata import ALL
from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.judging.scale import scale_of
from vrag_kit.log import logger
from vrag_kit.papers.published import published
from vrag_kit.tables import read_csv_rows, require_columns
from vrag_kit.types import Benchmark, Query, ordered

VERBATIM = "answer_in_question"
KNOWN = "closed_book_correct"
EASY = "easiest_in_domain"
"""Reasons for dropping a question, in order of precedence."""
_VALUES = ("domain", "hops", "required_modality", "success_rate")
_YES_NO = ("yes", "no")
_ARTICLES = ("a", "an", "the")


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterRules:
    """Parameters of the difficulty filter."""

    min_votes: int = 1
    """Minimum number of models that answer a question correctly in closed book."""
    min_confidence: float | None = 0.9
    """A correct answer counts only above this confidence; with None the confidence is ignored."""
    drop_share: float = 0.1
    """Share of each domain that step 2 drops."""
    seed: int = 0
    """Seed of the order of ties."""

    def __post_init__(self) -> None:
        """Raise `VragError` for values out of range."""
        if self.min_votes < 1:
            raise VragError(f"min_votes is {self.min_votes}; expected 1 or more.")
        if self.min_confidence is not None and not 0 <= self.min_confidence < 1:
            raise VragError(
                f"min_confidence is {self.min_confidence}; expected 0 to below 1, or null."
            )
        if not 0 <= self.drop_share < 1:
            raise VragError(f"drop_share is {self.drop_share}; expected 0 to below 1.")


def filter_decisions(
    benchmark: Benchmark,
    closed_book: pd.DataFrame,
    rules: FilterRules | None = None,
    *,
    baseline: pd.DataFrame | None = None,
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
    answers of `baseline`, by default those of the closed book), then at random. A question without
    a parsed answer has votes 0 and no success_rate, and counts as hard.

    Raises `VragError` for a table without the required columns.
    """
    rules = rules or FilterRules()
    require_columns(closed_book, ["query_id", "score"], "filter_decisions")
    if rules.min_confidence is not None and "confidence" not in closed_book:
        raise VragError(
            "filter_decisions: the closed book's answers have no column 'confidence'. Ask with"
            " closed_book_prompts() and read with with_confidence(…), or set confidence to null."
        )
    votes = _votes(closed_book, rules)
    success = _success(closed_book if baseline is None else baseline)
    rows = []
    for query in benchmark.queries.values():
        known_by = votes.get(query.query_id, 0)
        by_heart = KNOWN if known_by >= rules.min_votes else ""
        reason = VERBATIM if answer_in_question(query) else by_heart
        facts = _facts(query)
        rows.append((*facts, reason, known_by, success.get(query.query_id, math.nan)))
    columns = ["query_id", "domain", "hops", "required_modality", "reason", "votes", "success_rate"]
    table = pd.DataFrame(rows, columns=columns).astype({"hops": "Int64"})
    easy = table["query_id"].isin(_easiest(table[table["reason"] == ""], rules))
    reasons = table["reason"].mask(easy, EASY)
    step = reasons.map({"": 0, EASY: 2}).fillna(1).astype(int)
    models = closed_book["model"].nunique()
    table = table.assign(reason=reasons, dropped=reasons != "", step=step, models=models)
    return table[["query_id", "dropped", "step", "reason", "votes", "models", *_VALUES]]


def _facts(query: Query) -> tuple[str, str, int | None, str]:
    """query_id, domain, hops and required_modality."""
    told = query.metadata
    needed = str(told.get("required_modality", ""))
    return query.query_id, str(told.get("domain", "")), told.get("hops"), needed


def kept_questions(benchmark: Benchmark, decisions: pd.DataFrame) -> Benchmark:
    """Returns the questions that `filter_decisions` keeps; raises `VragError` if it keeps none."""
    left = list(decisions[~decisions["dropped"]]["query_id"])
    if not left:
        raise VragError(
            f"{benchmark.name}: the filter drops all {len(decisions):,} questions. Ask for more"
            " votes or confidence, or a smaller drop_share."
        )
    return benchmark.subset(left)


def without_dropped(suite: Mapping[str, Benchmark], file: Path | None) -> dict[str, Benchmark]:
    """Returns the data sets without the questions in `file`, the filtered split. `file` is as
    written by `write_dropped`, with the column dataset. None: all questions.

    Prints how many are left. Raises `VragError` for a file that cannot be read, and for a data set
    without any question left.
    """
    if file is None:
        return dict(suite)
    advice = '41_difficulty_filter writes it: run that first, or set `dropped` to "".'
    others = ("step", "reason", "votes", "models", *_VALUES)
    rows = read_csv_rows(
        file, ["dataset", "query_id"], "dropped questions", advice, optional=others
    )
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
    logger.info(f"kept by the filter: {', '.join(counts)}")
    return left


def write_dropped(decisions: pd.DataFrame, file: Path) -> None:
    """Writes the dropped questions as CSV: query_id, step, reason and the values that decided.
    Raises `VragError` if the file cannot be written.
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
    """Counts the questions dropped for each reason: `by`, n, one column per reason, n_kept, and
    share_kept (percent).
    """
    groups = decisions.groupby(list(by), sort=False)
    counts = groups.size().rename("n").to_frame()
    reasons = groups["reason"].value_counts().unstack(fill_value=0)
    for reason in (VERBATIM, KNOWN, EASY):
        counts[reason] = reasons.get(reason, 0)
    counts["n_kept"] = counts["n"] - groups["dropped"].sum()
    return counts.assign(share_kept=100 * counts["n_kept"] / counts["n"]).reset_index()


def answer_in_question(query: Query) -> bool:
    """Whether the question contains the words of an accepted answer consecutively. Options do not
    count; always false for yes, no and single characters.
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
    if rules.min_confidence is not None:
        knows &= first["confidence"] > rules.min_confidence
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
        both=left["required_modality"] == "both",
        success_rate=-left["success_rate"].fillna(0.0),
        chance=left["query_id"].map(chance),
    )
    order = order.sort_values(["hops", "both", "success_rate", "chance"], kind="stable")
    found: set[str] = set()
    for _, part in order.groupby("domain", sort=False):
        found |= set(part["query_id"].head(round(rules.drop_share * len(part))))
    return found


FILTERED = "filtered"
LEFT_OUT = "filtered, model left out"
AT_RANDOM = "random drop (control)"
DRAWS = 200
"""Number of random drops."""
_RESAMPLES = 2000
Decide = Callable[[frozenset[str]], pd.DataFrame | None]
"""Function from excluded models to the decisions (`filter_decisions`) of the others; None if too
few others are left.
"""


def leave_out_filter(
    benchmark: Benchmark,
    closed_book: pd.DataFrame,
    rules: FilterRules | None = None,
    *,
    baseline: pd.DataFrame | None = None,
) -> Decide:
    """Returns the decision function of `filter_controls`: `filter_decisions` without the answers of
    the excluded models, in closed book and baseline; None if fewer models are left than
    `min_votes`.
    """
    rules = rules or FilterRules()

    def decide(left_out: frozenset[str]) -> pd.DataFrame | None:
        others = closed_book[~closed_book["model"].isin(left_out)]
        if others["model"].nunique() < rules.min_votes:
            return None
        of_others = None if baseline is None else baseline[~baseline["model"].isin(left_out)]
        return filter_decisions(benchmark, others, rules, baseline=of_others)

    return decide


def filter_controls(
    judged: pd.DataFrame,
    decide: Decide,
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> pd.DataFrame:
    """Computes the filtered mean minus the full mean of every evaluated model. Columns: model,
    control (the three above), value, ci_low, ci_high, n (questions kept), n_full, n_failed,
    baseline ("all questions"); on the judge's scale.

    `judged` are the answers to all questions in one arm. For the filters the interval is a
    percentile bootstrap over groups of the difference of means; NaN for one group, and if all
    resamples agree, as for equal scores or identical groups, where it would be falsely certain; 0
    to 0 if nothing is dropped. The random drop has the filter's number of questions of each domain;
    value is the mean over `draws` drops, near 0 by construction, and the interval holds 95 % of
    them: the effect of chance for a drop of this size. Questions without a score count in n_failed
    and in no mean. If too few others are left to decide, or no question of `judged` with a score is
    kept, as in a memorised stratum, value is NaN and n is 0. Raises `VragError` if no question at
    all is kept, all models together are too few, or a model has answers in several arms.
    """
    values = per_query(judged, by=["model"])
    arms = judged.groupby("model")[["setting", "k"]].nunique().max(axis=1)
    if (arms > 1).any():
        raise VragError(
            f"filter_controls: {arms.idxmax()!r} was asked in several arms; take those of one"
            " setting and k."
        )
    everybody = decide(frozenset())
    if everybody is None:
        raise VragError(
            "filter_controls: fewer models answered without evidence than votes asks for. Name more"
            " filter_models, or ask for fewer votes."
        )
    if everybody["dropped"].all():
        raise VragError(
            "filter_controls: the filter drops every question. Ask for more votes or confidence, or"
            " a smaller drop_share."
        )
    asked = everybody[everybody["query_id"].isin(values["query_id"])]
    drops = [_drawn(asked, seed, draw) for draw in range(draws)]
    rows: list[tuple[object, ...]] = []
    for model, part in values.groupby("model", sort=False):
        known = part.dropna(subset="value").reset_index(drop=True)
        failed = len(part) - len(known)
        others = decide(frozenset({str(model)}))
        for control, decisions in ((FILTERED, everybody), (LEFT_OUT, others)):
            if decisions is None:
                rows.append((model, control, *[np.nan] * 3, 0, len(known), failed))
                continue
            dropped = set(decisions[decisions["dropped"]]["query_id"])
            stays = ~known["query_id"].isin(dropped).to_numpy()
            rows.append((model, control, *_change(known, stays, seed), len(known), failed))
        rows.append((model, AT_RANDOM, *_by_chance(known, drops), len(known), failed))
    columns = ["model", "control", "value", "ci_low", "ci_high", "n", "n_full", "n_failed"]
    return pd.DataFrame(rows, columns=columns).assign(baseline=ALL)


def _change(known: pd.DataFrame, stays: np.ndarray, seed: int) -> tuple[float, float, float, int]:
    """Mean over what stays less the mean over all, its interval over groups, and how many
    stay.
    """
    if not stays.any():
        return np.nan, np.nan, np.nan, 0
    values = known["value"].to_numpy(float)
    names, member = np.unique(known["group"].to_numpy(str), return_inverse=True)
    sums = np.zeros((len(names), 4))  # of a group: what stays, its number, all, their number
    columns = np.stack([values * stays, stays, values, np.ones(len(values))], axis=1)
    np.add.at(sums, member, columns)
    change = cluster_bootstrap(sums, _mean_change, seed=seed, resamples=_RESAMPLES)
    if len(names) == 1 or not np.ptp(values):
        change = (change[0], np.nan, np.nan)
    elif stays.all():
        change = (0.0, 0.0, 0.0)
    return *change, int(stays.sum())


def _mean_change(sums: np.ndarray) -> np.ndarray:
    """The change of the mean from the four sums of each resample; NaN where nothing stays."""
    with np.errstate(invalid="ignore"):
        change: np.ndarray = sums[:, 0] / sums[:, 1] - sums[:, 2] / sums[:, 3]
    return change


def _drawn(decisions: pd.DataFrame, seed: int, draw: int) -> frozenset[str]:
    """As many questions of each domain as the decisions drop, drawn by hash."""
    dropped: set[str] = set()
    for _, part in decisions.groupby("domain", sort=False):
        many = int(part["dropped"].sum())
        dropped |= set(ordered(part["query_id"], seed, "random drop", draw)[:many])
    return frozenset(dropped)


def _by_chance(known: pd.DataFrame, drops: list[frozenset[str]]) -> tuple[float, float, float, int]:
    values = known["value"].to_numpy(float)
    changes, sizes = [], []
    for dropped in drops:
        stays = ~known["query_id"].isin(dropped).to_numpy()
        if stays.any():
            changes.append(values[stays].mean() - values.mean())
            sizes.append(stays.sum())
    if not changes:
        return np.nan, np.nan, np.nan, 0
    low, high = np.quantile(changes, [0.025, 0.975])
    return float(np.mean(changes).round(12)), float(low), float(high), int(np.median(sizes))


def closed_book_table(
    closed_book: Mapping[str, pd.DataFrame], confidence: float | None
) -> pd.DataFrame:
    """Counts closed-book answers: dataset, model, answers, correct (with the best score), without
    confidence, surer (above `confidence`, if that is given), correct and surer; numbers of answers,
    no shares.
    """
    rows = []
    for name, judged in closed_book.items():
        correct = judged["score"] >= scale_of(judged).best
        surer = judged["confidence"] > (-1 if confidence is None else confidence)
        told = pd.DataFrame(
            {
                "answers": judged["score"].notna(),
                "correct": correct,
                "without confidence": judged["confidence"].isna(),
                "surer": surer,
                "correct and surer": correct & surer,
            }
        )
        counts = told.groupby(judged["model"], sort=False).sum()
        rows.append(counts.reset_index().assign(dataset=name))
    return pd.concat(rows, ignore_index=True).set_index(["dataset", "model"])


def filter_controls_by_dataset(
    suite: Mapping[str, Benchmark],
    judged: Mapping[str, pd.DataFrame],
    closed_book: Mapping[str, pd.DataFrame],
    rules: FilterRules | None = None,
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """Runs `filter_controls` on each data set and stratum, in points: dataset, stratum, model,
    setting (the control), metric, value, ci_low, ci_high, n, n_full, n_failed, baseline.

    `judged` are the answers of each in one arm (`judge_suite`, then `training_strata`),
    `closed_book` those for the filter. Decisions are made for all strata together. Raises as
    `leave_out_filter` and `filter_controls` do.
    """
    parts = []
    for name, benchmark in suite.items():
        decide = leave_out_filter(benchmark, closed_book[name], rules)
        metric = judged[name]["metric"].iloc[0]
        for stratum, part in judged[name].groupby("stratum", sort=False):
            table = filter_controls(part, decide, seed=seed)
            parts.append(table.assign(dataset=name, stratum=stratum, metric=metric))
    table = to_percent(pd.concat(parts, ignore_index=True))
    return table.rename(columns={"control": "setting"})


def kept_shares(decisions: pd.DataFrame) -> pd.DataFrame:
    """Computes `keep_rates` of each dataset, with `published`: the paper's kept share in percent
    (Table 1), NaN for a data set that is not in the paper.

    `decisions` are those of every data set, with the column dataset.
    """
    table = keep_rates(decisions, by=["dataset"])
    counts = published("mrag_suite", 1).pivot(index="dataset", columns="metric", values="value")
    share = 100 * counts["n_filtered"] / counts["n_full"]
    return table.assign(published=share.reindex(table["dataset"]).to_numpy(float))


def published_filter_change() -> pd.DataFrame:
    """Computes the published filtered minus full accuracy (Table 2), in points: dataset, model,
    value; of other models, and of filters whose lists are not public.
    """
    wide = published("mrag_suite", 2).pivot(
        index=["dataset", "model"], columns="split", values="value"
    )
    return (wide["filtered"] - wide["full"]).rename("value").reset_index()
