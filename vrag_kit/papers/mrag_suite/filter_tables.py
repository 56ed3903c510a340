"""Tables of closed-book answers and of the questions that the filter keeps, with the published
numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from vrag_kit.analysis.means import to_percent
from vrag_kit.judging.scale import scale_of
from vrag_kit.papers.mrag_suite.filter import FilterRules, keep_rates
from vrag_kit.papers.mrag_suite.filter_controls import filter_controls, leave_out_filter
from vrag_kit.papers.published import published
from vrag_kit.types import Benchmark


def closed_book_table(
    closed_book: Mapping[str, pd.DataFrame], confidence: float | None
) -> pd.DataFrame:
    """Counts closed-book answers: dataset, model, answers, correct (with the best score), without
    confidence, surer (above `confidence`, if that is given), correct and surer; numbers of answers,
    no shares.
    """
    rows = []
    for name, judged in closed_book.items():
        correct = judged["score"] >= scale_of(judged).best
        surer = judged["confidence"] > (-1 if confidence is None else confidence)
        told = pd.DataFrame(
            {
                "answers": judged["score"].notna(),
                "correct": correct,
                "without confidence": judged["confidence"].isna(),
                "surer": surer,
                "correct and surer": correct & surer,
            }
        )
        counts = told.groupby(judged["model"], sort=False).sum()
        rows.append(counts.reset_index().assign(dataset=name))
    return pd.concat(rows, ignore_index=True).set_index(["dataset", "model"])


def filter_controls_by_dataset(
    suite: Mapping[str, Benchmark],
    judged: Mapping[str, pd.DataFrame],
    closed_book: Mapping[str, pd.DataFrame],
    rules: FilterRules | None = None,
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """Runs `filter_controls` on each data set and stratum, in points: dataset, stratum, model,
    setting (the control), metric, value, ci_low, ci_high, n, n_full, n_failed, baseline.

    `judged` are the answers of each in one arm (`judge_suite`, then `training_strata`),
    `closed_book` those for the filter. Decisions are made for all strata together. Raises as
    `leave_out_filter` and `filter_controls` do.
    """
    parts = []
    for name, benchmark in suite.items():
        decide = leave_out_filter(benchmark, closed_book[name], rules)
        metric = judged[name]["metric"].iloc[0]
        for stratum, part in judged[name].groupby("stratum", sort=False):
            table = filter_controls(part, decide, seed=seed)
            parts.append(table.assign(dataset=name, stratum=stratum, metric=metric))
    table = to_percent(pd.concat(parts, ignore_index=True))
    return table.rename(columns={"control": "setting"})


def kept_shares(decisions: pd.DataFrame) -> pd.DataFrame:
    """Computes `keep_rates` of each dataset, with `published`: the paper's kept share in percent
    (Table 1), NaN for a data set that is not in the paper.

    `decisions` are those of every data set, with the column dataset.
    """
    table = keep_rates(decisions, by=["dataset"])
    counts = published("mrag_suite", 1).pivot(index="dataset", columns="metric", values="value")
    share = 100 * counts["n_filtered"] / counts["n_full"]
    return table.assign(published=share.reindex(table["dataset"]).to_numpy(float))


def published_filter_change() -> pd.DataFrame:
    """Computes the published filtered minus full accuracy (Table 2), in points: dataset, model,
    value; of other models, and of filters whose lists are not public.
    """
    wide = published("mrag_suite", 2).pivot(
        index=["dataset", "model"], columns="split", values="value"
    )
    return (wide["filtered"] - wide["full"]).rename("value").reset_index()
