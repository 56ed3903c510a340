"""Statistics of the data sets, compared with the published ones (Table 1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import chain, product

import numpy as np
import pandas as pd

from vrag_kit.analysis.report_tables import NOTHING
from vrag_kit.benchmarks.images import stored_size
from vrag_kit.papers.published import published
from vrag_kit.types import Benchmark

_SAID = {  # Table 1's numbers, in words
    "n_full": "questions",
    "n_filtered": "kept by the filter",
    "n_ambiguous": "flagged as ambiguous",
    "avg_image_width_px": "width of a picture, mean",
    "avg_image_height_px": "height of a picture, mean",
    "avg_question_length": "words of a question, mean",
    "max_question_length": "words of a question, most",
    "avg_answer_length": "words of an answer, mean",
    "max_answer_length": "words of an answer, most",
}


def describe_suite(suite: Mapping[str, Benchmark]) -> pd.DataFrame:
    """Computes Table 1, one number per row: dataset, metric (Table 1's), value, unit, n (behind a
    mean), and `published`, the paper's value for that data set (NaN if none).

    Images are those of gold documents; the paper does not state which ones its means are over, nor
    its unit of length: here it is words, of the first accepted answer. The numbers of filtered and
    of ambiguous questions are not in the data: their values are NaN. A mean of nothing is NaN.
    """
    tables = [_of_one(benchmark).assign(dataset=name) for name, benchmark in suite.items()]
    printed = published("mrag_suite", 1)[["dataset", "metric", "value"]]
    keys = ["dataset", "metric"]
    table = pd.concat(tables, ignore_index=True).merge(
        printed.rename(columns={"value": "published"}), how="left", on=keys
    )
    return table[[*keys, "value", "unit", "n", "published"]]


def statistics_table(statistics: pd.DataFrame) -> pd.DataFrame:
    """Formats statistics: data sets as rows, Table 1's columns, each as ("ours", "reported"), with
    labels; "–" where there is nothing.
    """
    columns = {}
    for (metric, said), (source, column) in product(
        _SAID.items(), {"ours": "value", "reported": "published"}.items()
    ):
        part = statistics[statistics["metric"] == metric].set_index("dataset")[column]
        if part.notna().any():
            decimals = part.mod(1).fillna(0).gt(0).astype(int)
            cells = [f"{value:,.{d}f}" for value, d in zip(part, decimals, strict=True)]
            columns[said, source] = pd.Series(cells, part.index).where(part.notna(), NOTHING)
    return pd.DataFrame(columns)


def evidence_table(suite: Mapping[str, Benchmark]) -> pd.DataFrame:
    """Counts evidence by data set (rows). Columns: documents with images and without, gold
    documents (mean), questions that need an image, a text or both, those of two hops or more, those
    with gold claims, with options, without a gold document, and the number of groups, with their
    unit.
    """
    return pd.DataFrame({name: _evidence(benchmark) for name, benchmark in suite.items()}).T


def _of_one(benchmark: Benchmark) -> pd.DataFrame:
    queries = list(benchmark.queries.values())
    gold = dict.fromkeys(chain.from_iterable(map(benchmark.relevant, benchmark.queries)))
    images = [benchmark.corpus[doc_id].image for doc_id in gold if doc_id in benchmark.corpus]
    sizes = pd.DataFrame(
        [stored_size(image, image.data()) for image in images if image is not None],
        columns=["width", "height"],
        dtype=float,
    )
    asked = pd.Series([len(query.text.split()) for query in queries], dtype=float)
    accepted = [query.answers[0] for query in queries if query.answers]
    answers = pd.Series([len(answer.split()) for answer in accepted], dtype=float)
    rows = [
        ("n_full", len(queries), "questions", np.nan),
        ("n_filtered", np.nan, "questions", np.nan),
        ("n_ambiguous", np.nan, "questions", np.nan),
        ("avg_image_width_px", sizes["width"].mean(), "pixels", len(sizes)),
        ("avg_image_height_px", sizes["height"].mean(), "pixels", len(sizes)),
        ("avg_question_length", asked.mean(), "words", len(asked)),
        ("max_question_length", asked.max(), "words", len(asked)),
        ("avg_answer_length", answers.mean(), "words", len(answers)),
        ("max_answer_length", answers.max(), "words", len(answers)),
    ]
    return pd.DataFrame(rows, columns=["metric", "value", "unit", "n"])


def _evidence(benchmark: Benchmark) -> dict[str, str]:
    queries = list(benchmark.queries.values())
    documents = Counter(document.modality for document in benchmark.corpus.values())
    gold = [len(benchmark.relevant(query.query_id)) for query in queries]
    needs = Counter(str(query.metadata["required_modality"]) for query in queries)
    hops = [query.metadata["hops"] for query in queries if query.metadata["hops"] is not None]
    counts = {
        "documents with a picture": documents["image"],
        "documents of text alone": documents["text"],
        "questions that need a picture": needs["image"],
        "questions that need a text": needs["text"],
        "questions that need both": needs["both"],
        "with gold claims": sum(bool(query.metadata["gold_claims"]) for query in queries),
        "with options": sum(bool(query.choices) for query in queries),
        "without gold evidence": gold.count(0),
    }
    return {
        **{name: f"{count:,}" for name, count in counts.items()},
        "of two hops or more": f"{sum(each > 1 for each in hops):,}" if hops else NOTHING,
        "documents that answer a question, mean": f"{np.mean(gold):.1f}" if gold else NOTHING,
        "groups": f"{len(set(benchmark.groups.values())):,} {benchmark.groups_are}",
    }
