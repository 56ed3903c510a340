"""Statistics of the benchmark, compared with the published ones (Table 2 and Figure 2)."""

from __future__ import annotations

import hashlib
from itertools import chain

import pandas as pd

from vrag_kit.benchmarks.images import stored_size
from vrag_kit.papers.mrag_bench.audit import ASPECT_OF, QUESTIONS
from vrag_kit.papers.published import published
from vrag_kit.types import Benchmark


def describe(benchmark: Benchmark) -> pd.DataFrame:
    """Summarises the benchmark as a table: columns statistic, value, unit, and `published`, the
    value in Table 2 (NaN if there is none).

    Images are those of documents; different ones differ in a byte. The paper does not state its
    unit of length: here it is words. A mean of nothing is NaN.
    """
    queries = list(benchmark.queries.values())
    asked = [query.text for query in queries]
    answers = list(chain.from_iterable(query.answers for query in queries))
    shown = set(chain.from_iterable(map(benchmark.relevant, benchmark.queries)))
    pictures = _pictures(benchmark)
    options = pd.Series([len(query.choices) for query in queries])
    rows = [
        ("questions", len(queries), "questions"),
        ("scenarios", len({query.metadata["scenario"] for query in queries}), "scenarios"),
        (benchmark.groups_are, len(set(benchmark.groups.values())), "sets"),
        ("different questions", len(set(asked)), "texts"),
        ("different answers", len(set(answers)), "texts"),
        ("pictures", len(benchmark.corpus), "pictures"),
        ("different pictures", pictures["bytes"].nunique(), "pictures"),
        ("ground-truth pictures, different ones", len(shown), "pictures"),
        ("width of a picture, mean", pictures["width"].mean(), "pixels"),
        ("height of a picture, mean", pictures["height"].mean(), "pixels"),
        *_lengths("a question", asked),
        *_lengths("an answer", answers),
        ("options of a question, mean", options.mean(), "options"),
    ]
    printed = published("mrag_bench", table=2).set_index("statistic")["value"]
    table = pd.DataFrame(rows, columns=["statistic", "value", "unit"])
    return table.assign(published=table["statistic"].map(printed))


def distribution(benchmark: Benchmark) -> pd.DataFrame:
    """Counts questions by scenario (Figure 2): aspect, scenario, n, share (percent), and
    `published`, the published share; in the paper's order, scenarios without a question too.
    """
    scenarios = pd.Series([query.metadata["scenario"] for query in benchmark.queries.values()])
    n = scenarios.value_counts().reindex(list(QUESTIONS), fill_value=0)
    printed = published("mrag_bench", "figure02", level="scenario")
    table = n.rename_axis("scenario").reset_index(name="n")
    return table.assign(
        aspect=table["scenario"].map(ASPECT_OF),
        share=100 * table["n"] / len(scenarios),
        published=table["scenario"].map(printed.set_index("scenario")["value"]),
    )[["aspect", "scenario", "n", "share", "published"]]


def _lengths(what: str, texts: list[str]) -> list[tuple[str, float, str]]:
    words = pd.Series([len(text.split()) for text in texts])
    return [
        (f"words of {what}, most", words.max(), "words"),
        (f"words of {what}, mean", words.mean(), "words"),
    ]


def _pictures(benchmark: Benchmark) -> pd.DataFrame:
    """One row a picture of the documents: width, height, bytes (their hash)."""
    rows = []
    for document in benchmark.corpus.values():
        if document.image is not None:
            data = document.image.data()
            rows.append((*stored_size(document.image, data), hashlib.sha256(data).digest()))
    return pd.DataFrame(rows, columns=["width", "height", "bytes"])
