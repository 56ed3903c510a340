"""The paper's printed numbers in the form of ours: truthfulness by arm, and what searches
find; beside ours as what they are, numbers on other data.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vrag_kit.analysis.cells import NOTHING, interval_cell
from vrag_kit.analysis.settings_table import Row
from vrag_kit.papers.published import published, spread_in_words

SINGLE, MULTI = "single_turn", "multi_turn"
SHOWN = ("accuracy", "missing", "hallucination", "truthfulness", "early_stop")
"""The metrics that the tables print; early_stop in those of conversations alone."""
_MAIN = {SINGLE: 8, MULTI: 9}
_FOUND = {SINGLE: 10, MULTI: 11}
_COLUMNS = ["model", "setting", "metric", "value"]


def printed_main(split: str, *, found: bool = False) -> pd.DataFrame:
    """Table 8 (`split` "single_turn") or 9 ("multi_turn"), in percent: model, setting
    ("mm_llm", "task_1" …), metric (of `SHOWN`), value; with `found` Table 10 or 11, of
    the questions or conversations whose entity was found.

    Of conversations accuracy, missing and hallucination are shares of turns before the
    stop, truthfulness is after it.
    """
    table = published("crag_mm", (_FOUND if found else _MAIN)[split])
    return table.rename(columns={"task": "setting"})[_COLUMNS]


def printed_gains(split: str, baselines: Sequence[str] = ("mm_llm",)) -> pd.DataFrame:
    """Differences of the means of `printed_main` to each of `baselines`, in points: model,
    setting, metric, baseline, value, unit ("percent": of the means that are compared);
    without intervals, which printed means do not allow.
    """
    table = printed_main(split)
    tables = []
    for baseline in baselines:
        start = table[table["setting"] == baseline].drop(columns="setting")
        pairs = table.merge(start, on=["model", "metric"], suffixes=("", "_start"))
        pairs = pairs[pairs["setting"] != baseline]
        value = (pairs["value"] - pairs["value_start"]).round(2)
        tables.append(pairs.assign(baseline=baseline, value=value))
    gains = pd.concat(tables, ignore_index=True).drop(columns="value_start")
    return gains.assign(unit="percent")


def printed_systems(split: str) -> pd.DataFrame:
    """Table 5 in the same columns: winners of the challenge, on its private test, and
    industry's systems with searches of their own; setting is "own search".
    """
    table = published("crag_mm", 5)
    named = table.rename(columns={"system": "model"}).assign(setting="own search")
    return named[named["split"] == split][_COLUMNS].reset_index(drop=True)


def printed_recall() -> pd.DataFrame:
    """The labels of Figures 3 and 7, in percent: retriever ("image_search",
    "web_search"), setting ("full_image_query", "manual_crop_query", "egocentric",
    "normal", "snippets", "full_pages"), k, value.

    Image search finds the entity among k pictures; web search a page, of k, that tells
    the answer. The index holds 93.4 % of the entities.
    """
    kinds = published("crag_mm", "figure07").rename(columns={"image_type": "setting"})
    table = pd.concat([published("crag_mm", "figure03_curves"), kinds], ignore_index=True)
    return table[["retriever", "setting", "k", "value"]]


def printed_range(split: str) -> pd.DataFrame:
    """What the paper's nine models reach, "−22.4 to 7.9, median −13.1": rows setting,
    columns `SHOWN`, in percent.
    """
    wide = spread_in_words(printed_main(split), ["setting", "metric"]).unstack()
    return wide.reindex(columns=[name for name in SHOWN if name in wide])


def truth_table(means: pd.DataFrame, paper: pd.DataFrame | None = None) -> pd.DataFrame:
    """Rows (source, model, setting), columns `SHOWN`, n and failed: cells "mean [low,
    high]" of `in_percent(conversation_means(…))`, with the means if all of them were
    wrong, or right, behind those of conversations that have no score.

    `paper`, as `printed_main` gives it, stands below as "paper, other data".
    """
    ours = means[means["metric"].isin(SHOWN)]
    ours = ours.assign(source="here", cell=[_cell(row) for row in ours.to_dict("records")])
    counts = ours.groupby(["source", "model", "setting"], sort=False)
    told = counts.agg(n=("n", "max"), failed=("n_failed", "max")).astype(str)
    tables = [ours]
    if paper is not None:
        cells = paper["value"].map("{:.1f}".format)
        tables.append(paper.assign(source="paper, other data", cell=cells))
    both = pd.concat(tables, ignore_index=True)
    rows = ["source", "model", "setting"]
    wide = both.pivot_table(
        index=rows, columns="metric", values="cell", aggfunc="first", sort=False
    )
    wide = wide.reindex(columns=[name for name in SHOWN if name in wide])
    return wide.join(told).fillna(NOTHING)


def _cell(row: Row) -> str:
    cell = interval_cell(row["value"], row["ci_low"], row["ci_high"])
    if row["n_failed"]:
        return f"{cell} ({row['if_all_wrong']:.1f} to {row['if_all_right']:.1f})"
    return cell
