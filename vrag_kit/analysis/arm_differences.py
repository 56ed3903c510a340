"""Tests of the difference between two arms: the paired difference with its interval, an exact test,
and the minimum detectable difference.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from vrag_kit.analysis.clusters import cluster_mean
from vrag_kit.analysis.comparisons import holm
from vrag_kit.analysis.report_tables import LEVEL, ci_cells, format_p
from vrag_kit.analysis.run_comparison import (
    condition_columns,
    judge_names,
    judges_differ,
    side_name,
)
from vrag_kit.analysis.settings_table import setting_name
from vrag_kit.analysis.sign_flips import minimum_detectable_difference, sign_flip_test
from vrag_kit.analysis.strata import ALL, NO_STRATUM, sort_strata
from vrag_kit.judging.scale import scale_of

_SIDES = ["value_a", "ci_low_a", "ci_high_a", "value_b", "ci_low_b", "ci_high_b"]
_MEANS = [*_SIDES, "value", "ci_low", "ci_high", "n", "n_groups", "n_failed"]
OTHERWISE = "different judges"
"""The verdict where two judges gave the scores: they do not compare the answers."""
_TESTS = [
    *("n_improved", "n_worsened", "p", "p_holm", "test", "mde", "mde_is_lower_bound", "verdict")
]


def paired_tests(pairs: pd.DataFrame) -> pd.DataFrame:
    """Paired tests on `paired_answers`, for each condition by stratum and then over all questions.
    Columns: those of the condition, stratum, metric, a and b (names of the sides), baseline (that
    of a), value_a, value_b (with ci_low_a … ci_high_b), value (b − a), ci_low, ci_high, n,
    n_groups, n_failed, n_improved, n_worsened, p, p_holm, test, mde, mde_is_lower_bound, verdict.

    Means are over the n questions, in n_groups groups, with a score on both sides; a question's
    draws are averaged first. n_failed counts questions without a score on one side. n_improved and
    n_worsened count questions with a higher and a lower score in b. 95 % intervals are those of
    `ClusterMean` over groups. p is exact (`sign_flip_test`: McNemar's where scores are 0 or 1 and
    questions independent), or that of the interval where test is "t"; p_holm corrects it for all
    rows of the same stratum, as `paired_differences` does: each stratum and all questions are
    families of their own. mde is the minimum detectable difference
    (`minimum_detectable_difference`) at 5 % ÷ rows of the family with a power of 80 %; where
    mde_is_lower_bound is True fewer questions change than it takes, and mde is what changes in one
    direction alone would need. verdict is "higher" or "lower" where the interval excludes 0 and
    p_holm is below 0.05, else "not significant"; "no score" for n = 0; `OTHERWISE` where different
    judges scored the two sides. judge_a and judge_b name the judges, where both are known. A
    stratum that holds all pairs of a condition has no row of its own.
    """
    by = condition_columns(pairs)
    cells: list[tuple[tuple[object, ...], pd.DataFrame]] = []
    for key, part in pairs.groupby(by, sort=False, dropna=False):
        cells += [((*key, name, "score"), some) for name, some in _apart(part)]
    family = Counter(key[len(by)] for key, _ in cells)  # by the stratum
    rows = [(*key, *_row(part, LEVEL / family[key[len(by)]])) for key, part in cells]
    before = [*by, "stratum", "metric"]
    table = pd.DataFrame(rows, columns=[*before, *_MEANS, *_TESTS[:3], *_TESTS[4:7]])
    a, b = str(pairs["a"].iloc[0]), str(pairs["b"].iloc[0])
    table = table.assign(a=a, b=b, baseline=a)
    table["p_holm"] = table.groupby("stratum")["p"].transform(lambda p: holm(p.to_numpy(float)))
    parts = [part for _, part in cells]
    apart = [bool(judges_differ(part).any()) for part in parts]
    known = {"judge_a", "judge_b"} <= set(pairs)
    judges = {
        f"judge_{side}": [judge_label(part, side) for part in parts] for side in "ab" if known
    }
    told = zip(table.to_dict("records"), apart, strict=True)
    table["verdict"] = [OTHERWISE if other else _verdict(row) for row, other in told]
    table = table.assign(**judges)
    return table[[*before, "a", "b", "baseline", *judges, *_MEANS, *_TESTS]]


def judge_label(pairs: pd.DataFrame, side: str) -> str:
    """The judge of a side, "a" or "b", of `paired_answers` (`judge_names`), such as "rule"; ""
    where the answers were saved without it.
    """
    return " | ".join(map(str, judge_names(pairs, side).dropna().unique()))


def paired_tests_table(differences: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Formats `to_percent(paired_tests(pairs))` as a table, without columns that are the same in
    all rows and do not describe the arms.
    """
    a, b = (side_name(side, pairs[side.lower()].iloc[0]) for side in "AB")
    asked = [name for name in condition_columns(pairs) if (differences[name] != "").any()]
    names = [*asked, "stratum"]
    table = differences[[name for name in names if differences[name].nunique() > 1] or names[:1]]
    if "setting" in table:
        table = table.assign(setting=table["setting"].map(setting_name))
    changed = differences["n_improved"].map("+{}".format) + differences["n_worsened"].map(
        " −{}".format
    )
    return table.assign(
        **{
            a: _side_cells(differences, "a"),
            b: _side_cells(differences, "b"),
            "B − A (percentage points)": ci_cells(differences),
            "n": differences["n"],
            "n_groups": differences["n_groups"],
            **({"failed": differences["n_failed"]} if differences["n_failed"].any() else {}),
            "changed (+ / −)": changed,
            "p": differences["p"].map(format_p) + differences["test"].map({"t": " (t)"}).fillna(""),
            "p (Holm)": differences["p_holm"].map(format_p),
            "minimum detectable difference": _smallest_cells(differences),
            "verdict (B against A)": differences["verdict"],
        }
    )


