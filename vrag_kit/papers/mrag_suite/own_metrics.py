"""Which metric of a short answer is each data set's own."""

from __future__ import annotations

from collections.abc import Mapping

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
which for what. Visual-RAG is not among them: its own is a judge by its rubric, which
scores the others, too, so that all can stand in one column.
"""
