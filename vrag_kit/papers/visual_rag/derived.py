"""Quantities derived from the paper's published numbers, in our result format: gCUE, selective
accuracy, gains compared with the judge's bias.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vrag_kit.papers.visual_rag.gcue import LAMBDAS, gcue_from_means
from vrag_kit.papers.visual_rag.printed import PAPER_QUERIES

_GCUE = [
    *("model", "k", "lambda", "value", "ci_low", "ci_high", "interval", "half_width"),
    *("a_k", "a_gt", "a_zero_shot", "a_non_clue"),
    *("denominator", "denominator_low", "denominator_high", "n", "n_failed"),
]
"""Columns of `gcue`."""


def published_gcue(table: pd.DataFrame, *, lambdas: Sequence[float] = LAMBDAS) -> pd.DataFrame:
    """Computes gCUE from published accuracies, `published("visual_rag", table=3)`. Columns are
    those of `gcue`, without intervals, which the paper's means do not allow.
    """
    rows = []
    for model, part in table.groupby("model", sort=False):
        base = part.drop_duplicates("setting").set_index("setting")["value"] / 100
        a_gt, a_z = base["gt_clue"], base["zero_shot"]
        a_nc = base["non_clue"]
        given = {"a_gt": a_gt, "a_zero_shot": a_z, "a_non_clue": a_nc}
        for k, value in part[part["setting"] == "one_in_k"][["k", "value"]].itertuples(index=False):
            for lam in lambdas:
                row = {"model": model, "k": int(k), "lambda": lam, "a_k": value / 100, **given}
                row["value"] = gcue_from_means(value / 100, a_gt, a_z, a_nc, lam)
                benefit = a_gt - (lam * a_z + (1 - lam) * a_nc)
                rows.append({**row, "denominator": benefit})
    gcue = pd.DataFrame(rows).assign(interval="", n=PAPER_QUERIES, n_failed=0)
    return gcue.reindex(columns=_GCUE)


def published_selective_accuracy(
    accuracies: pd.DataFrame, abstentions: pd.DataFrame
) -> pd.DataFrame:
    """Computes selective accuracy from the published Tables 3 and 8, each with its
    columns k and n. Columns: model, setting, k, value in percent, n; NaN where all answers abstain.

    Accuracy / (1 − abstention): exact where an abstention scores 0, as the rubric demands, and both
    tables count the same answers.
    """
    both = accuracies.merge(
        abstentions[["model", "setting", "k", "value"]],
        on=["model", "setting", "k"],
        suffixes=("", "_declined"),
    )
    given = 100 - both["value_declined"]
    value = (100 * both["value"] / given).where(given > 0)
    return both.assign(value=value)[["model", "setting", "k", "value", "n"]]


def gains_vs_judge_bias(paper: pd.DataFrame, bias: float) -> pd.DataFrame:
    """Compares each model's gain from the clue over zero-shot with the judge's bias, smallest gain
    first. `paper` is `published("visual_rag", table=3)`. Columns: model, gain in points;
    cancelled_by, the differential bias that would cancel the gain (equal to it); smaller_than_bias,
    whether the gain is below `bias` (in [−1, 1], over all answers).
    """
    value = paper[paper["setting"].isin(["zero_shot", "gt_clue"])].pivot(
        index="model", columns="setting", values="value"
    )
    gains = (value["gt_clue"] - value["zero_shot"]).rename("gain").sort_values().reset_index()
    gains = gains.assign(cancelled_by=gains["gain"])
    return gains.assign(smaller_than_bias=gains["gain"].abs() < 100 * abs(bias))
