"""Intervals and paired tests agree with other libraries and with hand calculations;
published numbers are as printed.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats

from vrag_kit.analysis import (
    paired_differences,
)
from vrag_kit.analysis.estimates import estimate
from vrag_kit.errors import VragError
from vrag_kit.judging import Scale
from vrag_kit.papers import published, published_gains

ANY = Scale(-1e4, 1e4)
"""So wide that its ends do not matter."""


def clustered(seed: int, clusters: int = 40, size: int = 3) -> tuple[np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    values = np.repeat(rng.normal(0.5, 0.2, clusters), size) + rng.normal(0, 0.1, clusters * size)
    return values, [f"s{i // size}" for i in range(clusters * size)]


def test_the_interval_is_as_wide_as_cluster_robust_standard_errors_say() -> None:
    values, groups = clustered(1)
    ours = estimate(values, groups, scale=ANY)
    fit = sm.OLS(values, np.ones(len(values))).fit(
        cov_type="cluster", cov_kwds={"groups": pd.factorize(np.array(groups))[0]}, use_t=True
    )
    low, high = fit.conf_int()[0]
    assert ours.value == pytest.approx(values.mean())
    assert ours.ci_high - ours.ci_low == pytest.approx(high - low, rel=0.01)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_when_all_values_are_0_or_all_1_the_interval_is_exactly_binomial_over_species(
    value: float,
) -> None:
    ours = estimate([value] * 20, [f"s{i // 2}" for i in range(20)])
    exact = stats.binomtest(int(10 * value), 10).proportion_ci(method="exact")
    assert (ours.ci_low, ours.ci_high) == pytest.approx((exact.low, exact.high))


def test_no_values_and_one_species_give_no_interval() -> None:
    empty, single = estimate([math.nan], ["a"]), estimate([0.2, 0.4], ["a", "a"])
    assert (empty.n, empty.n_failed) == (0, 1)
    assert math.isnan(empty.value)
    assert single.value == pytest.approx(0.3)
    assert math.isnan(single.ci_low)


def test_no_difference_anywhere_is_uncertain_in_both_directions() -> None:
    frame = pd.DataFrame(
        [(f"q{i}", arm, 1, 0.5) for i in range(10) for arm in "ab"],
        columns=["query_id", "retriever", "k", "value"],
    ).assign(group=lambda table: table["query_id"])
    row = paired_differences(frame, arm="retriever", by=["k"], baseline="b").iloc[0]
    assert row["ci_high"] == pytest.approx(
        1 - 0.025 ** (1 / 10)
    )  # no success in ten trials, 97.5 %
    assert (row["value"], row["ci_low"], row["p"]) == (0.0, -row["ci_high"], 1.0)


def test_published_numbers_are_as_printed_in_the_paper() -> None:
    table = published("visual_rag", table=2).set_index(["retriever", "metric", "k"])["value"]
    assert table["CLIP", "recall", 1] == 2.81
    assert table["BGE", "hit", 20] == 79.14
    assert table["VLM2Vec", "ndcg_visual_rag", 30] == 45.93
    assert len(table) == 60


def test_filters_select_published_rows_and_drop_their_columns() -> None:
    arms = {"model": "GPT-4o", "setting": ["zero_shot", "gt_clue"]}
    assert published("visual_rag", 3, **arms)["value"].tolist() == [53.74, 59.81]
    assert list(published("visual_rag", 3, **arms)) == ["k", "metric", "value", "n", "unit"]
    both = published("visual_rag", [14, 16], statistic=["avg", "single"])
    assert set(both["metric"]) == {"rouge"}


def test_published_gains_are_differences_of_published_means() -> None:
    (row,) = (
        published_gains("visual_rag", 3, ["zero_shot"], k=[0, 1], model="GPT-4o")
        .query("setting == 'gt_clue'")
        .itertuples()
    )
    assert (row.value, row.baseline, row.unit) == (6.07, "zero_shot", "percent")


def test_an_unknown_published_table_is_refused_with_the_list() -> None:
    with pytest.raises(VragError, match="visual_rag/table02"):
        published("visual_rag", table=99)
