"""A mean over questions in another mix of parts: its variance is that of textbooks, of the
matrices written out, and of repeated samples.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from factories import judged_arms
from scipy import linalg, stats

from vrag_kit.analysis import cluster_means, mean_scores, paired_differences, per_query
from vrag_kit.analysis.estimates import estimate, table_mean
from vrag_kit.errors import VragError
from vrag_kit.judging import Scale

WIDE = Scale(-1e4, 1e4)
"""Far ends: the interval is Student's."""


def table(**parts: list[float]) -> pd.DataFrame:
    """Values by part; every query is a group of its own."""
    rows = [(part, value) for part, values in parts.items() for value in values]
    frame = pd.DataFrame(rows, columns=["part", "value"])
    names = [f"q{number}" for number in range(len(frame))]
    return frame.assign(query_id=names, group=names, arm="all", score_min=-1e4, score_max=1e4)


def weights(**shares: float) -> pd.Series:
    return pd.Series(shares).rename_axis("part")


def by_matrices(rows: pd.DataFrame, shares: dict[str, float]) -> tuple[float, float]:
    """CR2 variance of Σ share · coefficient in the regression on parts, and its
    Satterthwaite degrees of freedom, as Bell and McCaffrey write them.
    """
    names = list(shares)
    x = np.array([[float(part == name) for name in names] for part in rows["part"]])
    y, inner = rows["value"].to_numpy(), np.linalg.inv(x.T @ x)
    rest = np.eye(len(x)) - x @ inner @ x.T
    contrast = x @ inner @ np.array([shares[name] for name in names])
    columns, variance = [], 0.0
    for _, part in rows.reset_index(drop=True).groupby("group"):
        at = part.index.to_numpy()
        root = linalg.fractional_matrix_power(rest[np.ix_(at, at)], -0.5).real
        weights = root @ contrast[at]
        variance += float(weights @ (rest @ y)[at]) ** 2
        columns.append(rest[:, at] @ weights)
    eigen = np.linalg.eigvalsh(np.array(columns) @ np.array(columns).T)
    return variance, float(eigen.sum() ** 2 / (eigen**2).sum())


@pytest.mark.parametrize("shares", [{"a": 1.0}, {"a": 0.5, "b": 0.3, "c": 0.2}])
@pytest.mark.parametrize("seed", range(3))
def test_the_variance_is_that_of_the_matrices(seed: int, shares: dict[str, float]) -> None:
    random = np.random.default_rng(seed)
    sizes = dict(zip(shares, (9, 14, 5), strict=False))
    rows = table(**{part: list(random.random(size)) for part, size in sizes.items()})
    rows["group"] = random.integers(0, 11, len(rows)).astype(str)
    found = table_mean(rows, WIDE, weights(**shares))
    variance, freedom = by_matrices(rows, shares)
    assert found.variance == pytest.approx(variance)
    assert found.freedom == pytest.approx(freedom)


def test_what_no_question_shows_counts_by_the_thinnest_part() -> None:
    rows = table(a=[1.0] * 5, b=[1.0] * 50).assign(score_min=0.0, score_max=1.0)
    row = cluster_means(rows, ["arm"], weights=weights(a=0.5, b=0.5)).iloc[0]
    # 5 questions show half of the mix, as 10 would show all of it
    assert row["ci_low"] == pytest.approx(stats.binomtest(10, 10).proportion_ci().low)
    as_sampled = cluster_means(rows, ["arm"], weights=weights(a=1, b=10)).iloc[0]
    assert as_sampled["ci_low"] == pytest.approx(estimate([1.0] * 55, range(55)).ci_low)


def test_a_part_of_one_group_counts_by_its_distance_from_the_whole() -> None:
    rows = table(a=[0.0, 2.0], b=[4.0])
    found = table_mean(rows, WIDE, weights(a=1, b=1))
    # mean 2.5; a: 0.25 · s² / 2 with s² = 2; b: (0.5 · (4 − 2.5))²
    assert found.variance == pytest.approx(0.25 + 0.75**2)


def test_failed_questions_leave_their_share_to_the_rest_of_their_part() -> None:
    rows = table(a=[0.0, 1.0, math.nan], b=[1.0, 1.0, math.nan]).assign(
        score_min=0.0, score_max=1.0
    )
    mix = weights(a=3, b=1)
    row = cluster_means(rows, ["arm"], weights=mix).iloc[0]
    assert row[["value", "n", "n_failed"]].tolist() == [0.75 * 0.5 + 0.25, 4, 2]
    lost = rows.assign(value=rows["value"].mask(rows["part"] == "b"))
    row = cluster_means(lost, ["arm"], weights=mix).iloc[0]
    assert row[["n", "n_failed"]].tolist() == [2, 4]
    assert row[["value", "ci_low", "ci_high"]].isna().all()


def test_a_part_without_a_share_is_refused() -> None:
    with pytest.raises(VragError, match="part 'b' has no share"):
        cluster_means(table(a=[1.0], b=[2.0]), ["arm"], weights=weights(a=1))


def test_accuracy_and_differences_are_mixed_alike() -> None:
    scores = {"alone": [0, 0, 1, 1, 1, 0], "shown": [1, 0, 1, 1, 1, math.nan]}
    answers = judged_arms(scores, ["setting"], part=list("aaabbb"), k=0)
    mix = weights(a=3, b=1)
    found = mean_scores(answers, weights=mix).query("metric == 'accuracy'").set_index("setting")
    assert found.loc["alone", "value"] == pytest.approx(0.75 / 3 + 0.25 * 2 / 3)
    bounds = found.loc["shown", ["bound_low", "value", "bound_high"]].astype(float)
    assert bounds.tolist() == pytest.approx([0.5 + 0.25 * 2 / 3, 0.75, 0.75])
    values = per_query(answers, by=["model", "setting", "part"])
    row = paired_differences(
        values, arm="setting", by=["model"], baseline="alone", weights=mix
    ).iloc[0]
    assert row["value"] == pytest.approx(0.75 / 3)  # a: one of three; b: none of two
    assert row[["n", "n_failed"]].tolist() == [5, 1]
    assert row["ci_low"] < 0 < row["ci_high"]


def test_a_failed_answer_is_left_out_of_the_mean_and_counted() -> None:
    judged = judged_arms({("m", "top_k", 1): [1.0, math.nan, 0.5]})
    (row,) = mean_scores(judged).query("metric == 'accuracy'").itertuples()
    assert (row.value, row.n, row.n_failed) == (0.75, 2, 1)
    assert per_query(judged)["value"].isna().tolist() == [False, True, False]
