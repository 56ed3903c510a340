"""Select the questions whose gold evidence is complete, and list the others with a reason."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from vrag_kit.types import Benchmark

NO_LABEL = "no document is labelled as gold"
NOT_THERE = "a gold document is not in the corpus"
LEFT_OUT = ("dataset", "query_id", "reason", "doc_id")


def with_gold_evidence(
    datasets: Mapping[str, Benchmark],
) -> tuple[dict[str, Benchmark], pd.DataFrame]:
    """Drop questions whose gold evidence is missing; returns the data sets and a table.

    The table has a row per dropped question: dataset, query_id, reason, doc_id (the first
    missing gold document; "" if none is labelled). A label of 1 or more is gold. A data set
    without remaining questions is left out.
    """
    kept: dict[str, Benchmark] = {}
    rows: list[tuple[str, str, str, str]] = []
    for name, benchmark in datasets.items():
        there = []
        for query_id in benchmark.queries:
            gold = benchmark.relevant(query_id)
            lost = [doc_id for doc_id in gold if doc_id not in benchmark.corpus]
            if gold and not lost:
                there.append(query_id)
            elif lost:
                rows.append((name, query_id, NOT_THERE, lost[0]))
            else:
                rows.append((name, query_id, NO_LABEL, ""))
        if len(there) == len(benchmark.queries):
            kept[name] = benchmark
        elif there:
            kept[name] = benchmark.subset(there)
    return kept, pd.DataFrame(rows, columns=list(LEFT_OUT))
