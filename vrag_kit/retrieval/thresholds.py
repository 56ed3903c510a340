"""From which score on a hit is taken for what is asked about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.forecast import current_forecast
from vrag_kit.retrieval.search_recall import shows_entity
from vrag_kit.types import DocId, Evidence, Query

STEP = 0.01
_COLUMNS = ("threshold", "hits", "precision", "kept", "f1")


def threshold_curve(
    run: pd.DataFrame, queries: Iterable[Query], corpus: Mapping[DocId, Evidence]
) -> pd.DataFrame:
    """What a threshold keeps of a run's hits, of queries whose entity the data tell: a
    row for each hundredth from the lowest score to the highest, with the columns
    threshold, hits (kept, a query), precision (the share of them that shows the entity,
    NaN where none is kept), kept (the share of such hits of the run that is kept) and f1
    (of the two, 0 where one is 0 or NaN).

    Kept are hits above the threshold, as `Arms` keeps them. Without rows where the data
    tell no query's entity; raises `VragError` where they do, and no hit shows one, but
    for a forecast, which searches nothing.
    """
    asked = {query.query_id: query for query in queries if query.entity.strip()}
    hits = run[run["query_id"].isin(asked)]
    pairs = zip(hits["query_id"], hits["doc_id"], strict=True)
    right = np.array(
        shows_entity([(asked[query], corpus[doc]) for query, doc in pairs]), dtype=bool
    )
    if asked and not right.any() and not current_forecast():
        raise VragError(
            f"none of {len(hits):,} hits of {len(asked):,} queries with a known entity shows it;"
            " expected some. Take a better search."
        )
    rows: list[tuple[float, ...]] = []
    if not right.any():
        return pd.DataFrame(rows, columns=_COLUMNS)
    scores = hits["score"].to_numpy(float)
    for number in range(int(np.floor(scores.min() / STEP)), int(np.ceil(scores.max() / STEP))):
        kept = scores > number * STEP
        precision = float(right[kept].mean()) if kept.any() else np.nan
        share = float(kept[right].mean())
        both = precision + share
        f1 = 2 * precision * share / both if both > 0 else 0.0
        rows.append((round(number * STEP, 2), kept.sum() / len(asked), precision, share, f1))
    return pd.DataFrame(rows, columns=_COLUMNS)


def best_threshold(curve: pd.DataFrame) -> float:
    """The threshold with the largest f1 of a `threshold_curve`; of several the lowest,
    NaN where it has no rows.
    """
    if curve.empty:
        return float("nan")
    return float(curve["threshold"].to_numpy()[curve["f1"].to_numpy().argmax()])
