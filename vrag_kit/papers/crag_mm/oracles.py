"""Oracles that attribute lost answers to pipeline steps: each gives the same arm an annotation that
it would otherwise have to find (ours).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from vrag_kit.analysis import cluster_means
from vrag_kit.benchmarks import entity_names
from vrag_kit.errors import VragError
from vrag_kit.papers.crag_mm.conversations import conversation_values
from vrag_kit.papers.crag_mm.search import SearchPipeline
from vrag_kit.retrieval import SearchService, annotated_region, with_regions
from vrag_kit.types import Benchmark, DocId, Query, ordered

NO_ORACLE = "no oracle"
REGION = "oracle region"
ENTITY = "oracle entity"
QUERY = "oracle query"
ALL = "oracle entity and query"
ORACLES = (NO_ORACLE, REGION, ENTITY, QUERY, ALL)
"""The arm without an oracle; image search with the annotated region; only the entries of the
annotated entity as evidence; web search for the reference query; the last two together.
"""
LADDER = (NO_ORACLE, REGION, ENTITY, ALL)
"""Oracles in order; each adds information to the one before."""
PARTS = ("region", "entity", "query", "unrecovered")
"""The parts of the loss: by step of `LADDER`, and after the last."""
SURE = 2.0
"""Score of an entry of the annotated entity: above any threshold."""


def oracle_entity_search(service: SearchService) -> SearchService:
    """Returns an image search that finds the first k entries of each query's annotated entity,
    whatever the image; none if the graph lacks it, or the data do not name it.
    """
    of_entity: dict[str, list[DocId]] = {}
    for doc_id, document in service.corpus.items():
        for name in entity_names(document):
            of_entity.setdefault(_plain(name), []).append(doc_id)

    def rank(queries: Sequence[Query], k: int) -> pd.DataFrame:
        rows = []
        for query in queries:
            entries = of_entity.get(_plain(query.entity), [])[:k]
            rows += [(query.query_id, name, rank, SURE) for rank, name in enumerate(entries, 1)]
        return pd.DataFrame(rows, columns=["query_id", "doc_id", "rank", "score"])

    name, fingerprint = f"{service.name}-oracle-entity", f"{service.fingerprint}-oracle-entity"
    return replace(service, name=name, fingerprint=fingerprint, ranker=rank)


def sample_questions(benchmark: Benchmark, count: int | None) -> Benchmark:
    """Samples `count` single questions, or whole conversations, of the benchmark at random; all if
    it is None. For questions that are asked several times: with every oracle, or with mismatched
    images.
    """
    groups = ordered(dict.fromkeys(benchmark.groups.values()), 0, "oracles")
    wanted = set(groups[:count])
    return benchmark.subset([name for name, group in benchmark.groups.items() if group in wanted])


def oracle_pipelines(arms: SearchPipeline, *, margin: float = 0.0) -> dict[str, SearchPipeline]:
    """Maps each of `ORACLES` to a search pipeline with that oracle; the region has a `margin` on
    each side, as in `with_regions`. Raises `VragError` without an image search.
    """
    if arms.images is None:
        raise VragError("oracle_pipelines: no image search; name an image_service.")
    region = with_regions(arms.images, annotated_region, margin=margin)
    entity = oracle_entity_search(arms.images)
    reference = replace(arms, rewrite="reference", rewriter=None)
    return {
        NO_ORACLE: arms,
        REGION: replace(arms, images=region),
        ENTITY: replace(arms, images=entity),
        QUERY: reference,
        ALL: replace(reference, images=entity),
    }


def truthfulness_budget(judged: pd.DataFrame, benchmark: Benchmark) -> pd.DataFrame:
    """Computes the truthfulness lost in each of `PARTS`. Columns: model, part, metric
    ("truthfulness_lost"), value, ci_low, ci_high, n, n_failed. Values are in [−2, 2] and add up to
    1 − truthfulness.

    `judged` has one arm's answers with each of `ORACLES` as their setting. All parts but the last
    are paired differences and may be negative; random effects cancel in the mean. A question, or
    conversation, without a score in one of `LADDER` is excluded from all parts, and counted.
    """
    values = conversation_values(judged, benchmark, by=["model", "setting"])
    keys = ["model", "query_id", "group"]
    steps = values.pivot(index=keys, columns="setting", values="value")[list(LADDER)]
    known = steps.notna().all(axis=1)
    lost = steps.assign(correct=1.0).diff(axis=1).iloc[:, 1:].where(known)
    rows = lost.set_axis(list(PARTS), axis=1).melt(var_name="part", ignore_index=False)
    rows = rows.reset_index().assign(metric="truthfulness_lost", score_min=-2.0, score_max=2.0)
    return cluster_means(rows, ["model", "part", "metric"])


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold()
