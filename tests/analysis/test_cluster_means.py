"""Interval and p-value are of one test over clusters, which agrees with other libraries,
with a slow obvious version, and with the truth about as often as it says.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from timing.coverage import held

from vrag_kit.analysis import paired_differences
from vrag_kit.analysis.estimates import cluster_mean, estimate
from vrag_kit.errors import VragError
from vrag_kit.judging import Scale

DIFFERENCES = Scale(-1.0, 1.0)
CLUSTERS = st.lists(
    st.lists(st.sampled_from([0.0, 0.0, 0.0, 0.5, 1.0, -1.0]), min_size=1, max_size=4),
    min_size=1,
    max_size=14,
)
"""Differences of queries by cluster, most of them 0."""


def long(clusters: list[list[float]]) -> tuple[np.ndarray, list[str]]:
    groups = [f"g{i}" for i, values in enumerate(clusters) for _ in values]
    return np.concatenate([np.array(values, float) for values in clusters]), groups


def paired(clusters: list[list[float]]) -> pd.DataFrame:
    """Arm a less arm b is as given, on a scale from 0 to 1."""
    values, groups = long(clusters)
    frame = pd.DataFrame({"query_id": range(len(values)), "group": groups, "k": 1})
    frame["query_id"] = frame["query_id"].map("q{}".format)
    a, b = values.clip(min=0), -values.clip(max=0)
    return pd.concat([frame.assign(arm="a", value=a), frame.assign(arm="b", value=b)])


@pytest.mark.slow
@given(CLUSTERS)
@settings(max_examples=40, deadline=None)
def test_0_is_outside_where_p_is_below_5_percent(clusters: list[list[float]]) -> None:
    row = paired_differences(paired(clusters), arm="arm", by=["k"], baseline="b").iloc[0]
    if math.isnan(row["p"]):
        assert len(clusters) == 1
        assert math.isnan(row["ci_low"])
        return
    margin = min(abs(row["ci_low"]), abs(row["ci_high"]))
    assert (row["p"] < 0.05) == (row["ci_low"] > 0 or row["ci_high"] < 0) or margin < 1e-9
    assert -1 <= row["ci_low"] <= row["value"] <= row["ci_high"] <= 1


def test_with_as_many_queries_in_every_cluster_p_is_students_of_their_means() -> None:
    values = np.random.default_rng(1).normal(0.1, 0.5, (12, 3))
    ours = cluster_mean(values.ravel(), np.repeat(np.arange(12), 3), Scale(-1e4, 1e4))
    assert ours.p_value() == pytest.approx(stats.ttest_1samp(values.mean(axis=1), 0.0).pvalue)


def test_the_interval_of_a_share_is_wilsons_with_students_t() -> None:
    ours = estimate([1.0] * 3 + [0.0] * 17, [f"g{i}" for i in range(20)])
    t = stats.t.ppf(0.975, 19)
    for bound in (ours.ci_low, ours.ci_high):  # n − 1, since the variance is estimated
        assert abs(0.15 - bound) == pytest.approx(t * math.sqrt(bound * (1 - bound) / 19))


def test_one_cluster_in_which_values_differ_tells_nothing() -> None:
    ours = cluster_mean(np.array([0.2, 0.4]), ["a", "a"], DIFFERENCES)
    assert np.isnan([ours.p_value(), *ours.interval()]).all()


def test_values_off_their_scale_are_refused() -> None:
    with pytest.raises(VragError, match=r"values from 0\.2 to 3 are off their scale, from 0 to 1"):
        estimate([0.2, 3.0], ["a", "b"])


@pytest.mark.parametrize("clusters", [12, 48])
def test_intervals_hold_the_truth_about_as_often_as_they_say(clusters: int) -> None:
    share = held("moves of either sign, one in five", clusters, trials=400)
    # 95 % of 400 trials: 1.1 points of standard error, and a little is lost to sparse moves
    assert 0.92 <= share <= 0.995
