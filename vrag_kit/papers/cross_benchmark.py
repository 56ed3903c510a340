"""Reasons why a claim metric is undefined for a table of answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any  # cells of a table

import pandas as pd

from vrag_kit.analysis.abstention import add_has_evidence
from vrag_kit.analysis.conversations import StopRule, conversation_means
from vrag_kit.analysis.means import column_means
from vrag_kit.analysis.report_tables import ci_cells
from vrag_kit.claims.means import MM_RAGCHECKER, RAGCHECKER, claim_means
from vrag_kit.claims.verdicts import ClaimVerdicts
from vrag_kit.errors import VragError
from vrag_kit.judging import SHARES, TRUTH, judge_answers, scale_of
from vrag_kit.judging.answer_metrics import OWN_METRICS, MetricJudge
from vrag_kit.papers.visual_rag.gcue import gcue
from vrag_kit.tables import require_columns
from vrag_kit.types import Benchmark

NO_SHEET = "no answer has a sheet of claims"
_GOLD = "no gold claims"
_CLAIMS = "no claims in answers"
_SHOWN = "nothing was shown"
_LACKS: Mapping[str, Callable[[ClaimVerdicts], bool]] = {
    _GOLD: lambda sheet: not sheet.gold_claims,
    _CLAIMS: lambda sheet: not sheet.claims,
    _SHOWN: lambda sheet: not sheet.items,
}
_NEEDS = {
    "claim_recall": (_GOLD, _SHOWN),
    "answer_claim_recall": (_GOLD, _CLAIMS),
    "faithfulness": (_CLAIMS, _SHOWN),
    "evidence_utilization": (_CLAIMS, _SHOWN),
}
"""Metric → what it needs. An answer without claims uses no evidence and recalls nothing; where no
answer has any claim, that is due to the claim extractor.
"""


def missing_for_claim_metric(sheets: Iterable[ClaimVerdicts | None], metric: str) -> str:
    """Names the requirement of a claim metric that all sheets lack; "" where there is none."""
    there = [sheet for sheet in sheets if isinstance(sheet, ClaimVerdicts)]
    if not there:
        return NO_SHEET
    for reason in _NEEDS[metric]:
        if all(_LACKS[reason](sheet) for sheet in there):
            return reason
    return ""


NO_LABEL = "no document is labelled as one that answers"
CHOOSES = "multiple-choice answers"
NO_OPTIONS = "no options"
NO_KEYPOINTS = "no keypoints"
_GCUE_ARMS = {
    "zero_shot": "no evidence",
    "gt_clue": "gold alone",
    "non_clue": "one that is no gold",
    "one_in_k": "gold among others",
}
_LAMBDA = 1.0  # the benefit is over no evidence: a useless document lifts it nowhere


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedBenchmark:
    """The judged answers of one model on one benchmark."""

    name: str
    """The name of the row in the table."""
    benchmark: Benchmark
    judged: pd.DataFrame
    """The table of `judge_answers`, by the benchmark's own judge; all settings that were run."""
    setting: str = "top_k"
    """The setting that is measured; gCUE needs others too."""
    k: int | None = None
    """The k of the measured setting, and of gCUE; None where the setting has only one k."""
    retriever: str = ""
    """The name of the retriever of the documents shown."""
    stop: StopRule | None = None
    """The early-stopping rule of conversations; None for no early stopping."""
    checked: pd.DataFrame | None = None
    """The answers of the measured setting with their sheets, of `check_answers`."""
    claims_of: str = "questions"
    """What n of claim metrics counts, such as "long answers" where these were generated."""
    unchecked: str = "no claims were taken out of its answers"
    """The reason why there are no sheets."""

    @property
    def arm(self) -> pd.DataFrame:
        """The answers that are measured. Raises `VragError` where there are none, or where they are
        of several models.
        """
        require_columns(
            self.judged, ["model", "setting", "k", "query_id", "group"], "JudgedBenchmark"
        )
        rows = self.judged[self.judged["setting"] == self.setting]
        rows = rows if self.k is None else rows[rows["k"] == self.k]
        if rows["model"].nunique() != 1:
            found = ", ".join(rows["model"].unique()) or "none"
            at = "" if self.k is None else f" at k = {self.k}"
            raise VragError(
                f"JudgedBenchmark {self.name}: found answers of the models {found} in the setting"
                f" {self.setting!r}{at}; expected one model. Give each model a row, and ask this"
                " setting."
            )
        return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricResult:
    """One cell: a mean with its n and interval, or the reason why there is none."""

    value: float = math.nan
    """A share; for gCUE a ratio."""
    ci_low: float = math.nan
    ci_high: float = math.nan
    n: int = 0
    """The number of units behind the mean; 0 where there is none."""
    unit_of_n: str = "questions"
    """What n counts."""
    n_failed: int = 0
    """Answers without a value, or conversations where n counts these."""
    reason: str = ""
    """Why there is no value; "" where there is one."""


Metric = Callable[[JudgedBenchmark], MetricResult]


