"""Which metric of a short answer is each data set's own."""

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
"""Data set → a name that `load_judge` takes. The paper reports "EM/Accuracy" and not
which for what. Visual-RAG is not among them: its own is a judge by its rubric. No data set
is scored by another's.
"""


def own_metric(name: str, benchmark: Benchmark) -> str | None:
    """The metric of a data set of this name (`OWN_METRIC`), None where it has none of its
    own; exact answers where it is of options, and no question has any.
    """
    metric = OWN_METRIC.get(name)
    by_option = metric == "choice_accuracy"
    if by_option and not any(query.choices for query in benchmark.queries.values()):
        return "normalised_em"
    return metric


_NAMES: Mapping[str, str] = {
    "normalised_em": "exact answers",
    "choice_accuracy": "right options",
    "relaxed_accuracy": "number within 5 %, else exact",
    "keypoint_coverage": "keypoints told",
    "webqa_f1": "WebQA's F1",
}


def metric_name(metric: str) -> str:
    """A metric as figures call it: "exact answers"; "score by rule" of "judged by rule"."""
    return _NAMES.get(metric, metric.replace("judged by", "score by"))
