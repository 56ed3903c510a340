"""Metrics agree with trec_eval, with scikit-learn, with hand calculations, and with
brute force.
"""

from __future__ import annotations

import itertools
import math

import factories
import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from vrag_kit.analysis import cluster_means, to_percent
from vrag_kit.errors import VragError
from vrag_kit.papers.visual_rag.replication import compare_retrieval_to_paper
from vrag_kit.retrieval import METRICS, ORACLE, evaluate, make_run, mean_metrics, score_runs
from vrag_kit.retrieval.metrics import CUTOFFS, oracle_run, random_baseline
from vrag_kit.types import Benchmark

Labels = dict[str, dict[str, int]]
Scores = dict[str, dict[str, float]]


def value(table: pd.DataFrame, query_id: str, metric: str, k: int) -> float:
    return float(
        table[(table["query_id"] == query_id) & (table["metric"] == metric) & (table["k"] == k)][
            "value"
        ].iloc[0]
    )


def run_of(scores: Scores) -> pd.DataFrame:
    return make_run(
        (query, doc, score) for query, docs in scores.items() for doc, score in docs.items()
    )


def label_orders(pool: int, relevant: int) -> list[list[int]]:
    """One order for every placement of the relevant documents; all are equally likely."""
    orders = []
    for places in itertools.combinations(range(pool), relevant):
        good, rest = iter(range(relevant)), iter(range(relevant, pool))
        orders.append([next(good) if place in places else next(rest) for place in range(pool)])
    return orders


@st.composite
def judged_runs(draw: st.DrawFn, top_label: int = 1) -> tuple[Labels, Scores]:
    """Two queries over up to 50 documents; few distinct scores, so that ties are
    everywhere.
    """
    docs = [f"d{i:02d}" for i in range(draw(st.integers(1, 50)))]
    labels = {q: {d: draw(st.integers(0, top_label)) for d in docs} for q in ("q1", "q2")}
    scores = {
        q: {d: draw(st.sampled_from([0.0, 0.25, 0.5, 1.0])) for d in draw(st.permutations(docs))}
        for q in ("q1", "q2")
    }
    return labels, scores


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(judged_runs(top_label=3))
def test_recall_hit_and_ndcg_agree_with_trec_eval_ties_included(
    case: tuple[Labels, Scores],
) -> None:
    labels, scores = case
    ours = evaluate(run_of(scores), labels)
    names = {"recall": "recall", "hit": "success", "ndcg": "ndcg_cut"}
    theirs = pytrec_eval.RelevanceEvaluator(
        labels, {f"{name}.{','.join(map(str, CUTOFFS))}" for name in names.values()}
    ).evaluate(scores)
    for query, metric, k in itertools.product(labels, names, CUTOFFS):
        got = value(ours, query, metric, k)
        if any(labels[query].values()):
            assert got == pytest.approx(theirs[query][f"{names[metric]}_{k}"], abs=1e-9), (
                metric,
                k,
            )
        else:
            assert math.isnan(got)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 1), min_size=30, max_size=60), st.randoms(use_true_random=False))
def test_visual_rag_ndcg_is_scikit_learns_on_the_same_30(
    relevance: list[int], random: object
) -> None:
    scores = np.linspace(1, 0, len(relevance))
    labels = {"q": {f"d{i:02d}": r for i, r in enumerate(relevance)}}
    ours = evaluate(run_of({"q": {f"d{i:02d}": s for i, s in enumerate(scores)}}), labels)
    for k in CUTOFFS:
        got = value(ours, "q", "ndcg_visual_rag", k)
        if not any(relevance):
            assert math.isnan(got)
        else:  # scikit-learn gives 0 when none of the 30 is relevant, as we do
            assert got == pytest.approx(ndcg_score([relevance[:30]], [scores[:30]], k=k), abs=1e-9)