def accuracy_metric(answered: JudgedBenchmark) -> MetricResult:
    """Mean score by the benchmark's own judge, in [0, 1]. Where the judge scores truthfulness, the
    share of correct turns before early stopping.
    """
    if scale_of(answered.arm) == TRUTH:
        return _of_conversations(answered, "accuracy")
    return _mean(answered, answered.arm, "score", "no answer has a verdict")


def abstention_metric(answered: JudgedBenchmark) -> MetricResult:
    """Share of answers that abstain, in [0, 1]."""
    if scale_of(answered.arm) == TRUTH:
        return _of_conversations(answered, "missing")
    return _mean(answered, answered.arm, "abstained", "no answer has a verdict")


def truthfulness_metric(answered: JudgedBenchmark) -> MetricResult:
    """Share of correct answers minus share of incorrect ones, in [−1, 1]; an abstention is neither.

    Where the judge does not score truthfulness, an answer of score s that does not abstain is
    correct by s and incorrect by 1 − s. For conversations the mean is taken after early stopping by
    `stop`, as in CRAG-MM.
    """
    rows = answered.arm
    if scale_of(rows) == TRUTH:
        return _of_conversations(answered, "truthfulness")
    wrong = (1 - rows["score"]) * (1 - rows["abstained"])
    truth = rows.assign(truth=rows["score"] - wrong)
    return _mean(answered, truth, "truth", "no answer has a verdict", signed=True)


def gcue_metric(answered: JudgedBenchmark) -> MetricResult:
    """gCUE of one gold document among k − 1 others, at λ = 1; any real number.

    Its four arms are zero_shot, gt_clue, non_clue and one_in_k.
    """
    if not any(map(answered.benchmark.relevant, answered.benchmark.queries)):
        return MetricResult(reason=NO_LABEL)
    asked = set(answered.judged["setting"])
    if missing := [words for name, words in _GCUE_ARMS.items() if name not in asked]:
        return MetricResult(reason=f"settings not run: {', '.join(missing)}")
    table = gcue(answered.judged, lambdas=[_LAMBDA])
    table = table[table["k"] == (table["k"].min() if answered.k is None else answered.k)]
    if table.empty:
        return MetricResult(reason=f"settings not run: gold among {answered.k}")
    (row,) = table.to_dict("records")
    if math.isnan(row["value"]):
        return MetricResult(reason=row["interval"])
    return _measured(row)


def evidence_found_metric(answered: JudgedBenchmark) -> MetricResult:
    """Share of questions whose context has at least one relevant document, in [0, 1]. Questions
    without a label are left out.
    """
    rows, benchmark = answered.arm, answered.benchmark
    labelled = [bool(benchmark.relevant(query_id)) for query_id in rows["query_id"]]
    rows = rows[labelled]
    if rows.empty:
        return MetricResult(reason=NO_LABEL)
    shown = add_has_evidence(rows, benchmark)
    shown = shown.assign(evidence=shown["clue_in_context"].astype(float))
    return _mean(answered, shown, "evidence", NO_LABEL)


def claim_metric(answered: JudgedBenchmark, *, family: str, metric: str) -> MetricResult:
    """Mean of one claim metric over answers, in [0, 1], over all modalities."""
    checked = answered.checked
    if checked is None:
        return MetricResult(reason=answered.unchecked)
    if lacking := missing_for_claim_metric(checked["sheet"], metric):
        return MetricResult(reason=lacking)
    table = claim_means(checked, by=["model"])
    chosen = (table["family"] == family) & (table["metric"] == metric)
    (row,) = table[chosen & (table["modality"] == "all")].to_dict("records")
    if not row["n"]:
        return MetricResult(reason="no answer's verdicts could be read")
    return _measured(row, unit_of_n=answered.claims_of)


def answer_metric(answered: JudgedBenchmark, *, metric: str) -> MetricResult:
    """Mean of one of `OWN_METRICS` over answers, on any benchmark. Questions without anything to
    compare with are left out.
    """
    queries, score = answered.benchmark.queries, OWN_METRICS[metric]
    chooses = metric == "choice_accuracy"
    has_options = {name for name, query in queries.items() if query.choices}
    fit = [name for name in queries if (name in has_options) == chooses]
    if not fit:
        return MetricResult(reason=NO_OPTIONS if chooses else CHOOSES)
    fit = [name for name in fit if not math.isnan(score(queries[name], ""))]
    if not fit:
        lacks_keypoints = metric == "keypoint_coverage"
        return MetricResult(
            reason=NO_KEYPOINTS if lacks_keypoints else "no accepted answer is known"
        )
    rows = answered.arm[answered.arm["query_id"].isin(fit)]
    scored = judge_answers(MetricJudge(metric), answered.benchmark, rows)
    return _mean(answered, scored, "score", "no answer could be scored")


