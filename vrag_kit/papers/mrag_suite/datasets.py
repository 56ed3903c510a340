"""Metric of short answers for each data set."""

from __future__ import annotations

from collections.abc import Mapping

from vrag_kit.types import Benchmark

OWN_METRIC: Mapping[str, str] = {
    "WebQA": "webqa_f1",
    "Chart-MRAG": "keypoint_coverage",
    "MRAG-Bench": "choice_accuracy",
    "VisRAG-ArXiv": "choice_accuracy",
    "VisRAG-Plot": "relaxed_accuracy",
    "VisRAG-Slide": "normalised_em",
    "VisRAG-Doc": "normalised_em",
}
"""Maps a data set to a metric that `load_judge` takes. The paper reports "EM/Accuracy" without
saying which for what. Visual-RAG is not included: it has a judge with a rubric. No data set is
scored by another's metric.
"""


def dataset_metric(name: str, benchmark: Benchmark) -> str | None:
    """Returns the metric of a data set (`OWN_METRIC`), or None if it has none; exact match if the
    metric is for options, and no question has any.
    """
    metric = OWN_METRIC.get(name)
    by_option = metric == "choice_accuracy"
    if by_option and not any(query.choices for query in benchmark.queries.values()):
        return "normalised_em"
    return metric


_NAMES: Mapping[str, str] = {
    "normalised_em": "exact match",
    "choice_accuracy": "multiple-choice accuracy",
    "relaxed_accuracy": "relaxed accuracy",
    "keypoint_coverage": "keypoint coverage",
    "webqa_f1": "WebQA's F1",
    "score (rule)": "rule-based score",
}


def metric_label(metric: str) -> str:
    """Returns a metric's label in figures: "exact match"; "rule-based score"."""
    return _NAMES.get(metric, metric)
