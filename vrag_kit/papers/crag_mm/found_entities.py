"""Retrieval status of the entity a question is about: Tables 10 and 11 keep the questions and
conversations whose entity image search retrieves.
"""

from __future__ import annotations

from collections import defaultdict

import pandas as pd

from vrag_kit.benchmarks import entity_names
from vrag_kit.dry_run import current_dry_run
from vrag_kit.errors import VragError
from vrag_kit.papers.crag_mm.slices import Labels
from vrag_kit.papers.crag_mm.turn_slices import NOT_ANNOTATED
from vrag_kit.retrieval import SearchService
from vrag_kit.retrieval.entity_hit_rate import entity_coverage, entity_hit_rate
from vrag_kit.types import Benchmark, QueryId

RETRIEVED = "retrieved"
BELOW_THRESHOLD = "below threshold"
NOT_RETRIEVED = "in index, not retrieved"
NOT_IN_INDEX = "not in index"


def entity_retrieval_status(
    benchmark: Benchmark, images: SearchService, k: int, threshold: float
) -> dict[QueryId, str]:
    """Maps each query to the retrieval status of its entity among the first `k` entries of the
    image search. Above `threshold` it is `RETRIEVED`, and the answerer sees it. Otherwise it is
    `BELOW_THRESHOLD`, not among the entries (`NOT_RETRIEVED`), or not in the index
    (`NOT_IN_INDEX`); "not annotated" if the data do not name it. Worst last. Raises `VragError` if
    they name none.
    """
    queries = list(benchmark.queries.values())
    if not any(query.entity for query in queries):
        raise VragError(
            f"{benchmark.name}: the data name no entity, so what was found cannot be told;"
            " expected marks.jsonl beside the rows. `vrag fetch crag-mm --diagnostic` brings some."
        )
    run = images.search(queries, k)
    kept = run[run["score"] > threshold]
    there = entity_coverage(queries, images.corpus, entity_names)
    found: dict[str, set[QueryId]] = {}
    for name, hits in ((RETRIEVED, kept), (BELOW_THRESHOLD, run)):
        table = entity_hit_rate(hits, queries, images.corpus, entity_names, cutoffs=[k])
        found[name] = set(table.loc[table["value"] == 1, "query_id"])
    by_label: dict[str, list[QueryId]] = defaultdict(list)
    for query_id in benchmark.queries:
        by_label[_label(query_id, there, found)].append(query_id)
    labels: dict[QueryId, str] = {}
    for label in (*found, NOT_RETRIEVED, NOT_IN_INDEX, NOT_ANNOTATED):
        labels |= dict.fromkeys(by_label[label], label)
    return labels


def with_entity_retrieved(
    judged: pd.DataFrame, labels: Labels, found: str = RETRIEVED
) -> pd.DataFrame:
    """Filters judged answers to the questions, or conversations, whose label in `labels` is
    `found`. All turns of a conversation have one image, and one label. Raises `VragError` if there
    are none; a dry run, which searches nothing, keeps all instead.
    """
    kept = judged[judged["query_id"].map(labels) == found].reset_index(drop=True)
    if kept.empty and current_dry_run():
        return judged
    if kept.empty:
        others = ", ".join(sorted(set(labels.values())))
        raise VragError(
            f"with_entity_retrieved: no question is {found!r}; they are {others}."
            " Lower similarity_threshold, or search for more (image_k)."
        )
    return kept


def entity_retrieval_shares(benchmark: Benchmark, labels: Labels) -> pd.DataFrame:
    """Counts questions and conversations (or groups) by label: label, questions, groups, and share
    of the groups with an annotated entity, in percent.
    """
    table = pd.DataFrame(
        [(labels[name], query.query_id, query.group) for name, query in benchmark.queries.items()],
        columns=["entity", "query_id", "group"],
    )
    order = list(dict.fromkeys(labels.values()))
    counts = table.groupby("entity")[["query_id", "group"]].nunique().reindex(order)
    counts = counts.rename(columns={"query_id": "questions", "group": benchmark.groups_are})
    told = counts.drop(index=NOT_ANNOTATED, errors="ignore").iloc[:, -1]
    return counts.assign(share=100 * told / told.sum()).reset_index()


def _label(query_id: QueryId, there: dict[QueryId, bool], found: dict[str, set[QueryId]]) -> str:
    if query_id not in there:
        return NOT_ANNOTATED
    for name, queries in found.items():
        if query_id in queries:
            return name
    return NOT_RETRIEVED if there[query_id] else NOT_IN_INDEX
