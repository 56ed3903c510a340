"""Published numbers of the paper in our result format, each data set under one name."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vrag_kit.papers.published import format_spread

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
MODES = ("distractors_only", "gt_plus_distractors", "gt_only")
"""The settings of Tables 5, 14 and 15."""


def published_range(paper: pd.DataFrame, by: Sequence[str] = ("dataset",)) -> pd.Series:
    """Formats the range of the paper's models by `by`, "13.4 to 28.7, median 19.7 (6 models)";
    `paper` is a table of one metric, in percent.
    """
    models = paper.groupby(list(by), sort=False).size().map(" ({} models)".format)
    return (format_spread(paper, by) + models).rename("reported, other data")
