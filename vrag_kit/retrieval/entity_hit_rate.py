"""Hit rate of a search: whether it finds the query's entity, or a page with the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.log import logger
from vrag_kit.types import DocId, Document, Query, QueryId

Pair = tuple[Query, Document]
Tells = Callable[[Sequence[Pair]], Sequence[bool | None]]
"""Judges whether each document holds what its query needs; None if undecided."""


def hit_rate(
    run: pd.DataFrame,
    queries: Iterable[Query],
    corpus: Mapping[DocId, Document],
    tells: Tells,
    *,
    cutoffs: Sequence[int],
) -> pd.DataFrame:
    """Returns whether one of the first k hits of each query holds what it needs. Columns are
    query_id, group, metric ("recall"), k, value (1 or 0), score_min (0) and score_max (1).

    Value is NaN, to be left out of means and counted, where no hit is known to hold it and some are
    undecided. A query without hits has the value 0. Hits are judged once, all in one call. Raises
    `VragError` for a cutoff below 1, and for hits that are not in the corpus.
    """
    asked = {query.query_id: query for query in queries}
    if not cutoffs or min(cutoffs) < 1:
        raise VragError(f"cut-offs must be 1 or more, got {list(cutoffs)}.")
    hits = run[(run["rank"] <= max(cutoffs)) & run["query_id"].isin(asked)]
    if strange := sorted(set(hits["doc_id"]) - corpus.keys()):
        raise VragError(
            f"the run finds {len(strange):,} documents that the corpus does not hold, such as"
            f" {strange[0]!r}. Give the corpus of the search service that made the run."
        )
    pairs = zip(hits["query_id"], hits["doc_id"], strict=True)
    told = tells([(asked[query_id], corpus[doc_id]) for query_id, doc_id in pairs])
    verdicts: dict[QueryId, list[tuple[int, bool | None]]] = {each: [] for each in asked}
    for query_id, rank, verdict in zip(hits["query_id"], hits["rank"], told, strict=True):
        verdicts[query_id].append((int(rank), verdict))
    rows = []
    for query_id, query in asked.items():
        for k in cutoffs:
            found = _found([verdict for rank, verdict in verdicts[query_id] if rank <= k])
            rows.append({"query_id": query_id, "group": query.group, "k": k, "value": found})
    table = pd.DataFrame(rows, columns=["query_id", "group", "k", "value"])
    table = table.assign(metric="recall", score_min=0.0, score_max=1.0)
    return table[["query_id", "group", "metric", "k", "value", "score_min", "score_max"]]


def entity_hit_rate(
    run: pd.DataFrame,
    queries: Iterable[Query],
    corpus: Mapping[DocId, Document],
    *,
    cutoffs: Sequence[int],
) -> pd.DataFrame:
    """Returns the `hit_rate` of the query's entity among the entities of its hits. These are
    `entities` in the metadata; names are compared without regard to case.

    Queries whose entity is unknown are absent.
    """
    known = [query for query in queries if query.entity.strip()]
    return hit_rate(run, known, corpus, shows_entity, cutoffs=cutoffs)


def entity_coverage(
    queries: Iterable[Query], corpus: Mapping[DocId, Document]
) -> dict[QueryId, bool]:
    """Returns whether any document of the corpus shows each query's entity. Their share bounds
    recall from above. Queries whose entity is unknown are absent.
    """
    held: set[str] = set()
    for document in corpus.values():
        held |= _entities(document)
    return {
        query.query_id: _name(query.entity) in held for query in queries if query.entity.strip()
    }


def _found(verdicts: Sequence[bool | None]) -> float:
    if True in verdicts:
        return 1.0
    return np.nan if None in verdicts else 0.0


def shows_entity(pairs: Sequence[Pair]) -> list[bool | None]:
    """Returns whether each document shows the entity of its query; never None."""
    return [_name(query.entity) in _entities(document) for query, document in pairs]


def _entities(document: Document) -> set[str]:
    return {_name(each["entity_name"]) for each in document.metadata.get("entities", ())}


def _name(entity: str) -> str:
    return " ".join(entity.split()).casefold()


STEP = 0.01
_COLUMNS = ("threshold", "mean_hits", "precision", "recall", "f1")


def threshold_curve(
    run: pd.DataFrame, queries: Iterable[Query], corpus: Mapping[DocId, Document]
) -> pd.DataFrame:
    """Returns precision, recall and f1 of a run's hits above each score threshold. Queries with an
    unknown entity are ignored. There is a row for each hundredth from the lowest score to the
    highest, with the columns threshold, mean_hits (kept, per query), precision (share of them that
    shows the entity, NaN where none is kept), recall (share of the run's correct hits that is kept)
    and f1 (of the two, 0 where one is 0 or NaN).

    Hits above the threshold are kept, as in `SearchPipeline`. Without rows if no entity is known,
    or no hit shows one, which is printed.
    """
    asked = {query.query_id: query for query in queries if query.entity.strip()}
    hits = run[run["query_id"].isin(asked)]
    pairs = zip(hits["query_id"], hits["doc_id"], strict=True)
    right = np.array(
        shows_entity([(asked[query], corpus[doc]) for query, doc in pairs]), dtype=bool
    )
    if asked and not right.any():
        logger.info(
            f"note: none of {len(hits):,} hits of {len(asked):,} queries with a known entity shows"
            " it, so no threshold can be chosen",
        )
    rows: list[tuple[float, ...]] = []
    if not right.any():
        return pd.DataFrame(rows, columns=_COLUMNS)
    scores = hits["score"].to_numpy(float)
    for number in range(int(np.floor(scores.min() / STEP)), int(np.ceil(scores.max() / STEP))):
        kept = scores > number * STEP
        precision = float(right[kept].mean()) if kept.any() else np.nan
        recall = float(kept[right].mean())
        both = precision + recall
        f1 = 2 * precision * recall / both if both > 0 else 0.0
        rows.append((round(number * STEP, 2), kept.sum() / len(asked), precision, recall, f1))
    return pd.DataFrame(rows, columns=_COLUMNS)


def best_threshold(curve: pd.DataFrame) -> float:
    """Returns the threshold with the largest f1 of a `threshold_curve`. Of several it is the
    lowest; NaN without rows.
    """
    if curve.empty:
        return float("nan")
    return float(curve["threshold"].to_numpy()[curve["f1"].to_numpy().argmax()])