def test_a_case_worked_by_hand() -> None:
    # ranked: b (1), x (0), a (1), 27 others (0), c (1); relevant: a, b, c
    ranked = ["b", "x", "a", *(f"y{i}" for i in range(27)), "c"]
    labels = {"q": {name: int(name in "abc") for name in ranked}}
    scores = {name: -float(place) for place, name in enumerate(ranked)}
    table = evaluate(run_of({"q": scores}), labels, cutoffs=(1, 3))
    assert value(table, "q", "recall", 3) == pytest.approx(2 / 3)
    assert value(table, "q", "hit_count", 3) == 2
    # DCG@3 = 1/log2(2) + 1/log2(4) = 1.5; best of all three = 1 + 0.63093 + 0.5; best of the
    # retrieved two = 1 + 0.63093
    assert value(table, "q", "ndcg", 3) == pytest.approx(1.5 / 2.1309297536)
    assert value(table, "q", "ndcg_visual_rag", 3) == pytest.approx(1.5 / 1.6309297536)


def test_a_run_that_is_too_shallow_for_its_ideal_has_no_value_however_good_it_is() -> None:
    labels = {"q": {f"d{i:02d}": int(i % 5 == 0) for i in range(40)}}
    scores = {f"d{i:02d}": -float(i) for i in range(40)}
    for deep in (1, 12, 29, 30, 40):
        run = run_of({"q": dict(list(scores.items())[:deep])})
        table = evaluate(run, labels, cutoffs=(1, 5, 12))
        for k in (1, 5, 12):
            got = value(table, "q", "ndcg_visual_rag", k)
            if deep < 30:  # the best order of the 30 that were not all retrieved is not known
                assert math.isnan(got), (deep, k)
            else:
                best = ndcg_score([[i % 5 == 0 for i in range(30)]], [[-i for i in range(30)]], k=k)
                assert got == pytest.approx(best, abs=1e-9)
        assert value(table, "q", "recall", 1) == 1 / 8
    means = mean_metrics(evaluate(run_of({"q": {"d00": 1.0}}), labels, cutoffs=(1,)))
    (row,) = means[means["metric"] == "ndcg_visual_rag"].to_dict("records")
    assert (math.isnan(row["value"]), row["n"]) == (True, 0)


def test_a_small_pool_that_is_wholly_ranked_and_a_query_without_results_keep_their_values() -> None:
    labels = {"small": {"a": 0, "b": 1, "c": 0}, "none": {f"d{i}": 1 for i in range(40)}}
    table = evaluate(run_of({"small": {"a": 3.0, "b": 2.0, "c": 1.0}}), labels, cutoffs=(3,))
    assert value(table, "small", "ndcg_visual_rag", 3) == pytest.approx(1 / math.log2(3))
    assert value(table, "none", "ndcg_visual_rag", 3) == 0
    table = evaluate(run_of({"small": {"a": 3.0, "b": 2.0}}), labels, cutoffs=(3,))
    assert math.isnan(value(table, "small", "ndcg_visual_rag", 3))


def test_a_perfect_run_scores_its_bound() -> None:
    labels = {"q": {f"d{i}": int(i < 7) for i in range(40)}}
    table = evaluate(oracle_run(labels), labels)
    for k in CUTOFFS:
        assert value(table, "q", "ndcg", k) == pytest.approx(1.0)
        assert value(table, "q", "ndcg_visual_rag", k) == pytest.approx(1.0)
        assert value(table, "q", "recall", k) == pytest.approx(min(k, 7) / 7)
        assert value(table, "q", "hit_count", k) == min(k, 7)


def test_without_relevant_documents_a_query_is_left_out_without_results_it_is_zero() -> None:
    labels = {"answered": {"a": 1}, "empty": {"a": 0}, "missing": {"a": 1}}
    means = mean_metrics(
        evaluate(run_of({"answered": {"a": 1.0}, "empty": {"a": 1.0}}), labels, cutoffs=(1,))
    ).set_index("metric")
    assert (means.loc["recall", "value"], means.loc["recall", "n"]) == (0.5, 2)


