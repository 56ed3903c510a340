"""The eight data sets: names, metrics of short answers, samples, and statistics with the published
ones (Table 1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import pandas as pd

from vrag_kit.benchmarks.images import open_image
from vrag_kit.papers.published import format_spread, published
from vrag_kit.types import Benchmark, ordered

OWN_METRIC: Mapping[str, str | None] = {
    "WebQA": "webqa_f1",
    "Chart-MRAG": "keypoint_coverage",
    "Visual-RAG": None,
    "MRAG-Bench": "choice_accuracy",
    "VisRAG-ArXiv": "choice_accuracy",
    "VisRAG-Plot": "relaxed_accuracy",
    "VisRAG-Slide": "normalised_em",
    "VisRAG-Doc": "normalised_em",
}
"""Maps a data set to a metric that `load_judge` takes. The paper reports "EM/Accuracy" without
saying which for what. Visual-RAG has none, but a judge with a rubric. No data set is scored by
another's metric.
"""
DATASETS = tuple(OWN_METRIC)
"""The eight data sets, by their names in Table 2."""


def dataset_metric(name: str, benchmark: Benchmark) -> str | None:
    """Returns the metric of a data set (`OWN_METRIC`), or None if it has none; exact match if the
    metric is for options, and no question has any.
    """
    metric = OWN_METRIC.get(name)
    has_options = any(query.choices for query in benchmark.queries.values())
    return "normalised_em" if metric == "choice_accuracy" and not has_options else metric


def sample_per_dataset(
    suite: Mapping[str, Benchmark], questions: int | None
) -> dict[str, Benchmark]:
    """Samples at most `questions` questions of each data set, the first in an order by hash, so
    samples are nested; None: all.
    """
    if questions is None:
        return dict(suite)
    return {
        name: benchmark.subset(ordered(benchmark.queries, 0, "some of each")[:questions])
        for name, benchmark in suite.items()
    }


def published_range(paper: pd.DataFrame, by: Sequence[str] = ("dataset",)) -> pd.Series:
    """Formats the range of the paper's models by `by`, "13.4 to 28.7, median 19.7 (models: 6)";
    `paper` is a table of one metric, in percent.
    """
    models = paper.groupby(list(by), sort=False).size().map(" (models: {})".format)
    return (format_spread(paper, by) + models).rename("reported, other data")


def published_share(metric: str) -> pd.Series:
    """Returns the share of a data set's questions that Table 1 counts as `metric` ("n_filtered",
    "n_ambiguous"), in percent, by data set.
    """
    wide = published("mrag_suite", 1).pivot(index="dataset", columns="metric", values="value")
    shares: pd.Series = 100 * wide[metric] / wide["n_full"]
    return shares.rename("published")


def describe_suite(suite: Mapping[str, Benchmark]) -> pd.DataFrame:
    """Computes Table 1, one number per row: dataset, metric (Table 1's), value, unit, n (behind a
    mean), and `published`, the paper's value for that data set (NaN if none).

    Images are those of gold documents; the paper does not state which ones its means are over, nor
    its unit of length: here it is words, of the first accepted answer. The numbers of filtered and
    of ambiguous questions are not in the data: their values are NaN. A mean of nothing is NaN.
    """
    tables = [_of_one(benchmark).assign(dataset=name) for name, benchmark in suite.items()]
    reported = published("mrag_suite", 1).rename(columns={"value": "published"})
    keys = ["dataset", "metric"]
    table = pd.concat(tables).merge(reported[[*keys, "published"]], how="left", on=keys)
    return table[[*keys, "value", "unit", "n", "published"]]


def _of_one(benchmark: Benchmark) -> pd.DataFrame:
    queries = benchmark.queries.values()
    gold = dict.fromkeys(chain.from_iterable(map(benchmark.relevant, benchmark.queries)))
    images = [benchmark.corpus[doc_id].image for doc_id in gold if doc_id in benchmark.corpus]
    sizes = [open_image(image.data(), image.where).size for image in images if image is not None]
    means = pd.DataFrame(sizes, columns=["width", "height"], dtype=float).mean()
    asked = pd.Series([len(query.text.split()) for query in queries], dtype=float)
    answers = [query.answers[0] for query in queries if query.answers]
    accepted = pd.Series([len(answer.split()) for answer in answers], dtype=float)
    rows = [
        ("n_full", len(queries), "questions", None),
        ("n_filtered", None, "questions", None),
        ("n_ambiguous", None, "questions", None),
        ("avg_image_width_px", means["width"], "pixels", len(sizes)),
        ("avg_image_height_px", means["height"], "pixels", len(sizes)),
        ("avg_question_length", asked.mean(), "words", len(asked)),
        ("max_question_length", asked.max(), "words", len(asked)),
        ("avg_answer_length", accepted.mean(), "words", len(accepted)),
        ("max_answer_length", accepted.max(), "words", len(accepted)),
    ]
    columns = ["metric", "value", "unit", "n"]
    return pd.DataFrame(rows, columns=columns).astype({"value": float, "n": float})
