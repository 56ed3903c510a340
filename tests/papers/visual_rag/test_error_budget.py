"""The parts of what is lost add up, and are what they say; chance is in none of them."""

from __future__ import annotations

from itertools import chain
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
from vrag_kit.types import Benchmark, Query

KS = (1, 3)


def mean(budget: pd.DataFrame) -> pd.DataFrame:
    return cluster_means(budget, ["model", "k", "part", "metric"])


def benchmark(queries: int) -> Benchmark:
    """Each query has a clue "q…-c" and three other images."""
    docs = {f"q{i}": [f"q{i}-{end}" for end in "c012"] for i in range(queries)}
    asked = [Query(query_id=q, text=f"What, {q}?", group=q, answers=("red", "rose")) for q in docs]
    labels = {q: {d: int(d.endswith("c")) for d in each} for q, each in docs.items()}
    return factories.benchmark(asked, chain.from_iterable(docs.values()), labels)


def ranked(ranks: list[int | None]) -> pd.DataFrame:
    """A run of depth 3 with each query's clue at its rank, or nowhere."""
    rows = []
    for i, rank in enumerate(ranks):
        others = [f"q{i}-{j}" for j in range(3)]
        order = others if rank is None else [*others[: rank - 1], f"q{i}-c", *others[rank - 1 : 2]]
        rows += [(f"q{i}", doc_id, 1.0 - 0.1 * place) for place, doc_id in enumerate(order)]
    return make_run(rows)


def judged(rows: list[tuple[str, str, int, float]], spread: float = np.nan) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["query_id", "setting", "k", "score"])
    table = factories.judged(**table, spread=spread, answer="blue", verdict="v")
    return table.assign(doc_ids=[(f"{query_id}-c",) for query_id in table["query_id"]])


def alone(prompt: str, setting: str, scores: dict[str, float]) -> pd.DataFrame:
    """Judged answers to one clue alone: query → score."""
    rows = [(query_id, setting, 1, score) for query_id, score in scores.items()]
    return judged(rows).assign(prompt=prompt)


def everywhere(*scores: float) -> pd.DataFrame:
    """The same scores for both clues in both wordings, one a query."""
    by_query = {f"q{i}": score for i, score in enumerate(scores)}
    return pd.concat(
        [alone(prompt, setting, by_query) for prompt in ALONE_PROMPTS for setting in CLUES]
    )


CLUES = ("first_clue", "gt_clue")
SCORE = st.sampled_from([0.0, 0.25, 1.0])
CASE = st.fixed_dictionaries(
    {
        "rank": st.sampled_from([None, 1, 2, 3]),
        "scores": st.tuples(SCORE, SCORE),
        "first_clue": st.tuples(SCORE, SCORE),
        "gt_clue": st.tuples(SCORE, SCORE),
    }
)
Case = dict[str, Any]  # Any: what `CASE` draws


def budget_of(cases: list[Case]) -> pd.DataFrame:
    """The budget of each case's question; a clue is found alone only where the run has
    one.
    """
    by_query = {f"q{i}": case for i, case in enumerate(cases)}
    rows = []
    for name, case in by_query.items():
        rows += [(name, "top_k", k, score) for k, score in zip(KS, case["scores"], strict=True)]
    have = {name: case for name, case in by_query.items() if case["rank"] is not None}
    tables = []
    for place, prompt in enumerate(ALONE_PROMPTS):
        for kind, some in (("first_clue", have), ("gt_clue", by_query)):
            scores = {name: case[kind][place] for name, case in some.items()}
            tables.append(alone(prompt, kind, scores))
    ranks = first_clue_rank(benchmark(len(cases)), ranked([case["rank"] for case in cases]))
    return error_budget(judged(rows), pd.concat(tables), ranks)


