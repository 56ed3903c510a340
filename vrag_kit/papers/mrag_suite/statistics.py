"""What a suite consists of, beside what the paper prints of its own (Table 1)."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
from PIL import Image, UnidentifiedImageError

from vrag_kit.papers.mrag_suite.printed import DATASETS, printed_data
from vrag_kit.types import Benchmark, LazyImage

_OTHER_NAMES = {"chart-rag": "Chart-MRAG"}


def printed_name(dataset: str) -> str:
    """The name in `DATASETS` of a data set that is called so but for case, or as Table 1
    calls it ("chart-rag"); "" for one that the paper does not have.
    """
    by_case = {name.casefold(): name for name in DATASETS} | _OTHER_NAMES
    return by_case.get(dataset.casefold(), "")


def suite_statistics(suite: Mapping[str, Benchmark]) -> pd.DataFrame:
    """Every data set in numbers: dataset, metric, value, unit, and `paper`, what Table 1
    prints (NaN where it prints nothing).

    Lengths are counted in words, of accepted answers the first; the paper does not say
    in what. Pictures are those of the documents, and where there are none of the
    questions. A mean of nothing is NaN.
    """
    printed = printed_data().set_index(["dataset", "metric"])["value"]
    rows = []
    for name, benchmark in suite.items():
        paper = printed_name(name)
        for metric, value, unit in _numbers(benchmark):
            rows.append((name, metric, value, unit, printed.get((paper, metric), math.nan)))
    return pd.DataFrame(rows, columns=["dataset", "metric", "value", "unit", "paper"])


def _numbers(benchmark: Benchmark) -> list[tuple[str, float, str]]:
    queries = list(benchmark.queries.values())
    asked = [len(query.text.split()) for query in queries]
    answers = [len(query.answers[0].split()) for query in queries if query.answers]
    sizes = _sizes(benchmark)
    return [
        ("n_full", len(queries), "questions"),
        ("n_documents", len(benchmark.corpus), "documents"),
        ("n_groups", len(set(benchmark.groups.values())), benchmark.groups_are),
        ("avg_image_width_px", _mean([width for width, _ in sizes]), "pixels"),
        ("avg_image_height_px", _mean([height for _, height in sizes]), "pixels"),
        ("max_question_length", max(asked, default=0), "words"),
        ("max_answer_length", max(answers, default=0), "words"),
        ("avg_question_length", _mean(asked), "words"),
        ("avg_answer_length", _mean(answers), "words"),
    ]


def _sizes(benchmark: Benchmark) -> list[tuple[int, int]]:
    """Width and height of each picture, as stored."""
    documents = [document.image for document in benchmark.corpus.values()]
    questions = [query.image for query in benchmark.queries.values()]
    pictures = [image for image in documents if image is not None]
    shown = pictures or [image for image in questions if image is not None]
    return [_size(image) for image in shown]


def _size(image: LazyImage) -> tuple[int, int]:
    """As a file's head tells; of a damaged one the error names it."""
    try:
        with Image.open(io.BytesIO(image.data())) as picture:
            return picture.size
    except (UnidentifiedImageError, OSError):
        return image.open().size


def _mean(values: list[int]) -> float:
    return float(np.mean(values)) if values else math.nan
