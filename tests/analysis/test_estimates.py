"""Intervals and paired tests agree with other libraries and with hand calculations;
published numbers are as printed.
"""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.multitest import multipletests

from vrag_kit.analysis import (
    change_from_smallest_k,
    paired_differences,
)
from vrag_kit.analysis.agreement import association
from vrag_kit.analysis.comparisons import holm
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


def test_values_that_are_missing_are_counted_and_left_out() -> None:
    ours = estimate([1.0, 0.0, math.nan, 1.0], ["a", "b", "c", "d"])
    assert (ours.value, ours.n, ours.n_failed) == (pytest.approx(2 / 3), 3, 1)


def test_no_values_and_one_species_give_no_interval() -> None:
    empty, single = estimate([math.nan], ["a"]), estimate([0.2, 0.4], ["a", "a"])
    assert (empty.n, empty.n_failed) == (0, 1)
    assert math.isnan(empty.value)
    assert single.value == pytest.approx(0.3)
    assert math.isnan(single.ci_low)


def test_lengths_that_differ_are_refused() -> None:
    with pytest.raises(VragError, match="2 values but 1 groups"):
        estimate([1.0, 2.0], ["a"])


@pytest.mark.parametrize("rows", [1, 2, 7, 50])
def test_holms_correction_is_that_of_statsmodels(rows: int) -> None:
    p = np.random.default_rng(rows).random(rows).round(1) ** 3  # some are equal
    np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1], rtol=1e-12)


@contextmanager
def at_most(megabytes: float) -> Iterator[None]:
    """What runs inside allocates no more than this at a time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < megabytes * 2**20
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_number_of_clusters() -> None:
    names = [f"g{n}" for n in range(5_000)]
    values = np.random.default_rng(0).random(5_000)
    frame = pd.DataFrame({"query_id": names, "group": names, "value": values, "k": 1})
    both = pd.concat([frame.assign(arm="a"), frame.assign(arm="b", value=0.5)])
    with at_most(160):  # 5,000 clusters by as many would be 200 MB, 4,000 draws 160 MB
        estimate(values, names)
        paired_differences(both, arm="arm", by=["k"], baseline="b")
        association(values.round(1), values.round(1), names, measure="kappa")


def test_differences_use_only_the_queries_that_both_have() -> None:
    frame = pd.DataFrame(
        [("q1", "a", 1, 1.0), ("q1", "b", 1, 0.0), ("q2", "a", 1, 1.0), ("q2", "b", 1, math.nan)],
        columns=["query_id", "retriever", "k", "value"],
    ).assign(group=lambda table: table["query_id"])
    table = paired_differences(frame, arm="retriever", by=["k"], baseline="b")
    assert (table["n"].iloc[0], table["value"].iloc[0]) == (1, 1.0)


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


def test_two_models_are_compared_at_each_k_and_by_what_they_lose_over_k() -> None:
    scores = {  # by query, at k = 1 and k = 3
        "many": {"a": (1.0, 1.0), "b": (0.0, 0.5), "c": (0.5, 0.0), "d": (1.0, 0.5)},
        "few": {"a": (1.0, 0.0), "b": (0.5, 0.0), "c": (0.5, 0.0), "d": (0.0, math.nan)},
    }
    values = pd.DataFrame(
        [
            (model, "one_in_k", k, query, query, value)
            for model, queries in scores.items()
            for query, pair in queries.items()
            for k, value in zip((1, 3), pair, strict=True)
        ],
        columns=["model", "setting", "k", "query_id", "group", "value"],
    )
    at_each = paired_differences(values, arm="model", by=["setting", "k"], baseline="few")
    # k = 1: 0, −0.5, 0, 1 over four; k = 3: 1, 0.5, 0, and no answer of one of them
    assert at_each[["model", "k", "value", "n"]].to_numpy().tolist() == [
        ["many", 1, 0.125, 4],
        ["many", 3, 0.5, 3],
    ]
    changes = change_from_smallest_k(values)
    assert set(changes["k"]) == {3}
    assert set(zip(changes["score_min"], changes["score_max"], strict=True)) == {(-1.0, 1.0)}
    (lost,) = paired_differences(changes, arm="model", by=["k"], baseline="few").itertuples()
    # many: 0, 0.5, −0.5; few: −1, −0.5, −0.5; differences 1, 1, 0
    assert (lost.value, lost.n) == (pytest.approx(2 / 3), 3)
    alone = paired_differences(
        values.query("model == 'few'"), arm="model", by=["k"], baseline="few"
    )
    assert alone.empty


def test_an_unknown_published_table_is_refused_with_the_list() -> None:
    with pytest.raises(VragError, match="visual_rag/table02"):
        published("visual_rag", table=99)
