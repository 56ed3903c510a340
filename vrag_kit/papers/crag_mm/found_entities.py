"""Whether the image search finds what a question asks about: Tables 10 and 11 keep those
questions and conversations where it does.
"""

from __future__ import annotations

from collections import defaultdict

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.forecast import current_forecast
from vrag_kit.papers.crag_mm.slices import Labels
from vrag_kit.papers.crag_mm.turn_slices import UNTOLD
from vrag_kit.retrieval import SearchService, entity_coverage, entity_recall
from vrag_kit.types import Benchmark, QueryId

SHOWN = "found and shown"
NOT_ALIKE = "found, not alike enough"
NOT_FOUND = "in the graph, not found"
NOT_THERE = "not in the graph"


def found_entities(
    benchmark: Benchmark, images: SearchService, k: int, threshold: float
) -> dict[QueryId, str]:
    """Query → whether its entity is among the first `k` entries of the image search: and
    above `threshold`, so that an answerer is shown it (`SHOWN`), below it (`NOT_ALIKE`),
    not among them (`NOT_FOUND`), or not in the graph at all (`NOT_THERE`); "not told"
    where the data do not name it. Worst last. Raises `VragError` where they name none.
    """
    queries = list(benchmark.queries.values())
    if not any(query.entity for query in queries):
        raise VragError(
            f"{benchmark.name}: the data name no entity, so what was found cannot be told;"
            " expected marks.jsonl beside the rows. `vrag fetch crag-mm --diagnostic` brings some."
        )
    run = images.search(queries, k)
    kept = run[run["score"] > threshold]
    there = entity_coverage(queries, images.corpus)
    found: dict[str, set[QueryId]] = {}
    for name, hits in ((SHOWN, kept), (NOT_ALIKE, run)):
        table = entity_recall(hits, queries, images.corpus, cutoffs=[k])
        found[name] = set(table.loc[table["value"] == 1, "query_id"])
    by_label: dict[str, list[QueryId]] = defaultdict(list)
    for query_id in benchmark.queries:
        by_label[_label(query_id, there, found)].append(query_id)
    labels: dict[QueryId, str] = {}
    for label in (SHOWN, NOT_ALIKE, NOT_FOUND, NOT_THERE, UNTOLD):
        labels |= dict.fromkeys(by_label[label], label)
    return labels


def found_only(judged: pd.DataFrame, labels: Labels, found: str = SHOWN) -> pd.DataFrame:
    """The judged answers to those questions, or in those conversations, of `labels` that
    are `found`: all turns of a conversation have one picture, and one label. Raises
    `VragError` where none is; a forecast, which searches nothing, keeps all instead.
    """
    kept = judged[judged["query_id"].map(labels) == found].reset_index(drop=True)
    if kept.empty and current_forecast():
        return judged
    if kept.empty:
        others = ", ".join(sorted(set(labels.values())))
        raise VragError(
            f"found_only: no question is {found!r}; they are {others}."
            " Lower similarity_threshold, or search for more (image_k)."
        )
    return kept


def shares_found(benchmark: Benchmark, labels: Labels) -> pd.DataFrame:
    """How many questions and conversations (or groups) are of each label: label,
    questions, groups, share of the groups whose entity is told, in percent.
    """
    table = pd.DataFrame(
        [(labels[name], query.query_id, query.group) for name, query in benchmark.queries.items()],
        columns=["entity", "query_id", "group"],
    )
    order = list(dict.fromkeys(labels.values()))
    counts = table.groupby("entity")[["query_id", "group"]].nunique().reindex(order)
    counts = counts.rename(columns={"query_id": "questions", "group": benchmark.groups_are})
    told = counts.drop(index=UNTOLD, errors="ignore").iloc[:, -1]
    return counts.assign(share=100 * told / told.sum()).reset_index()


def _label(query_id: QueryId, there: dict[QueryId, bool], found: dict[str, set[QueryId]]) -> str:
    if query_id not in there:
        return UNTOLD
    for name, queries in found.items():
        if query_id in queries:
            return name
    return NOT_FOUND if there[query_id] else NOT_THERE
