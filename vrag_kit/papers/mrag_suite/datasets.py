"""Metric of short answers for each data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from vrag_kit.papers.published import format_spread
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


DATASETS = (
    "WebQA",
    "Chart-MRAG",
    "Visual-RAG",
    "MRAG-Bench",
    "VisRAG-ArXiv",
    "VisRAG-Plot",
    "VisRAG-Slide",
    "VisRAG-Doc",
)
"""The eight data sets, by their names in Table 2."""


def published_range(paper: pd.DataFrame, by: Sequence[str] = ("dataset",)) -> pd.Series:
    """Formats the range of the paper's models by `by`, "13.4 to 28.7, median 19.7 (6 models)";
    `paper` is a table of one metric, in percent.
    """
    models = paper.groupby(list(by), sort=False).size().map(" ({} models)".format)
    return (format_spread(paper, by) + models).rename("reported, other data")
