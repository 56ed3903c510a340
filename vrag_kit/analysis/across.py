"""Any metric on any benchmark: a value with its n and interval, or the reason, in words,
why there is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any  # cells of a table

import pandas as pd

from vrag_kit.analysis.accuracy import column_means
from vrag_kit.analysis.across_claims import claims_lacking
from vrag_kit.analysis.cells import interval_cells
from vrag_kit.analysis.claims_means import MM_RAGCHECKER, RAGCHECKER, claim_means
from vrag_kit.analysis.conversation_means import conversation_means
from vrag_kit.analysis.conversations import StopRule
from vrag_kit.analysis.detection import with_evidence
from vrag_kit.analysis.gcue import gcue
from vrag_kit.errors import VragError
from vrag_kit.frames import require_columns
from vrag_kit.judging import OWN_METRICS, SHARES, TRUTH, MetricJudge, judge_all, scale_of
from vrag_kit.types import Benchmark

NO_LABEL = "no document is labelled as one that answers"
CHOOSES = "an answer chooses an option, and is no text"
NO_OPTIONS = "no question has options"
NO_KEYPOINTS = "the data has no keypoints"
_GCUE_ARMS = {
    "zero_shot": "no evidence",
    "gt_clue": "gold alone",
    "non_clue": "one that is no gold",
    "one_in_k": "gold among others",
}
_LAMBDA = 1.0  # the benefit is over no evidence: a useless document lifts it nowhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What one model answered to one benchmark."""

    name: str
    """Of the row."""
    benchmark: Benchmark
    judged: pd.DataFrame
    """Of `judge_all`, by the benchmark's own judge; all arms that were asked."""
    setting: str = "top_k"
    """The arm that is measured; gCUE needs others beside it."""
    k: int | None = None
    """Of the arm, and of the company in gCUE; None where the setting has but one."""
    retriever: str = ""
    """Who found what the arm shows."""
    stop: StopRule | None = None
    """What ends a conversation; None where nothing does."""
    checked: pd.DataFrame | None = None
    """The arm's answers with their sheets, of `with_claims`."""
    claims_of: str = "questions"
    """What n of metrics of claims counts: "long answers", where others were asked for."""
    unchecked: str = "no claims were taken out of its answers"
    """Why there are no sheets."""

    @property
    def arm(self) -> pd.DataFrame:
        """The answers that are measured; raises `VragError` where there are none, or
        those of several models.
        """
        require_columns(self.judged, ["model", "setting", "k", "query_id", "group"], "across")
        rows = self.judged[self.judged["setting"] == self.setting]
        rows = rows if self.k is None else rows[rows["k"] == self.k]
        if rows["model"].nunique() != 1:
            found = ", ".join(rows["model"].unique()) or "none"
            at = "" if self.k is None else f" at k = {self.k}"
            raise VragError(
                f"across, {self.name}: found answers of the models {found} in the setting"
                f" {self.setting!r}{at}; expected one model. Give each model a row, and ask this"
                " setting."
            )
        return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A cell: a mean with its n and interval, or why there is none."""

    value: float = math.nan
    """As a share; gCUE as a ratio."""
    ci_low: float = math.nan
    ci_high: float = math.nan
    n: int = 0
    """What the mean is over; 0 where there is none."""
    counted: str = "questions"
    """What n counts."""
    n_failed: int = 0
    """Answers (conversations, where they are counted) that have no value."""
    reason: str = ""
    """Why there is no value; "" where there is one."""


Metric = Callable[[Answered], Measured]


def accuracy_across(answered: Answered) -> Measured:
    """Mean score by the benchmark's own judge, in [0, 1]; the share of right turns, as
    they were answered, where it judges truth.
    """
    if scale_of(answered.arm) == TRUTH:
        return _of_talks(answered, "accuracy")
    return _mean(answered, answered.arm, "score", "no answer has a verdict")


def abstention_across(answered: Answered) -> Measured:
    """Share of answers that decline, in [0, 1]."""
    if scale_of(answered.arm) == TRUTH:
        return _of_talks(answered, "missing")
    return _mean(answered, answered.arm, "abstained", "no answer has a verdict")


def truthfulness_across(answered: Answered) -> Measured:
    """What is right less what is wrong, in [−1, 1]; what declines is neither.

    Where the judge does not judge truth, an answer of score s that does not decline is
    right by s and wrong by 1 − s. Of conversations the mean is over what is left of
    them after `stop`, as CRAG-MM has it.
    """
    rows = answered.arm
    if scale_of(rows) == TRUTH:
        return _of_talks(answered, "truthfulness")
    wrong = (1 - rows["score"]) * (1 - rows["abstained"])
    truth = rows.assign(truth=rows["score"] - wrong)
    return _mean(answered, truth, "truth", "no answer has a verdict", signed=True)


def gcue_across(answered: Answered) -> Measured:
    """gCUE of one gold document among k − 1 others, at λ = 1; any real number.

    Its four arms are zero_shot, gt_clue, non_clue and one_in_k.
    """
    if not any(map(answered.benchmark.relevant, answered.benchmark.queries)):
        return Measured(reason=NO_LABEL)
    asked = set(answered.judged["setting"])
    if missing := [words for name, words in _GCUE_ARMS.items() if name not in asked]:
        return Measured(reason=f"not asked with {', '.join(missing)}")
    table = gcue(answered.judged, lambdas=[_LAMBDA])
    table = table[table["k"] == (table["k"].min() if answered.k is None else answered.k)]
    if table.empty:
        return Measured(reason=f"not asked with gold among {answered.k}")
    (row,) = table.to_dict("records")
    if math.isnan(row["value"]):
        return Measured(reason=row["interval"])
    return _measured(row)


def found_across(answered: Answered) -> Measured:
    """Share of questions of which one labelled document, or more, was shown, in [0, 1];
    questions without a label are left out.
    """
    rows, benchmark = answered.arm, answered.benchmark
    labelled = [bool(benchmark.relevant(query_id)) for query_id in rows["query_id"]]
    rows = rows[labelled]
    if rows.empty:
        return Measured(reason=NO_LABEL)
    shown = with_evidence(rows, benchmark)
    shown = shown.assign(evidence=shown["evidence"].astype(float))
    return _mean(answered, shown, "evidence", NO_LABEL)


def claims_across(answered: Answered, *, family: str, metric: str) -> Measured:
    """The mean of a metric of claims over answers, in [0, 1], of all modalities."""
    checked = answered.checked
    if checked is None:
        return Measured(reason=answered.unchecked)
    if lacking := claims_lacking(checked["sheet"], metric):
        return Measured(reason=lacking)
    table = claim_means(checked, by=["model"])
    chosen = (table["family"] == family) & (table["metric"] == metric)
    (row,) = table[chosen & (table["modality"] == "all")].to_dict("records")
    if not row["n"]:
        return Measured(reason="no answer's verdicts could be read")
    return _measured(row, counted=answered.claims_of)


def own_across(answered: Answered, *, metric: str) -> Measured:
    """One of `OWN_METRICS` of the answers, whoever's own it is; over the questions that
    have something to compare with.
    """
    queries, score = answered.benchmark.queries, OWN_METRICS[metric]
    chooses = metric == "choice_accuracy"
    has_options = {name for name, query in queries.items() if query.choices}
    fit = [name for name in queries if (name in has_options) == chooses]
    if not fit:
        return Measured(reason=NO_OPTIONS if chooses else CHOOSES)
    fit = [name for name in fit if not math.isnan(score(queries[name], ""))]
    if not fit:
        lacks_keypoints = metric == "keypoint_coverage"
        return Measured(reason=NO_KEYPOINTS if lacks_keypoints else "no accepted answer is known")
    rows = answered.arm[answered.arm["query_id"].isin(fit)]
    scored = judge_all(MetricJudge(metric), answered.benchmark, rows)
    return _mean(answered, scored, "score", "no answer could be scored")


ACROSS: Mapping[str, Metric] = {
    "accuracy": accuracy_across,
    "abstention": abstention_across,
    "truthfulness": truthfulness_across,
    "gcue": gcue_across,
    "evidence_found": found_across,
    "claim_recall": partial(claims_across, family=RAGCHECKER, metric="claim_recall"),
    "answer_claim_recall": partial(
        claims_across, family=MM_RAGCHECKER, metric="answer_claim_recall"
    ),
    "faithfulness": partial(claims_across, family=RAGCHECKER, metric="faithfulness"),
    "evidence_used": partial(claims_across, family=MM_RAGCHECKER, metric="evidence_used"),
    **{name: partial(own_across, metric=name) for name in OWN_METRICS},
}
"""Metric → how it is measured anywhere."""


def strata_of(answered: Answered, told: Mapping[str, Collection[str]]) -> list[Answered]:
    """The row by stratum, "…, <stratum>", and then the row itself; only the row itself where
    there are not two strata.

    Strata are those of the answers' column `stratum` (as of MRAG-Bench's `with_scenarios`).
    Without it they are "in training data", the questions whose groups are in the model's
    part of `told` (see `told_facts`), and "not in training data".
    """
    (model,) = answered.arm["model"].unique()
    judged = answered.judged
    if "stratum" in judged:
        strata = judged["stratum"]
    elif model in told:
        known = judged["group"].isin(list(told[model]))
        strata = known.map({True: "in training data", False: "not in training data"})
    else:
        return [answered]
    rows = []
    for words in sorted(strata.unique()):
        part = judged[strata == words]
        few = answered.benchmark.subset(set(part["query_id"]))
        name = f"{answered.name}, {words}"
        rows.append(replace(answered, name=name, benchmark=few, judged=part))
    return [*rows, answered] if len(rows) > 1 else [answered]


def across(answered: Sequence[Answered], metrics: Mapping[str, Metric] = ACROSS) -> pd.DataFrame:
    """Every metric of every row: benchmark, model, retriever, judged_by, setting, metric,
    value, ci_low, ci_high, n, counted, n_failed, unit, reason.

    Shares are in percent; gCUE is a ratio. A cell has a value, with n and a 95 %
    interval over groups, or a reason. Raises `VragError` where a row's arm was not
    asked, or by several models.
    """
    rows = []
    for each in answered:
        arm = each.arm
        named = {"benchmark": each.name, "model": arm["model"].iloc[0], "retriever": each.retriever}
        judges = list(arm["judged_by"].unique()) if "judged_by" in arm else []
        named |= {"judged_by": " | ".join(judges), "setting": each.setting}
        for name, metric in metrics.items():
            rows.append({**named, "metric": name, **asdict(metric(each))})
    table = pd.DataFrame(rows)
    ratio = table["metric"] == "gcue"
    for column in ("value", "ci_low", "ci_high"):
        table[column] = table[column].where(ratio, 100 * table[column])
    last = ["reason"]
    unit = ratio.map({True: "ratio", False: "percent"})
    return table.assign(unit=unit)[[*table.columns.difference(last, sort=False), "unit", *last]]


def across_table(table: pd.DataFrame) -> pd.DataFrame:
    """`across` as people read it: benchmarks down, metrics across; "61.7 [51.0, 71.4]
    (n = 81)", or the reason.
    """
    cells = interval_cells(table, n=True).where(table["unit"] == "percent")
    cells = cells.fillna(interval_cells(table, decimals=2, n=True))
    failed = table["n_failed"].map("; {:.0f} failed".format).where(table["n_failed"] > 0, "")
    told = (cells + failed).where(table["reason"] == "", table["reason"])
    wide = table.assign(cell=told).pivot_table(
        index=["benchmark", "model"], columns="metric", values="cell", aggfunc="first", sort=False
    )
    return wide.rename_axis(columns=None)


def _of_talks(answered: Answered, metric: str) -> Measured:
    stop = answered.stop or _never
    table = conversation_means(answered.arm, answered.benchmark, stop, by=["model"])
    (row,) = table[table["metric"] == metric].to_dict("records")
    if not row["n"]:
        return Measured(reason="no conversation has all its verdicts")
    talks = row["n_turns"] > row["n"]
    if metric == "truthfulness":
        return _measured(row, counted="conversations" if talks else "questions")
    return _measured(row | {"n": row["n_turns"]}, counted="turns" if talks else "questions")


def _never(scores: Sequence[float]) -> None:
    """No conversation ends early."""


def _mean(
    answered: Answered, rows: pd.DataFrame, column: str, otherwise: str, *, signed: bool = False
) -> Measured:
    scale = TRUTH if signed else SHARES
    (row,) = column_means(rows, [column], by=["model"], scale=scale).to_dict("records")
    if not row["n"]:
        return Measured(reason=otherwise)
    talks = any(query.conversation_id for query in answered.benchmark.queries.values())
    return _measured(row, counted="turns" if talks else "questions")


def _measured(row: Mapping[Hashable, Any], counted: str = "questions") -> Measured:
    return Measured(
        value=row["value"],
        ci_low=row["ci_low"],
        ci_high=row["ci_high"],
        n=row["n"],
        counted=counted,
        n_failed=row["n_failed"],
    )
