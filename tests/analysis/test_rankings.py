"""Several models at once: simultaneous intervals of all pairs, and the ranks that they allow."""

from __future__ import annotations

import numpy as np
import pandas as pd
from factories import judged_arms
from statsmodels.stats.multitest import multipletests

from vrag_kit.analysis import all_pairs, paired_differences, per_query, rank_intervals

BY = ["setting", "k"]


def scores(*shares: float, n: int = 60, seed: int = 0) -> pd.DataFrame:
    """Answers of one model for each share of correct ones, at random."""
    random = np.random.default_rng(seed)
    return judged_arms(
        {(f"m{i}", "top_k", 1): random.binomial(1, share, n) for i, share in enumerate(shares)}
    )


def test_two_models_have_the_interval_of_their_paired_difference():
    judged = scores(0.7, 0.4)
    (pair,) = all_pairs(judged).itertuples()
    (single,) = paired_differences(
        per_query(judged), arm="model", by=BY, baseline="m1"
    ).itertuples()
    assert (pair.value, pair.ci_low, pair.ci_high) == (single.value, single.ci_low, single.ci_high)


def test_an_interval_excludes_zero_where_bonferroni_rejects():
    pairs = all_pairs(scores(0.8, 0.5, 0.45, 0.2))
    rejected, *_ = multipletests(pairs["p"], alpha=0.05, method="bonferroni")
    assert list((pairs["ci_low"] > 0) | (pairs["ci_high"] < 0)) == list(rejected)
    assert 0 < rejected.sum() < len(pairs) == 6


def test_ranks_are_those_that_the_intervals_leave_open():
    found = [("a", "b", 0.1, 0.5), ("a", "c", 0.2, 0.6), ("b", "c", -0.1, 0.3)]
    pairs = pd.DataFrame(found, columns=["a", "b", "ci_low", "ci_high"]).assign(setting="s", k=1)
    ranks = rank_intervals(pairs).set_index("arm")[["rank_low", "rank_high"]]
    assert ranks.T.to_dict("list") == {"a": [1, 1], "b": [2, 3], "c": [2, 3]}


def test_one_model_has_no_pair_and_a_missing_verdict_is_counted():
    assert all_pairs(scores(0.5)).empty
    judged = scores(0.6, 0.4, n=10)
    judged.loc[3, "score"] = np.nan
    assert all_pairs(judged)[["n", "n_failed"]].to_numpy().tolist() == [[9, 1]]
