"""Statistics of the data sets, compared with the published ones (Table 1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import numpy as np
import pandas as pd

from vrag_kit.analysis.report_tables import NOTHING
from vrag_kit.benchmarks.images import stored_size
from vrag_kit.papers.mrag_suite.datasets import DATASETS
from vrag_kit.papers.published import published
from vrag_kit.types import Benchmark, LazyImage

NEEDS = ("image", "text", "both")
"""Modalities that a question requires, as annotated in a suite."""
_NEEDS = {"image": "a picture", "text": "a text", "both": "both"}
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
_OTHER_NAMES = {"chart-rag": "Chart-MRAG"}


def published_name(dataset: str) -> str:
    """Returns the name in `DATASETS` of a data set, ignoring case or by its name in Table 1
    ("chart-rag"); "" for one that is not in the paper.
    """
    by_case = {name.casefold(): name for name in DATASETS} | _OTHER_NAMES
    return by_case.get(dataset.casefold(), "")


def describe_suite(suite: Mapping[str, Benchmark]) -> pd.DataFrame:
    """Computes Table 1, one number per row: dataset, metric (Table 1's), value, unit, n (behind a
    mean), and `published`, the paper's value for that data set (NaN if none).

    Images are those of gold documents; the paper does not state which ones its means are over, nor
    its unit of length: here it is words, of the first accepted answer. The numbers of filtered and
    of ambiguous questions are not in the data: their values are NaN. A mean of nothing is NaN.
    """
    parts = [_of_one(benchmark).assign(dataset=name) for name, benchmark in suite.items()]
    table = pd.concat(parts, ignore_index=True)
    printed = published("mrag_suite", 1).set_index(["dataset", "metric"])["value"]
    places = pd.MultiIndex.from_arrays([table["dataset"].map(published_name), table["metric"]])
    table["published"] = printed.reindex(places).to_numpy()
    return table[["dataset", "metric", "value", "unit", "n", "published"]]


def statistics_table(statistics: pd.DataFrame) -> pd.DataFrame:
    """Formats statistics: data sets as rows, Table 1's columns, each as ("ours", "reported"), with
    labels; "–" where there is nothing.
    """
    columns = {}
    for metric, said in _SAID.items():
        part = statistics[statistics["metric"] == metric].set_index("dataset")
        for source, column in (("ours", "value"), ("reported", "published")):
            if part[column].notna().any():
                columns[said, source] = part[column].map(_cell)
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
    sizes = [stored_size(image, image.data()) for image in _gold_pictures(benchmark)]
    asked = _words(query.text for query in queries)
    answers = _words(query.answers[0] for query in queries if query.answers)
    rows = [
        ("n_full", len(queries), "questions", np.nan),
        ("n_filtered", np.nan, "questions", np.nan),
        ("n_ambiguous", np.nan, "questions", np.nan),
        ("avg_image_width_px", _mean([width for width, _ in sizes]), "pixels", len(sizes)),
        ("avg_image_height_px", _mean([height for _, height in sizes]), "pixels", len(sizes)),
        ("avg_question_length", _mean(asked), "words", len(asked)),
        ("max_question_length", max(asked, default=0), "words", len(asked)),
        ("avg_answer_length", _mean(answers), "words", len(answers)),
        ("max_answer_length", max(answers, default=0), "words", len(answers)),
    ]
    return pd.DataFrame(rows, columns=["metric", "value", "unit", "n"])


def _words(texts: Iterable[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def _mean(values: Sequence[int]) -> float:
    return float(np.mean(values)) if values else np.nan


def _gold_pictures(benchmark: Benchmark) -> list[LazyImage]:
    """The pictures of documents that answer some question, each once."""
    gold = dict.fromkeys(chain.from_iterable(map(benchmark.relevant, benchmark.queries)))
    images = [benchmark.corpus[doc_id].image for doc_id in gold if doc_id in benchmark.corpus]
    return [image for image in images if image is not None]


def _evidence(benchmark: Benchmark) -> dict[str, str]:
    queries = list(benchmark.queries.values())
    documents = Counter(document.modality for document in benchmark.corpus.values())
    gold = [len(benchmark.relevant(query.query_id)) for query in queries]
    needs = Counter(str(query.metadata["required_modality"]) for query in queries)
    told = [query.metadata["hops"] for query in queries if query.metadata["hops"] is not None]
    counts = {
        "documents with a picture": documents["image"],
        "documents of text alone": documents["text"],
        **{f"questions that need {_NEEDS[each]}": needs[each] for each in NEEDS},
        "with gold claims": sum(bool(query.metadata["gold_claims"]) for query in queries),
        "with options": sum(bool(query.choices) for query in queries),
        "without gold evidence": gold.count(0),
    }
    hops = f"{sum(each > 1 for each in told):,}" if told else NOTHING
    mean = f"{np.mean(gold):.1f}" if gold else NOTHING
    return {
        **{name: f"{count:,}" for name, count in counts.items()},
        "of two hops or more": hops,
        "documents that answer a question, mean": mean,
        "groups": f"{len(set(benchmark.groups.values())):,} {benchmark.groups_are}",
    }


def _cell(value: float) -> str:
    if np.isnan(value):
        return NOTHING
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"
