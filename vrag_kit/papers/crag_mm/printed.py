"""Published numbers of the paper in our result format: truthfulness by arm, and retrieval. They are
compared with ours as numbers on other data.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vrag_kit.analysis.report_tables import NOTHING, TableRow, format_ci
from vrag_kit.papers.published import format_spread, published

SINGLE, MULTI = "single_turn", "multi_turn"
SHOWN = ("accuracy", "missing", "hallucination", "truthfulness", "early_stop")
"""Metrics of the published tables; early_stop only in those of conversations."""
_MAIN = {SINGLE: 8, MULTI: 9}
_FOUND = {SINGLE: 10, MULTI: 11}
_COLUMNS = ["model", "setting", "metric", "value"]


def published_main(split: str, *, found: bool = False) -> pd.DataFrame:
    """Returns Table 8 (`split` "single_turn") or 9 ("multi_turn") in percent: model, setting
    ("mm_llm", "task_1" …), metric (of `SHOWN`), value. With `found` it is Table 10 or 11, of the
    questions or conversations whose entity was retrieved.

    For conversations accuracy, missing and hallucination are shares of turns before early stopping,
    truthfulness is after it.
    """
    table = published("crag_mm", (_FOUND if found else _MAIN)[split])
    return table.rename(columns={"task": "setting"})[_COLUMNS]


def published_gains(split: str, baselines: Sequence[str] = ("mm_llm",)) -> pd.DataFrame:
    """Computes differences of the means of `published_main` from each of `baselines`, in points.
    Columns: model, setting, metric, baseline, value, unit ("percent": of the compared means);
    without intervals, which published means do not allow.
    """
    table = published_main(split)
    tables = []
    for baseline in baselines:
        start = table[table["setting"] == baseline].drop(columns="setting")
        pairs = table.merge(start, on=["model", "metric"], suffixes=("", "_start"))
        pairs = pairs[pairs["setting"] != baseline]
        value = (pairs["value"] - pairs["value_start"]).round(2)
        tables.append(pairs.assign(baseline=baseline, value=value))
    gains = pd.concat(tables, ignore_index=True).drop(columns="value_start")
    return gains.assign(unit="percent")


def published_systems(split: str) -> pd.DataFrame:
    """Returns Table 5 in the columns of `published_main`: the challenge's winners, on its private
    test set, and industry systems with their own search; setting is "own search".
    """
    table = published("crag_mm", 5)
    named = table.rename(columns={"system": "model"}).assign(setting="own search")
    return named[named["split"] == split][_COLUMNS].reset_index(drop=True)


def published_recall() -> pd.DataFrame:
    """Returns the labels of Figures 3 and 7, in percent: retriever ("image_search", "web_search"),
    setting ("full_image_query", "manual_crop_query", "egocentric", "normal", "snippets",
    "full_pages"), k, value.

    Image search must return the entity among k images; web search a page, of k, with the answer.
    The index has 93.4 % of the entities.
    """
    kinds = published("crag_mm", "figure07").rename(columns={"image_type": "setting"})
    table = pd.concat([published("crag_mm", "figure03_curves"), kinds], ignore_index=True)
    return table[["retriever", "setting", "k", "value"]]


def published_range(split: str) -> pd.DataFrame:
    """Formats the range of the paper's nine models, "−22.4 to 7.9, median −13.1": rows setting,
    columns `SHOWN`, in percent.
    """
    wide = format_spread(published_main(split), ["setting", "metric"]).unstack()
    return wide.reindex(columns=[name for name in SHOWN if name in wide])


def truthfulness_table(means: pd.DataFrame, paper: pd.DataFrame | None = None) -> pd.DataFrame:
    """Formats results: rows (source, model, setting), columns `SHOWN`, n and failed. Cells are
    "mean [low, high]" of `to_percent(conversation_means(…))`, followed, where conversations have no
    score, by the means if all of these were incorrect, or correct.

    `paper`, as from `published_main`, is added below as "reported, other data".
    """
    ours = means[means["metric"].isin(SHOWN)]
    ours = ours.assign(source="here", cell=[_cell(row) for row in ours.to_dict("records")])
    counts = ours.groupby(["source", "model", "setting"], sort=False)
    told = counts.agg(n=("n", "max"), failed=("n_failed", "max")).astype(str)
    tables = [ours]
    if paper is not None:
        cells = paper["value"].map("{:.1f}".format)
        tables.append(paper.assign(source="reported, other data", cell=cells))
    both = pd.concat(tables, ignore_index=True)
    rows = ["source", "model", "setting"]
    wide = both.pivot_table(
        index=rows, columns="metric", values="cell", aggfunc="first", sort=False
    )
    wide = wide.reindex(columns=[name for name in SHOWN if name in wide])
    return wide.join(told).fillna(NOTHING)


def _cell(row: TableRow) -> str:
    cell = format_ci(row["value"], row["ci_low"], row["ci_high"])
    if row["n_failed"]:
        return f"{cell} ({row['bound_low']:.1f} to {row['bound_high']:.1f})"
    return cell
