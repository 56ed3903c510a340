"""Hit rate of a search: whether the first k hits hold what a query needs, such as its entity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd

from vrag_kit.types import DocId, Document, Query, QueryId

Pair = tuple[Query, Document]
Relevance = Callable[[Sequence[Pair]], Sequence[bool | None]]
"""Judges whether each document holds what its query needs; None if undecided."""
EntityNames = Callable[[Document], Iterable[str]]
"""Returns the names of a document's entities."""

_UNDECIDED = 0.5


def hit_rate(
    run: pd.DataFrame,
    queries: Iterable[Query],
    corpus: Mapping[DocId, Document],
    relevance: Relevance,
    *,
    cutoffs: Sequence[int],
) -> pd.DataFrame:
    """Returns whether one of the first k hits of each query holds what it needs. Columns are
    query_id, group, metric ("hit_rate"), k, value (1 or 0), score_min (0) and score_max (1).

    Value is NaN, to be left out of means and counted, where no hit is known to hold it and some are
    undecided. A query without hits has the value 0. Hits are judged once, all in one call. Raises
    `KeyError` for a hit that is not in the corpus.
    """
    by_id = {query.query_id: query for query in queries}
    hits = run[(run["rank"] <= max(cutoffs)) & run["query_id"].isin(by_id)]
    verdicts = relevance(_pairs(hits, by_id, corpus))
    hits = hits.assign(value=[_UNDECIDED if each is None else float(each) for each in verdicts])
    best = {k: hits[hits["rank"] <= k].groupby("query_id")["value"].max() for k in cutoffs}
    rows = [
        (name, query.group, "hit_rate", k, best[k].get(name, 0.0), 0.0, 1.0)
        for (name, query), k in product(by_id.items(), cutoffs)
    ]
    columns = ["query_id", "group", "metric", "k", "value", "score_min", "score_max"]
    return pd.DataFrame(rows, columns=columns).replace({"value": {_UNDECIDED: np.nan}})


def entity_hit_rate(
    run: pd.DataFrame,
    queries: Iterable[Query],
    corpus: Mapping[DocId, Document],
    entity_names: EntityNames,
    *,
    cutoffs: Sequence[int],
) -> pd.DataFrame:
    """Returns the `hit_rate` of the query's entity among the entities of its hits. Names are
    compared without regard to case. Queries whose entity is unknown are absent.
    """

    def relevance(pairs: Sequence[Pair]) -> list[bool]:
        return [_shows_entity(entity_names, *pair) for pair in pairs]

    known = [query for query in queries if query.entity.strip()]
    return hit_rate(run, known, corpus, relevance, cutoffs=cutoffs)


def entity_coverage(
    queries: Iterable[Query], corpus: Mapping[DocId, Document], entity_names: EntityNames
) -> dict[QueryId, bool]:
    """Returns whether any document of the corpus shows each query's entity. Their share bounds the
    hit rate from above. Queries whose entity is unknown are absent.
    """
    held: set[str] = set()
    for document in corpus.values():
        held.update(map(_plain, entity_names(document)))
    return {
        query.query_id: _plain(query.entity) in held for query in queries if query.entity.strip()
    }


STEP = 0.01
_COLUMNS = ("threshold", "mean_hits", "precision", "recall", "f1")


def threshold_curve(
    run: pd.DataFrame,
    queries: Iterable[Query],
    corpus: Mapping[DocId, Document],
    entity_names: EntityNames,
) -> pd.DataFrame:
    """Returns precision, recall and f1 of a run's hits above each score threshold. Queries with an
    unknown entity are ignored. There is a row for each hundredth from the lowest score to the
    highest, with the columns threshold, mean_hits (above it, per query), precision (share of them
    that shows the entity, NaN without any), recall (share of the run's correct hits that is above
    it) and f1 (of the two, 0 where one is 0 or NaN).

    Without rows if no entity is known, or no hit shows one.
    """
    by_id = {query.query_id: query for query in queries if query.entity.strip()}
    hits = run[run["query_id"].isin(by_id)]
    pairs = _pairs(hits, by_id, corpus)
    correct = np.array([_shows_entity(entity_names, *pair) for pair in pairs], dtype=bool)
    if not correct.any():
        return pd.DataFrame(columns=_COLUMNS)
    scores = hits["score"].to_numpy(float)
    rows = []
    for number in range(int(np.floor(scores.min() / STEP)), int(np.ceil(scores.max() / STEP))):
        above = scores > number * STEP
        precision = float(correct[above].mean()) if above.any() else np.nan
        recall = float(above[correct].mean())
        both = precision + recall
        f1 = 2 * precision * recall / both if both > 0 else 0.0
        rows.append((round(number * STEP, 2), above.sum() / len(by_id), precision, recall, f1))
    return pd.DataFrame(rows, columns=_COLUMNS)


def best_threshold(curve: pd.DataFrame) -> float:
    """Returns the threshold with the largest f1 of a `threshold_curve`. Of several it is the
    lowest; NaN without rows.
    """
    if curve.empty:
        return float("nan")
    return float(curve["threshold"].to_numpy()[curve["f1"].to_numpy().argmax()])


def _pairs(
    hits: pd.DataFrame, queries: Mapping[QueryId, Query], corpus: Mapping[DocId, Document]
) -> list[Pair]:
    ids = zip(hits["query_id"], hits["doc_id"], strict=True)
    return [(queries[query_id], corpus[doc_id]) for query_id, doc_id in ids]


def _shows_entity(entity_names: EntityNames, query: Query, document: Document) -> bool:
    return _plain(query.entity) in map(_plain, entity_names(document))


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold()
