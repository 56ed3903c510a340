"""Whether two arms differ: the paired difference with its interval, an exact test, and
what as many questions could have shown.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from vrag_kit.analysis.cells import LEVEL, interval_cells, p_cell
from vrag_kit.analysis.clusters import cluster_mean
from vrag_kit.analysis.comparison import holm
from vrag_kit.analysis.sign_flips import sign_flip_p, smallest_difference
from vrag_kit.analysis.two_arms import asked_by, side_name
from vrag_kit.judging.scale import scale_of

_MEANS = ["value_a", "value_b", "value", "ci_low", "ci_high", "n", "n_failed"]
_TESTS = ["gained", "lost", "p", "p_holm", "test", "smallest", "verdict"]


def arm_differences(pairs: pd.DataFrame) -> pd.DataFrame:
    """What `paired_answers` say of each way of asking: the columns that name it,
    metric, value_a, value_b, value (b less a), ci_low, ci_high, n, n_failed, gained,
    lost, p, p_holm, test, smallest, verdict.

    Means are over the questions that both sides have a score for, n of them, after the
    mean over a question's draws; n_failed counts those where one side has none. gained
    and lost are questions with a higher and a lower score in b. The 95 % interval is
    that of `ClusterMean` over groups. p is exact (`sign_flip_p`: McNemar's where scores
    are 0 or 1 and questions independent), or that of the interval where test says "t";
    p_holm corrects it for all rows shown. smallest is `smallest_difference` at
    5 % ÷ rows with a power of 80 %. verdict is "higher" or "lower" where the interval
    leaves 0 out and p_holm is below 0.05, else "not told apart"; "no score" for n = 0.
    """
    by = asked_by(pairs)
    cells = list(pairs.groupby(by, sort=False, dropna=False))
    rows = [(*key, "score", *_row(part, LEVEL / len(cells))) for key, part in cells]
    table = pd.DataFrame(rows, columns=[*by, "metric", *_MEANS, *_TESTS[:3], *_TESTS[4:6]])
    table["p_holm"] = holm(table["p"].to_numpy(float))
    table["verdict"] = [_verdict(row) for row in table.to_dict("records")]
    return table[[*by, "metric", *_MEANS, *_TESTS]]


def arm_table(differences: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """`in_percent(arm_differences(pairs))` as people read it, without columns that are
    the same in all rows and say nothing of the arms.
    """
    a, b = (side_name(side, pairs[side.lower()].iloc[0]) for side in "AB")
    names = [name for name in asked_by(pairs) if (differences[name] != "").any()]
    table = differences[[name for name in names if differences[name].nunique() > 1] or names[:1]]
    changed = differences["gained"].map("+{}".format) + differences["lost"].map(" −{}".format)
    return table.assign(
        **{
            a: differences["value_a"].map("{:.1f}".format),
            b: differences["value_b"].map("{:.1f}".format),
            "B − A in points": interval_cells(differences),
            "n": differences["n"],
            "failed": differences["n_failed"],
            "questions changed": changed,
            "p": differences["p"].map(p_cell),
            "p (Holm)": differences["p_holm"].map(p_cell),
            "smallest detectable": differences["smallest"].map("{:.1f}".format).replace("nan", "–"),
            "B is": differences["verdict"],
        }
    )


def _row(part: pd.DataFrame, level: float) -> tuple[object, ...]:
    """The numbers of one way of asking."""
    scores = part[["query_id", "group", "score_a", "score_b"]].astype(
        {"score_a": float, "score_b": float}
    )
    known = scores.dropna(subset=["score_a", "score_b"])
    n_failed = scores["query_id"].nunique() - known["query_id"].nunique()
    if known.empty:
        nothing = [math.nan] * 5
        return (*nothing, 0, n_failed, 0, 0, math.nan, "", math.nan)
    means = known.groupby(["query_id", "group"], sort=False)[["score_a", "score_b"]].mean()
    difference = (means["score_b"] - means["score_a"]).round(12).to_numpy(float)
    groups = means.index.get_level_values("group").to_numpy()
    scale = scale_of(part)
    found = cluster_mean(difference, groups, scale.differences)
    p, test = sign_flip_p(difference, groups), "sign flips"
    if math.isnan(p):
        p, test = found.p(), "t"
    smallest = smallest_difference(difference, groups, scale, level=level)
    gained, lost = int((difference > 0).sum()), int((difference < 0).sum())
    either = (float(means["score_a"].mean()), float(means["score_b"].mean()))
    known_of = (*either, found.value, *found.interval(), len(means), n_failed)
    return (*known_of, gained, lost, p, test, smallest)


def _verdict(row: Mapping[Hashable, Any]) -> str:  # Any: a row of a table
    if not row["n"]:
        return "no score"
    outside = row["ci_low"] > 0 or row["ci_high"] < 0
    if not (outside and row["p_holm"] < LEVEL):
        return "not told apart"
    return "higher" if row["value"] > 0 else "lower"