ACROSS: Mapping[str, Metric] = {
    "accuracy": accuracy_metric,
    "abstention": abstention_metric,
    "truthfulness": truthfulness_metric,
    "gcue": gcue_metric,
    "evidence_hit_rate": evidence_found_metric,
    "claim_recall": partial(claim_metric, family=RAGCHECKER, metric="claim_recall"),
    "answer_claim_recall": partial(
        claim_metric, family=MM_RAGCHECKER, metric="answer_claim_recall"
    ),
    "faithfulness": partial(claim_metric, family=RAGCHECKER, metric="faithfulness"),
    "evidence_utilization": partial(
        claim_metric, family=MM_RAGCHECKER, metric="evidence_utilization"
    ),
    **{name: partial(answer_metric, metric=name) for name in OWN_METRICS},
}
"""Metric → the function that computes it on any benchmark."""


def stratum_rows(
    answered: JudgedBenchmark, trained: Mapping[str, Collection[str]]
) -> list[JudgedBenchmark]:
    """The row by stratum, named "…, <stratum>", and then the row itself. With fewer than two strata
    it is only the row itself.

    Strata are those of the answers' column `stratum` (as of MRAG-Bench's `with_scenarios`).
    Without it they are "in training data", the questions whose groups are in the model's
    part of `trained` (see `trained_groups`), and "not in training data".
    """
    (model,) = answered.arm["model"].unique()
    judged = answered.judged
    if "stratum" in judged:
        strata = judged["stratum"]
    elif model in trained:
        known = judged["group"].isin(list(trained[model]))
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


def cross_benchmark_scores(
    answered: Sequence[JudgedBenchmark], metrics: Mapping[str, Metric] = ACROSS
) -> pd.DataFrame:
    """Computes every metric for every row: benchmark, model, retriever, judge, setting, metric,
    value, ci_low, ci_high, n, unit_of_n, n_failed, unit, reason.

    Shares are in percent; gCUE is a ratio. A cell has a value, with n and a 95 % interval over
    groups, or a reason. Raises `VragError` where a row's setting has no answers, or those of
    several models.
    """
    rows = []
    for each in answered:
        arm = each.arm
        named = {"benchmark": each.name, "model": arm["model"].iloc[0], "retriever": each.retriever}
        judges = list(arm["judge"].unique()) if "judge" in arm else []
        named |= {"judge": " | ".join(judges), "setting": each.setting}
        for name, metric in metrics.items():
            rows.append({**named, "metric": name, **asdict(metric(each))})
    table = pd.DataFrame(rows)
    ratio = table["metric"] == "gcue"
    for column in ("value", "ci_low", "ci_high"):
        table[column] = table[column].where(ratio, 100 * table[column])
    last = ["reason"]
    unit = ratio.map({True: "ratio", False: "percent"})
    return table.assign(unit=unit)[[*table.columns.difference(last, sort=False), "unit", *last]]


def cross_benchmark_table(table: pd.DataFrame) -> pd.DataFrame:
    """Formats `cross_benchmark_scores` as a table: benchmarks down, metrics across. Cells read
    "61.7 [51.0, 71.4] (n = 81)", or give the reason.
    """
    cells = ci_cells(table, n=True).where(table["unit"] == "percent")
    cells = cells.fillna(ci_cells(table, decimals=2, n=True))
    failed = table["n_failed"].map("; {:.0f} failed".format).where(table["n_failed"] > 0, "")
    told = (cells + failed).where(table["reason"] == "", table["reason"])
    wide = table.assign(cell=told).pivot_table(
        index=["benchmark", "model"], columns="metric", values="cell", aggfunc="first", sort=False
    )
    return wide.rename_axis(columns=None)


def _of_conversations(answered: JudgedBenchmark, metric: str) -> MetricResult:
    stop = answered.stop or _never
    table = conversation_means(answered.arm, answered.benchmark, stop, by=["model"])
    (row,) = table[table["metric"] == metric].to_dict("records")
    if not row["n"]:
        return MetricResult(reason="no conversation has all its verdicts")
    talks = row["n_turns"] > row["n"]
    if metric == "truthfulness":
        return _measured(row, unit_of_n="conversations" if talks else "questions")
    return _measured(row | {"n": row["n_turns"]}, unit_of_n="turns" if talks else "questions")


def _never(scores: Sequence[float]) -> None:
    """No conversation ends early."""


def _mean(
    answered: JudgedBenchmark,
    rows: pd.DataFrame,
    column: str,
    otherwise: str,
    *,
    signed: bool = False,
) -> MetricResult:
    scale = TRUTH if signed else SHARES
    (row,) = column_means(rows, [column], by=["model"], scale=scale).to_dict("records")
    if not row["n"]:
        return MetricResult(reason=otherwise)
    talks = any(query.conversation_id for query in answered.benchmark.queries.values())
    return _measured(row, unit_of_n="turns" if talks else "questions")


def _measured(row: Mapping[Hashable, Any], unit_of_n: str = "questions") -> MetricResult:
    return MetricResult(
        value=row["value"],
        ci_low=row["ci_low"],
        ci_high=row["ci_high"],
        n=row["n"],
        unit_of_n=unit_of_n,
        n_failed=row["n_failed"],
    )
