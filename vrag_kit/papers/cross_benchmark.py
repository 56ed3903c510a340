"""Any metric on any benchmark: its mean with n and interval, or the reason why there is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any  # cells of a table

import pandas as pd

from vrag_kit.analysis.abstention import add_has_evidence
from vrag_kit.analysis.conversations import StopRule
from vrag_kit.analysis.means import column_means
from vrag_kit.analysis.report_tables import ci_cells, report_table
from vrag_kit.claims.means import MM_RAGCHECKER, RAGCHECKER, claim_means
from vrag_kit.claims.verdicts import ClaimVerdicts
from vrag_kit.errors import VragError
from vrag_kit.judging import SHARES, TRUTH, Scale, judge_answers, scale_of
from vrag_kit.judging.answer_metrics import OWN_METRICS, MetricJudge
from vrag_kit.papers.crag_mm.conversations import conversation_means
from vrag_kit.papers.visual_rag.gcue import gcue
from vrag_kit.types import Benchmark

NO_LABEL = "no document is labelled as one that answers"
_CLAIM_METRICS = {
    "claim_recall": (RAGCHECKER, ("gold_claims", "items")),
    "answer_claim_recall": (MM_RAGCHECKER, ("gold_claims", "claims")),
    "faithfulness": (RAGCHECKER, ("claims", "items")),
    "evidence_utilization": (MM_RAGCHECKER, ("claims", "items")),
}
"""Metric → its family, and the parts of a sheet that it needs. An answer without claims uses no
evidence and recalls nothing; where no answer has any claim, that is due to the claim extractor.
"""
_LACKS = {
    "gold_claims": "no gold claims",
    "claims": "no claims in answers",
    "items": "nothing was shown",
}
_GCUE_ARMS = {
    "zero_shot": "no evidence",
    "gt_clue": "gold alone",
    "non_clue": "one that is no gold",
    "one_in_k": "gold among others",
}
_COLUMNS = [
    *("benchmark", "model", "retriever", "judge", "setting", "metric", "value", "ci_low"),
    *("ci_high", "n", "unit_of_n", "n_failed", "unit", "reason"),
]


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
    stop: StopRule = lambda scores: None
    """The early-stopping rule of conversations; by default none ends early."""
    checked: pd.DataFrame | None = None
    """The answers of the measured setting with their sheets, of `check_answers`."""
    claims_of: str = "questions"
    """What n of claim metrics counts, such as "long answers" where these were generated."""

    @property
    def arm(self) -> pd.DataFrame:
        """The answers that are measured. Raises `VragError` where there are none, or where they are
        of several models.
        """
        rows = self.judged[self.judged["setting"] == self.setting]
        rows = rows if self.k is None else rows[rows["k"] == self.k]
        if rows["model"].nunique() != 1:
            found = ", ".join(rows["model"].unique()) or "none"
            raise VragError(
                f"JudgedBenchmark {self.name}: found answers of the models {found} in the setting"
                f" {self.setting!r} at k = {self.k}; expected one model."
            )
        return rows


Row = Mapping[Hashable, Any]
"""A mean: value, ci_low, ci_high, n, n_failed, and unit_of_n where n counts no questions."""
Metric = Callable[[JudgedBenchmark, str], Row | str]
"""Computes the metric of a name, a share or for gCUE a ratio; or returns the reason why there is
none.
"""


def _judged_metric(row: JudgedBenchmark, metric: str) -> Row | str:
    """accuracy: mean score by the benchmark's own judge, in [0, 1]. abstention: share of answers
    that abstain. truthfulness: share of correct answers minus share of incorrect ones, in [−1, 1];
    an answer of score s that does not abstain is correct by s and incorrect by 1 − s.

    Where the judge scores truthfulness, they are of conversations as in CRAG-MM: truthfulness after
    early stopping by `stop`, the shares of correct and of missing turns before it.
    """
    arm = row.arm
    if scale_of(arm) == TRUTH:
        return _of_conversations(row, "missing" if metric == "abstention" else metric)
    score = arm["score"]
    values = {"accuracy": score, "abstention": arm["abstained"]}
    values["truthfulness"] = score - (1 - score) * (1 - arm["abstained"])
    scale = TRUTH if metric == "truthfulness" else SHARES
    return _mean(row, arm.assign(value=values[metric]), scale)


def _gcue(row: JudgedBenchmark, metric: str) -> Row | str:
    """gCUE of one gold document among k − 1 others, at λ = 1; any real number."""
    if not any(map(row.benchmark.relevant, row.benchmark.queries)):
        return NO_LABEL
    rows = row.judged[~row.judged["setting"].eq("one_in_k") | row.judged["k"].isin([row.k])]
    missing = [words for name, words in _GCUE_ARMS.items() if name not in set(rows["setting"])]
    if missing:
        return f"settings not run: {', '.join(missing)}"
    # λ = 1: the benefit is over no evidence, which a useless document lifts nowhere
    (found,) = gcue(rows, lambdas=[1.0]).to_dict("records")
    return str(found["interval"]) if math.isnan(found["value"]) else found


def _evidence_hit_rate(row: JudgedBenchmark, metric: str) -> Row | str:
    """Share of questions whose context has at least one relevant document, in [0, 1]. Questions
    without a label are left out.
    """
    arm = row.arm[[bool(row.benchmark.relevant(name)) for name in row.arm["query_id"]]]
    if arm.empty:
        return NO_LABEL
    hits = add_has_evidence(arm, row.benchmark)["clue_in_context"].astype(float)
    return _mean(row, arm.assign(value=hits))


def _claim_metric(row: JudgedBenchmark, metric: str) -> Row | str:
    """Mean of one claim metric over answers, in [0, 1], over all modalities."""
    if row.checked is None:
        return "no claims were taken out of its answers"
    sheets = [sheet for sheet in row.checked["sheet"] if isinstance(sheet, ClaimVerdicts)]
    family, needed = _CLAIM_METRICS[metric]
    for part in needed if sheets else ():
        if not any(getattr(sheet, part) for sheet in sheets):
            return _LACKS[part]
    table = claim_means(row.checked, by=["model"])
    own = table["family"].eq(family) & table["metric"].eq(metric) & table["modality"].eq("all")
    return table[own].iloc[0].to_dict() | {"unit_of_n": row.claims_of}


def _answer_metric(row: JudgedBenchmark, metric: str) -> Row | str:
    """Mean of one of `OWN_METRICS` over answers, on any benchmark. Questions without anything to
    compare with are left out.
    """
    queries, score = row.benchmark.queries, OWN_METRICS[metric]
    chooses = metric == "choice_accuracy"
    fit = [name for name, query in queries.items() if bool(query.choices) == chooses]
    if not fit:
        return "no options" if chooses else "multiple-choice answers"
    fit = [name for name in fit if not math.isnan(score(queries[name], ""))]
    if not fit:
        return "no keypoints" if metric == "keypoint_coverage" else "no accepted answer is known"
    arm = row.arm[row.arm["query_id"].isin(fit)]
    judged = judge_answers(MetricJudge(metric), row.benchmark, arm)
    return _mean(row, judged.assign(value=judged["score"]))


ACROSS: Mapping[str, Metric] = {
    **dict.fromkeys(["accuracy", "abstention", "truthfulness"], _judged_metric),
    "gcue": _gcue,
    "evidence_hit_rate": _evidence_hit_rate,
    **dict.fromkeys(_CLAIM_METRICS, _claim_metric),
    **dict.fromkeys(OWN_METRICS, _answer_metric),
}
"""Metric → the function that computes it on any benchmark."""


def _of_conversations(row: JudgedBenchmark, metric: str) -> Row:
    table = conversation_means(row.arm, row.benchmark, row.stop, by=["model"])
    (found,) = table[table["metric"] == metric].to_dict("records")
    several = found["n_turns"] > found["n"]
    if metric == "truthfulness":
        return found | {"unit_of_n": "conversations" if several else "questions"}
    return found | {"n": found["n_turns"], "unit_of_n": "turns" if several else "questions"}


def _mean(row: JudgedBenchmark, answers: pd.DataFrame, scale: Scale = SHARES) -> Row:
    (found,) = column_means(answers, ["value"], by=["model"], scale=scale).to_dict("records")
    talks = any(query.conversation_id for query in row.benchmark.queries.values())
    return found | {"unit_of_n": "turns" if talks else "questions"}


def stratum_rows(
    answered: JudgedBenchmark, trained: Mapping[str, Collection[str]]
) -> list[JudgedBenchmark]:
    """The row by stratum, named "…, <stratum>", and then the row itself. With fewer than two strata
    it is only the row itself.

    Strata are those of the answers' column `stratum` (as of MRAG-Bench's `with_scenarios`).
    Without it they are "in training data", the questions whose groups are in the model's
    part of `trained` (see `trained_groups`), and "not in training data".
    """
    judged = answered.judged
    model = answered.arm["model"].iloc[0]
    if model in trained and "stratum" not in judged:
        known = judged["group"].isin(list(trained[model]))
        names = {True: "in training data", False: "not in training data"}
        judged = judged.assign(stratum=known.map(names))
    rows = []
    for stratum, part in judged.groupby("stratum") if "stratum" in judged else ():
        few = answered.benchmark.subset(set(part["query_id"]))
        name = f"{answered.name}, {stratum}"
        rows.append(replace(answered, name=name, benchmark=few, judged=part))
    return [*rows, answered] if len(rows) > 1 else [answered]


def cross_benchmark_scores(answered: Sequence[JudgedBenchmark]) -> pd.DataFrame:
    """Computes every metric of `ACROSS` for every row: benchmark, model, retriever, judge, setting,
    metric, value, ci_low, ci_high, n, unit_of_n, n_failed, unit, reason.

    Shares are in percent; gCUE is a ratio. A cell has a value, with n and a 95 % interval over
    groups, or a reason. Raises `VragError` where a row's setting has no answers, or those of
    several models.
    """
    rows: list[dict[Hashable, Any]] = []
    for each in answered:
        arm = each.arm
        same: dict[Hashable, Any] = {"benchmark": each.name, "setting": each.setting}
        same["model"] = arm["model"].iloc[0]
        same["retriever"] = each.retriever
        same["judge"] = " | ".join(arm["judge"].unique()) if "judge" in arm else ""
        for name, metric in ACROSS.items():
            found = metric(each, name)
            if not isinstance(found, str) and not found["n"]:
                found = "no answer has a verdict"
            if isinstance(found, str):
                found = {"n": 0, "n_failed": 0, "reason": found}
            rows.append({"unit_of_n": "questions", **found, **same, "metric": name})
    table = pd.DataFrame(rows).reindex(columns=_COLUMNS).fillna({"reason": ""})
    ratios = table["metric"].eq("gcue")
    table["unit"] = ratios.map({True: "ratio", False: "percent"})
    means = ["value", "ci_low", "ci_high"]
    table[means] = table[means].mul(ratios.map({True: 1, False: 100}), axis=0)
    return table


def cross_benchmark_table(table: pd.DataFrame) -> pd.DataFrame:
    """Formats `cross_benchmark_scores` as a table: benchmarks down, metrics across. Cells read
    "61.7 [51.0, 71.4] (n = 81)", or give the reason.
    """
    cells = ci_cells(table, n=True).where(table["unit"] == "percent")
    cells = cells.fillna(ci_cells(table, decimals=2, n=True))
    failed = table["n_failed"].map("; {:.0f} failed".format).where(table["n_failed"] > 0, "")
    cells = (cells + failed).where(table["reason"] == "", table["reason"])
    wide = report_table(table, rows=["benchmark", "model"], columns=["metric"], cells=cells)
    return wide.rename_axis(columns=None)
