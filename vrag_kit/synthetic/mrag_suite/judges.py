"""Who judges the short answers of each data set of a suite."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vrag_kit.config import Entry
from vrag_kit.judging import Judge, load_judge
from vrag_kit.judging.judge import CustomJudge
from vrag_kit.papers.mrag_suite.datasets import dataset_metric
from vrag_kit.papers.mrag_suite.short_answers import SHORT_ANSWERS
from vrag_kit.papers.visual_rag.judge import RUBRIC
from vrag_kit.synthetic.mrag_suite.opening import VISUAL_RAG
from vrag_kit.types import Benchmark


def open_judges(
    judge: Entry | CustomJudge,
    datasets: Mapping[str, Benchmark],
    answers_dir: Path | str,
    *,
    hardware: Mapping[str, Any] | None = None,  # a notebook's parameter: values of any type
) -> dict[str, Judge]:
    """Data set → its own metric (`dataset_metric`), or, where it has none, `judge`: by
    Visual-RAG's rubric for Visual-RAG, by `SHORT_ANSWERS` for any other. Raises
    `VragError` as `load_judge` does.
    """

    judges = {}
    for name, benchmark in datasets.items():
        if metric := dataset_metric(name, benchmark):
            judges[name] = load_judge(metric)
            continue
        rubric = RUBRIC if name == VISUAL_RAG else SHORT_ANSWERS
        judges[name] = load_judge(judge, answers_dir, rubric=rubric, hardware=hardware)
    return judges
