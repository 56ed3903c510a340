"""The parts of what is lost add up, and are what they say; chance is in none of them."""

from __future__ import annotations

from itertools import product
from typing import Any

import factories
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vrag_kit.analysis import cluster_means
from vrag_kit.papers.visual_rag.error_budget import (
    ALONE_PROMPTS,
    JUDGE_NOISE,
    PARTS,
    error_budget,
    first_clue_rank,
)
from vrag_kit.retrieval import make_run

KS = (1, 3)
CLUES = ("first_clue", "gt_clue")
SCORE = st.sampled_from([0.0, 0.25, 1.0])
CASE = st.fixed_dictionaries(
    {
        "rank": st.sampled_from([np.nan, 1, 2, 3]),
        "scores": st.tuples(SCORE, SCORE),
        "first_clue": st.tuples(SCORE, SCORE),
        "gt_clue": st.tuples(SCORE, SCORE),
    }
)
Case = dict[str, Any]  # Any: what `CASE` draws


def mean(budget: pd.DataFrame) -> pd.DataFrame:
    return cluster_means(budget, ["model", "k", "part", "metric"])


def retrieved(k: int, *scores: float, **columns: Any) -> pd.DataFrame:
    """Judged top-k answers to q0, q1, …"""
    return factories.judged(
        score=scores, **{"setting": "top_k", "k": k, "spread": np.nan, **columns}
    )


def alone(*scores: float) -> pd.DataFrame:
    """The same scores for both clues in both prompts, one a query."""
    arms = dict.fromkeys(product(CLUES, ALONE_PROMPTS), scores)
    return factories.judged_arms(arms, ["setting", "prompt"])


def ranks(*places: float) -> pd.Series:
    return pd.Series(places, [f"q{number}" for number in range(len(places))])


def budget_of(cases: list[Case]) -> pd.DataFrame:
    """The budget of each case's question; a clue is found alone only where the run has one."""
    answers = [retrieved(k, *[case["scores"][at] for case in cases]) for at, k in enumerate(KS)]
    tables = []
    for setting, (at, prompt) in product(CLUES, enumerate(ALONE_PROMPTS)):
        table = factories.judged(score=[case[setting][at] for case in cases], setting=setting)
        found = [setting == "gt_clue" or case["rank"] > 0 for case in cases]
        tables.append(table[found].assign(prompt=prompt))
    places = ranks(*[case["rank"] for case in cases])
    return error_budget(pd.concat(answers), pd.concat(tables), places)


def by_steps(case: Case, place: int) -> dict[str, float]:
    """What each part of one answer is, step by step."""
    k, score = KS[place], case["scores"][place]
    lost = dict.fromkeys(PARTS, 0.0)
    if case["rank"] <= k:
        one, several = case["first_clue"]
        if k == 1:  # it is alone, in this prompt
            several = score
        lost["misread"] = 1 - one
        lost["clue retrieved: prompt for several images, net"] = one - several
        lost["distractors"] = several - score
    else:
        helped = case["gt_clue"][place]
        lost["missed_gain"] = helped - score
        lost["missed_lost"] = 1 - helped
    if k == 1:
        del lost["distractors"]
    return lost


@pytest.mark.slow
@given(st.lists(CASE, min_size=1, max_size=6))
@settings(max_examples=25, deadline=None)
def test_each_part_is_one_answer_minus_another_and_they_add_up(cases):
    budget = budget_of(cases)
    found = dict(list(budget.groupby(["query_id", "k"])))
    means = mean(budget).groupby("k")["value"].sum()
    for place, k in enumerate(KS):
        for i, case in enumerate(cases):
            parts = found[f"q{i}", k].set_index("part")["value"]
            assert parts.to_dict() == pytest.approx(by_steps(case, place))
            assert parts.sum() == pytest.approx(1 - case["scores"][place])
        assert means[k] == pytest.approx(1 - np.mean([case["scores"][place] for case in cases]))


def test_the_best_ranked_clue_has_its_rank_from_1():
    world = factories.benchmark("ab", "cde", {name: {"c": 0, "d": 1, "e": 1} for name in "ab"})
    run = make_run([("a", "c", 3.0), ("a", "e", 2.0), ("a", "d", 1.0), ("b", "c", 1.0)])
    assert first_clue_rank(world, run).fillna(0).to_dict() == {"a": 2, "b": 0}


def test_one_prompt_has_no_part_of_its_own_and_an_arm_that_lacks_is_named():
    answers, single = retrieved(3, 0.25, 0.0), alone(1.0, 0.5).query("prompt == 'one image'")
    budget = error_budget(answers, single, ranks(2, np.nan), one_prompt=True)
    means = mean(budget).set_index("part")["value"]
    # q0 loses 0.75 among distractors; of q1 half would be gained by a clue
    expected = {"missed_gain": 0.25, "missed_lost": 0.25, "misread": 0.0, "distractors": 0.375}
    assert means.to_dict() == expected
    with pytest.raises(KeyError, match="first_clue in several images"):
        error_budget(answers, single, ranks(2, np.nan))


def test_the_doubt_of_the_judge_is_told_apart_and_takes_no_points_from_the_parts():
    single, places = alone(1.0, 1.0), ranks(1, np.nan)
    sure = error_budget(retrieved(3, 0.25, 0.25), single, places)
    budget = error_budget(retrieved(3, 0.25, 0.25, spread=0.1), single, places)
    assert JUDGE_NOISE not in set(sure["part"])  # one verdict tells nothing about it
    pd.testing.assert_frame_equal(budget.query("metric == 'accuracy_lost'"), sure)
    (row,) = mean(budget).query("part == @JUDGE_NOISE").to_dict("records")
    assert (row["metric"], row["value"], row["n"]) == ("spread", pytest.approx(0.1), 2)


def test_all_panels_and_ks_are_about_the_same_questions():
    tables = [retrieved(k, 0.0, 0.0, 0.0, model=model) for model, k in product("mn", KS)]
    tables[-1].loc[0, "score"] = np.nan
    tables.append(retrieved(20, *[np.nan] * 3))  # too many images for this model
    single = pd.concat([alone(1.0, 1.0, 1.0).assign(model=model) for model in "mn"])
    means = mean(error_budget(pd.concat(tables), single, ranks(1, 1, 1)))
    counts = means.groupby(["model", "k"])["n"].first()
    assert counts.to_dict() == {("m", 1): 2, ("m", 3): 2, ("m", 20): 0, ("n", 1): 2, ("n", 3): 2}
