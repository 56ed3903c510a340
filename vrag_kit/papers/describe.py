"""Statistics of any benchmark, as in the first table and figure of a paper."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from vrag_kit.types import Benchmark


def question_table(benchmark: Benchmark, gold: str = "gold") -> pd.DataFrame:
    """Returns a row per question: query_id, entity, text, images (labelled documents), and `gold`,
    how many of these answer it.
    """
    rows = []
    for query_id, query in benchmark.queries.items():
        answer = len(benchmark.relevant(query_id))
        rows.append((query_id, query.entity, query.text, len(benchmark.qrels[query_id]), answer))
    return pd.DataFrame(rows, columns=["query_id", "entity", "text", "images", gold])


def describe(
    benchmark: Benchmark, *, gold: str = "gold image", entities: str = "entities"
) -> pd.DataFrame:
    """Summarises a benchmark as a table: columns statistic, value, unit. `gold` and `entities` are
    its words for a document that answers a question, and for what questions are about.

    Unique images count once, query-image pairs count an image once for every query that lists it;
    the gold share is over pairs. Values without anything to divide by, for lack of queries or
    labels, are NaN.
    """
    table = question_table(benchmark)
    count, pairs = table["gold"], table["images"].sum()
    share = count.sum() / (pairs or np.nan)
    repeated = table.duplicated(["entity", "text"]).sum()
    rows = [
        ("queries", len(table), "queries"),
        (entities, table["entity"].nunique(), entities),
        ("query-image pairs", pairs, "pairs"),
        ("unique images", len(benchmark.corpus), "images"),
        (f"{gold}s a query, mean", round(count.mean(), 2), "images"),
        (f"{gold}s a query, median", count.median(), "images"),
        (f"queries with fewer than 5 {gold}s", (count < 5).sum(), "queries"),
        (f"{gold} share of pairs", round(100 * share, 2), "percent"),
        ("repeated questions", repeated, "queries"),
    ]
    return pd.DataFrame(rows, columns=["statistic", "value", "unit"])


def label_counts(labels: pd.DataFrame, facets: Sequence[str]) -> pd.DataFrame:
    """Counts the values of each column in `facets`, the most frequent first. Columns: facet, label,
    n, share (in percent of the rows).
    """
    counts = {facet: labels[facet].value_counts() for facet in facets}
    table = pd.concat(counts, names=["facet", "label"]).rename("n").reset_index()
    return table.assign(share=100 * table["n"] / len(labels))