def test_a_run_of_other_queries_is_refused() -> None:
    with pytest.raises(VragError, match=r"share no query: the run has 'x'.*the labels have 'q'"):
        evaluate(run_of({"x": {"a": 1.0}}), {"q": {"a": 1}})
    with pytest.raises(VragError, match="1 or more"):
        evaluate(run_of({"q": {"a": 1.0}}), {"q": {"a": 1}}, cutoffs=(0,))


@pytest.mark.parametrize(("pool", "relevant"), [(6, 1), (6, 3), (7, 6), (5, 5), (36, 2)])
def test_the_random_reference_is_the_mean_over_every_order(pool: int, relevant: int) -> None:
    labels, cutoffs = {f"d{i}": int(i < relevant) for i in range(pool)}, (1, 2, 5)
    orders = {  # each is a query of its own
        f"q{n}": {f"d{i}": -place for place, i in enumerate(order)}
        for n, order in enumerate(label_orders(pool, relevant))
    }
    each = evaluate(run_of(orders), dict.fromkeys(orders, labels), cutoffs=cutoffs)
    reference = random_baseline({"q": labels}, {"q": pool}, cutoffs=cutoffs)
    ours = reference.set_index(["metric", "k"])["value"]
    for key, mean in each.groupby(["metric", "k"])["value"].mean().items():
        assert ours[key] == pytest.approx(mean, abs=1e-9), key


def test_a_perfect_run_of_k_is_the_head_of_the_whole_one(guide: Benchmark) -> None:
    whole = oracle_run(guide.qrels)
    head = whole[whole["rank"] <= 3].reset_index(drop=True)
    pd.testing.assert_frame_equal(oracle_run(guide.qrels, 3), head)


def test_a_random_order_is_one_of_the_documents_that_a_query_may_find() -> None:
    """One relevant document, of four; of three without an excluded one; of two in a pool of
    three without it. Its first two ranks hold it with twice the probability.
    """
    excluded = {"three": frozenset("d"), "two": frozenset("d")}
    labels = {query_id: {"a": 1} for query_id in ("four", "three", "two")}
    chances = {"four": 1 / 4, "three": 1 / 3}
    for pools in (None, {"four": tuple("abcd"), "three": tuple("abcd"), "two": tuple("abd")}):
        small = factories.benchmark(labels, "abcd", labels, left_out=excluded, pools=pools)
        values = score_runs(small, {}, cutoffs=(1, 2)).query("retriever == 'random order'")
        values = values.set_index(["query_id", "metric", "k"])["value"]
        for query_id, chance in {**chances, "two": 1 / 2 if pools else 1 / 3}.items():
            for metric in ("recall", "hit", "hit_count"):
                assert values[query_id, metric, 1] == pytest.approx(chance)
                assert values[query_id, metric, 2] == pytest.approx(2 * chance)


def test_the_random_reference_refuses_graded_labels() -> None:
    with pytest.raises(VragError, match="graded labels"):
        random_baseline({"q": {"a": 2}}, {"q": 5})


def test_scores_carry_the_group_of_their_query(guide: Benchmark) -> None:
    scores = score_runs(guide, {"perfect": oracle_run(guide.qrels)})
    assert list(scores["group"]) == [guide.queries[name].group for name in scores["query_id"]]
    columns = "retriever query_id group metric k value score_min score_max attainable"
    assert list(scores.columns) == columns.split()
    assert scores["value"].between(scores["score_min"], scores["score_max"]).all()
    counts = scores.query("metric == 'hit_count' and k == 20")
    clues = {name: len(guide.relevant(name)) for name in guide.queries}
    assert list(counts["attainable"]) == [min(20, clues[name]) for name in counts["query_id"]]
    assert (scores.query("metric != 'hit_count'")["attainable"] == 1).all()


