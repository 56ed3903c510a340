"""What services find for turns that were searched for already, what was passed over
included: for who wants to look at it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from vrag_kit.retrieval.run import RUN_COLUMNS
from vrag_kit.retrieval.services import SearchService
from vrag_kit.types import Benchmark

PATH = ("model", "draw", "sample")
"""What a rewritten question may hang on, beside the turn."""


def search_again(
    benchmark: Benchmark,
    turns: pd.DataFrame,
    services: Mapping[str, Sequence[tuple[SearchService, int]]],
) -> dict[str, pd.DataFrame]:
    """Setting → the runs of its services, each with its k, one below the other, with the
    columns model, draw and sample beside a run's own.

    `turns` are rows of answers, from `ask_conversations`. A service by text is asked for
    the words in their column searched, and nothing where there are none; one by picture
    for the query's picture. What is asked twice is searched once.
    """
    found = {}
    for setting, asked in services.items():
        rows = turns.loc[turns["setting"] == setting, [*PATH, "query_id", "searched"]]
        runs = [_run(benchmark, rows, service, k) for service, k in asked]
        found[setting] = pd.concat(runs, ignore_index=True)
    return found


def _run(benchmark: Benchmark, rows: pd.DataFrame, service: SearchService, k: int) -> pd.DataFrame:
    if service.reads == "text":
        rows = rows[rows["searched"].fillna("") != ""]
    else:
        rows = rows.assign(searched="")
    names: dict[tuple[str, str], str] = {}
    asked = list(zip(rows["query_id"], rows["searched"], strict=True))
    for pair in asked:
        names.setdefault(pair, str(len(names)))
    queries = []
    for (query_id, words), name in names.items():
        query = benchmark.queries[query_id]
        queries.append(replace(query, query_id=name, text=words or query.text))
    run = service.search(queries, k).rename(columns={"query_id": "asked"})
    # of no row, too, the names are text
    rows = rows.assign(asked=pd.Series([names[pair] for pair in asked], rows.index, dtype=str))
    return rows.merge(run, on="asked")[[*PATH, *RUN_COLUMNS]]
