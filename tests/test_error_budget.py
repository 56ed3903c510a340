"""Every lost point has exactly one cause, and the causes are what they say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vrag_kit.analysis import (
    accuracy_given_clue,
    error_budget,
    error_cases,
    first_clue_rank,
    kinds_of_answers,
    mean_budget,
)
from vrag_kit.retrieval import make_run
from vrag_kit.types import Benchmark, Evidence, Query

KS = (1, 3)


def benchmark(queries: int) -> Benchmark:
    """Each query has a clue "q…-c" and three other images."""
    names = [f"q{i}" for i in range(queries)]
    docs = {q: [f"{q}-c", f"{q}-0", f"{q}-1", f"{q}-2"] for q in names}
    return Benchmark(
        name="b",
        fingerprint="f",
        queries={
            q: Query(query_id=q, text=f"What, {q}?", group=q, answers=("red", "rose"))
            for q in names
        },
        corpus={d: Evidence(doc_id=d) for each in docs.values() for d in each},
        qrels={q: {d: int(d.endswith("c")) for d in each} for q, each in docs.items()},
    )


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
    table = table.assign(
        model="m", draw=0, spread=spread, abstained=0.0, answer="blue", verdict="v", status="ok"
    )
    clues = [(f"{query_id}-c",) for query_id in table["query_id"]]
    return table.assign(group=table["query_id"], doc_ids=clues)


SCORE = st.sampled_from([0.0, 0.5, 1.0])


@given(
    st.lists(
        st.tuples(st.sampled_from([None, 1, 2, 3]), SCORE, SCORE, SCORE), min_size=1, max_size=8
    )
)
@settings(max_examples=60, deadline=None)
def test_the_causes_add_up_to_what_is_lost(
    cases: list[tuple[int | None, float, float, float]],
) -> None:
    b, run = benchmark(len(cases)), ranked([rank for rank, *_ in cases])
    retrieved = judged(
        [
            (f"q{i}", "top_k", k, score)
            for i, (_, *scores, _) in enumerate(cases)
            for k, score in zip(KS, scores, strict=True)
        ]
    )
    alone = judged(
        [
            (f"q{i}", "gt_clue", 1, score)
            for i, (rank, *_, score) in enumerate(cases)
            if rank is not None
        ]
    )
    budget = error_budget(retrieved, alone, b, run)
    assert (budget["value"] >= 0).all()
    total = budget.groupby(["query_id", "k"])["value"].sum()
    for row in retrieved.itertuples():
        assert total[row.query_id, row.k] == pytest.approx(1 - row.score)
    for i, (rank, *scores, single) in enumerate(cases):  # the slow obvious version
        for k, score in zip(KS, scores, strict=True):
            found = budget[(budget["query_id"] == f"q{i}") & (budget["k"] == k)].set_index("cause")[
                "value"
            ]
            there = rank is not None and rank <= k
            assert found["no clue retrieved"] == (0 if there else 1 - score)
            assert found["clue misread even alone"] == (min(1 - score, 1 - single) if there else 0)
            assert found["clue ignored or contradicted"] == pytest.approx(
                max(0, single - score) if there else 0
            )


def test_where_verdicts_differ_the_judge_is_in_doubt() -> None:
    b, run = benchmark(2), ranked([1, None])
    retrieved = judged([("q0", "top_k", 1, 0.25), ("q1", "top_k", 1, 0.25)], spread=0.5)
    budget = error_budget(retrieved, judged([("q0", "gt_clue", 1, 1.0)]), b, run)
    assert (
        budget[budget["value"] > 0][["cause", "value"]].to_numpy().tolist()
        == [["judge in doubt", 0.75]] * 2
    )


def test_without_a_verdict_nobody_knows_and_it_is_counted() -> None:
    b, run = benchmark(3), ranked([1, 1, None])
    retrieved = judged(
        [("q0", "top_k", 1, np.nan), ("q1", "top_k", 1, 0.0), ("q2", "top_k", 1, 0.0)]
    )
    alone = judged([("q0", "gt_clue", 1, 1.0), ("q1", "gt_clue", 1, np.nan)])
    means = mean_budget(error_budget(retrieved, alone, b, run)).set_index("cause")
    assert (means["n"] == 1).all()
    assert (means["n_failed"] == 2).all()
    assert means.loc["no clue retrieved", "value"] == 1.0


def test_the_rank_of_the_first_clue_is_missing_where_there_is_none() -> None:
    assert list(first_clue_rank(benchmark(3), ranked([2, None, 1])).fillna(0)) == [2, 0, 1]


def test_accuracy_with_and_without_a_clue_is_of_different_questions_and_says_how_many() -> None:
    b, run = benchmark(3), ranked([1, 3, None])
    retrieved = judged(
        [(f"q{i}", "top_k", k, score) for i, score in enumerate([1.0, 0.5, 0.0]) for k in KS]
    )
    table = accuracy_given_clue(retrieved, b, run).set_index(["k", "clue"])
    assert table[["value", "n"]].to_dict("index") == {
        (1, "yes"): {"value": 1.0, "n": 1},
        (1, "no"): {"value": 0.25, "n": 2},
        (3, "yes"): {"value": 0.75, "n": 2},
        (3, "no"): {"value": 0.0, "n": 1},
    }


def test_error_cases_are_the_answers_not_fully_right_once_each_wrong_ones_first() -> None:
    b = benchmark(3)
    table = judged(
        [
            ("q0", "gt_clue", 1, 0.5),
            ("q1", "gt_clue", 1, 0.0),
            ("q2", "gt_clue", 1, 1.0),
            ("q0", "zero_shot", 0, 0.0),
        ]
    )
    table = pd.concat(
        [
            table,
            table.iloc[[1]].assign(draw=1),
            table.iloc[[1]].assign(draw=2, answer="I don't know", abstained=1.0),
            table.iloc[[0]].assign(draw=3, score=np.nan),
        ]
    )
    cases = error_cases(table, b)
    assert cases[["query_id", "kind", "draw"]].to_numpy().tolist() == [
        ["q1", "wrong", 0],
        ["q1", "declined", 2],
        ["q0", "partly right", 0],
    ]
    assert cases.loc[0, ["question", "references", "doc_ids"]].tolist() == [
        "What, q1?",
        "red | rose",
        ("q1-c",),
    ]
    assert error_cases(table[table["score"] == 1], b).empty


def test_the_kinds_of_answers_add_up_to_one() -> None:
    table = judged(
        [
            ("q0", "gt_clue", 1, 1.0),
            ("q1", "gt_clue", 1, 0.5),
            ("q2", "gt_clue", 1, 0.0),
            ("q2", "gt_clue", 1, np.nan),
        ]
    )
    kinds = kinds_of_answers(table)
    assert kinds["value"].sum() == pytest.approx(1)
    assert set(kinds["n"]) == {3}
    assert dict(zip(kinds["kind"], kinds["value"].round(3), strict=True)) == {
        "right": 0.333,
        "partly right": 0.333,
        "declined": 0.0,
        "wrong": 0.333,
    }