def test_the_interval_of_a_count_ends_at_what_there_is_to_count(guide: Benchmark) -> None:
    """All clues are found but one: among 30 pictures there is room for more than there are."""
    whole = oracle_run(guide.qrels, 30)
    run = whole.drop(index=whole.index[0])
    run["rank"] = run.groupby("query_id").cumcount() + 1
    scores = score_runs(guide, {"nearly": run}, cutoffs=(1, 30))
    means = cluster_means(scores, ["retriever", "metric", "k"]).set_index(
        ["retriever", "metric", "k"]
    )
    there_are = np.mean([min(30, len(guide.relevant(name))) for name in guide.queries])
    assert there_are < 30
    found = means.loc["nearly", "hit_count", 30]
    assert found["value"] == pytest.approx(there_are - 1 / len(guide.queries))
    assert found["ci_low"] < found["value"] < found["ci_high"] <= there_are
    perfect = means.loc[ORACLE, "hit_count", 30]
    assert perfect["ci_high"] == pytest.approx(perfect["value"]) == pytest.approx(there_are)
    # of one picture there is one hit or none, as of a share
    numbers = ["value", "ci_low", "ci_high", "n"]
    assert list(means.loc["nearly", "hit_count", 1][numbers]) == pytest.approx(
        list(means.loc["nearly", "hit", 1][numbers])
    )


def test_a_shallow_run_counts_what_it_found_and_a_query_without_results_counts_as_nothing(
    guide: Benchmark,
) -> None:
    first, second = list(guide.queries)[:2]
    small = guide.subset([first, second])
    clue = small.relevant(first)[0]
    scores = score_runs(small, {"shallow": make_run([(first, clue, 1.0)]), "none": make_run([])})
    values = scores.set_index(["retriever", "query_id", "metric", "k"])["value"]
    # one of R clues is found, at rank 1, whatever the cut-off
    for k in CUTOFFS:
        assert values["shallow", first, "recall", k] == pytest.approx(
            1 / len(small.relevant(first))
        )
        assert values["shallow", first, "hit_count", k] == 1
    for metric in METRICS:
        if metric != "ndcg_visual_rag":  # no ranking is deep enough for it
            assert values["shallow", second, metric, 30] == 0
        assert values["none", first, metric, 30] == 0
    means = mean_metrics(scores[scores["retriever"] == "shallow"]).set_index("metric")["n"]
    assert set(means.drop("ndcg_visual_rag")) == {2}
    assert means["ndcg_visual_rag"].eq(0).all()  # one result is no best order of 30


def test_full_depth_is_asked_for_where_a_comparison_needs_it(guide: Benchmark) -> None:
    first, second = list(guide.queries)[:2]
    small = guide.subset([first, second])
    shallow = oracle_run({first: small.qrels[first]})
    with pytest.raises(VragError, match=f"of mine holds 0 documents for query '{second}', so"):
        score_runs(small, {"mine": shallow}, full_depth=True)
    score_runs(small, {"mine": oracle_run(small.qrels)}, full_depth=True)


def test_cut_offs_end_with_the_shallowest_query_and_say_so(
    guide: Benchmark, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = list(guide.queries)[:2]
    small = guide.subset([first, second])
    deep = oracle_run(small.qrels)
    shallow = deep[(deep["query_id"] != second) | (deep["rank"] <= 12)]
    scores = score_runs(small, {"deep": deep, "mine": shallow}, full_depth=True)
    assert set(scores["k"]) == {1, 5, 10, 12}
    assert set(scores["retriever"]) == {"deep", "mine", "random order", "perfect order"}
    assert f"12 documents for query '{second}'" in capsys.readouterr().out
    every = deep[deep["rank"] <= 12]
    scores = score_runs(small, {"theirs": every}, full_depth=True)
    assert (
        scores.query("retriever == 'theirs' and metric == 'ndcg_visual_rag'")["value"].isna().all()
    )
    results = to_percent(cluster_means(scores, by=["retriever", "metric", "k"]))
    table = compare_retrieval_to_paper(results, small).loc[("theirs", "ndcg_visual_rag")]
    assert set(table.dropna()) <= {"–", ""}, table  # no value, and no interval around one