def _smallest_cells(differences: pd.DataFrame) -> pd.Series:
    """ "16.3", "≥ 16.3" where that is a lower bound, "–" where nothing could be found."""
    numbers = differences["mde"].map("{:.1f}".format).replace("nan", "–")
    return differences["mde_is_lower_bound"].map({True: "≥ ", False: ""}) + numbers


def _side_cells(differences: pd.DataFrame, side: str) -> pd.Series:
    """The mean of a side with its interval."""
    names = ["value", "ci_low", "ci_high"]
    columns = {f"{name}_{side}": name for name in names}
    return ci_cells(differences[list(columns)].rename(columns=columns))


def _apart(part: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each stratum of the pairs, unless it holds all of them, and all of them."""
    for name in sort_strata(part["stratum"]):
        inside = part["stratum"] == name
        if name != NO_STRATUM and not inside.all():
            yield name, part[inside]
    yield ALL, part


def _row(part: pd.DataFrame, level: float) -> tuple[object, ...]:
    """The numbers of one way of asking, in one stratum."""
    scores = part[["query_id", "group", "score_a", "score_b"]].astype(
        {"score_a": float, "score_b": float}
    )
    known = scores.dropna(subset=["score_a", "score_b"])
    n_failed = scores["query_id"].nunique() - known["query_id"].nunique()
    if known.empty:
        nothing = [math.nan] * 9
        return (*nothing, 0, 0, n_failed, 0, 0, math.nan, "", math.nan, False)
    means = known.groupby(["query_id", "group"], sort=False)[["score_a", "score_b"]].mean()
    difference = (means["score_b"] - means["score_a"]).round(12).to_numpy(float)
    groups = means.index.get_level_values("group").to_numpy()
    scale = scale_of(part)
    found = cluster_mean(difference, groups, scale.differences)
    p, test = sign_flip_test(difference, groups), "exact sign-flip test"
    if math.isnan(p):
        p, test = found.p_value(), "t"
    smallest = minimum_detectable_difference(difference, groups, scale, level=level)
    floor = smallest / scale.width > float(np.mean((difference / scale.width) ** 2))
    gained, lost = int((difference > 0).sum()), int((difference < 0).sum())
    sides: list[float] = []
    for name in ("score_a", "score_b"):
        mean = cluster_mean(means[name].to_numpy(float), groups, scale)
        sides += [mean.value, *mean.interval()]
    counts = (len(means), len(set(groups)), n_failed)
    known_of = (*sides, found.value, *found.interval(), *counts)
    return (*known_of, gained, lost, p, test, smallest, floor)


def _verdict(row: Mapping[Hashable, Any]) -> str:  # Any: a row of a table
    if not row["n"]:
        return "no score"
    outside = row["ci_low"] > 0 or row["ci_high"] < 0
    if not (outside and row["p_holm"] < LEVEL):
        return "not significant"
    return "higher" if row["value"] > 0 else "lower"