def by_steps(case: Case, place: int) -> dict[str, float]:
    """What each part of one answer is, step by step."""
    k, score = KS[place], case["scores"][place]
    lost = dict.fromkeys(PARTS, 0.0)
    if case["rank"] is None or case["rank"] > k:
        helped = case["gt_clue"][0 if k == 1 else 1]
        lost["missed_gain"] = helped - score
        lost["missed_lost"] = 1 - helped
    else:
        one, several = case["first_clue"]
        if k == 1:  # it is alone, in this prompt
            several = score
        lost["misread"] = 1 - one
        lost["clue retrieved: prompt for several images, net"] = one - several
        lost["distractors"] = several - score
    if k == 1:
        del lost["distractors"]
    return lost


@pytest.mark.slow
@given(st.lists(CASE, min_size=1, max_size=6))
@settings(max_examples=25, deadline=None)
def test_each_part_is_one_answer_minus_another_and_they_add_up(cases: list[Case]) -> None:
    budget = budget_of(cases)
    found = dict(list(budget.groupby(["query_id", "k"])))
    means = mean(budget).groupby("k")["value"].sum()
    for place, k in enumerate(KS):
        for i, case in enumerate(cases):
            parts = found[f"q{i}", k].set_index("part")["value"]
            assert parts.to_dict() == pytest.approx(by_steps(case, place))
            assert parts.sum() == pytest.approx(1 - case["scores"][place])
        assert means[k] == pytest.approx(1 - np.mean([case["scores"][place] for case in cases]))


def test_one_prompt_has_no_part_of_its_own_and_an_arm_that_lacks_is_named() -> None:
    ranks = first_clue_rank(benchmark(2), ranked([2, None]))
    assert ranks.fillna(0).tolist() == [2, 0]
    retrieved = judged([("q0", "top_k", 3, 0.25), ("q1", "top_k", 3, 0.0)])
    single, one = everywhere(1.0, 0.5), "prompt == 'one image'"
    budget = error_budget(retrieved, single.query(one), ranks, one_prompt=True)
    means = mean(budget).set_index("part")["value"]
    # q0 loses 0.75 among distractors; of q1 half would be gained by a clue
    expected = {"missed_gain": 0.25, "missed_lost": 0.25, "misread": 0.0, "distractors": 0.375}
    assert means.to_dict() == expected
    with pytest.raises(KeyError, match="first_clue in several images"):
        error_budget(retrieved, single.query(one), ranks)


def test_the_doubt_of_the_judge_is_told_apart_and_takes_no_points_from_the_parts() -> None:
    ranks = first_clue_rank(benchmark(2), ranked([1, None]))
    retrieved = judged([("q0", "top_k", 3, 0.25), ("q1", "top_k", 3, 0.25)], spread=0.1)
    sure = error_budget(retrieved.assign(spread=np.nan), everywhere(1.0, 1.0), ranks)
    budget = error_budget(retrieved, everywhere(1.0, 1.0), ranks)
    assert JUDGE_NOISE not in set(sure["part"])  # one verdict tells nothing about it
    pd.testing.assert_frame_equal(budget.query("metric == 'accuracy_lost'"), sure)
    (row,) = mean(budget).query("part == @JUDGE_NOISE").to_dict("records")
    assert (row["metric"], row["value"], row["n"]) == ("spread", pytest.approx(0.1), 2)


def test_all_panels_and_ks_are_about_the_same_questions() -> None:
    ranks = first_clue_rank(benchmark(3), ranked([1, 1, 1]))
    rows = [(f"q{i}", "top_k", k, 0.0) for i in range(3) for k in KS]
    first, second = judged(rows), judged(rows).assign(model="n")
    second.loc[second["query_id"].eq("q0") & second["k"].eq(3), "score"] = np.nan
    silent = judged([(f"q{i}", "top_k", 20, np.nan) for i in range(3)])  # too many for it
    single = pd.concat([everywhere(1.0, 1.0, 1.0).assign(model=model) for model in "mn"])
    means = mean(error_budget(pd.concat([first, second, silent]), single, ranks))
    assert means.groupby(["model", "k"])["n"].first().to_dict() == {
        ("m", 1): 2,
        ("m", 3): 2,
        ("m", 20): 0,
        ("n", 1): 2,
        ("n", 3): 2,
    }
