"""Score thresholds above which a hit is taken to show the query's entity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from vrag_kit.log import logger
from vrag_kit.retrieval.entity_recall import shows_entity
from vrag_kit.types import DocId, Document, Query

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
