"""Metrics agree with trec_eval, scikit-learn, cases by hand and every order of a pool; a custom
metric is one function; hit rates of entities and of pages that tell the answer, by hand.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence

import factories
import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st
from own_project import shown
from retrieval_data import refused
from sklearn.metrics import ndcg_score
from typer.testing import CliRunner

from vrag_kit.benchmarks import entity_names
from vrag_kit.retrieval import (
    METRICS,
    ORACLE,
    RANDOM_BASELINE,
    evaluate,
    make_run,
    mean_metrics,
    score_runs,
    write_qrels,
    write_run,
)
from vrag_kit.retrieval.entity_hit_rate import entity_coverage, entity_hit_rate, hit_rate
from vrag_kit.retrieval.metrics import CUTOFFS, oracle_run, random_baseline
from vrag_kit.runner.cli import app
from vrag_kit.types import Document, Query

Labels = dict[str, dict[str, int]]
Scores = Mapping[str, Mapping[str, float]]


def value(table: pd.DataFrame, query_id: str, metric: str, k: int) -> float:
    chosen = (table["query_id"] == query_id) & (table["metric"] == metric) & (table["k"] == k)
    return float(table.loc[chosen, "value"].iloc[0])


def run_of(scores: Scores) -> pd.DataFrame:
    return make_run((query, doc, s) for query, docs in scores.items() for doc, s in docs.items())


def ranked(documents: Iterable[str]) -> dict[str, float]:
    return {name: -float(place) for place, name in enumerate(documents)}


@st.composite
def judged_runs(draw: st.DrawFn) -> tuple[Labels, Scores]:
    """Two queries over up to 50 documents; few distinct scores, so ties are everywhere."""
    docs = [f"d{i:02d}" for i in range(draw(st.integers(1, 50)))]
    labels, scores = {}, {}
    for query in ("q1", "q2"):
        labels[query] = {doc: draw(st.integers(0, 3)) for doc in docs}
        score = st.sampled_from([0.0, 0.25, 0.5, 1.0])
        scores[query] = {doc: draw(score) for doc in draw(st.permutations(docs))}
    return labels, scores


@pytest.mark.slow
@settings(max_examples=60)
@given(judged_runs())
def test_recall_hit_and_ndcg_are_those_of_trec_eval(case):
    labels, scores = case
    ours = evaluate(run_of(scores), labels)
    names = {"recall": "recall", "hit": "success", "ndcg": "ndcg_cut"}
    wanted = {f"{name}.{','.join(map(str, CUTOFFS))}" for name in names.values()}
    theirs = pytrec_eval.RelevanceEvaluator(labels, wanted).evaluate(scores)
    for query, metric, k in itertools.product(labels, names, CUTOFFS):
        got, relevant = value(ours, query, metric, k), any(labels[query].values())
        expected = theirs[query][f"{names[metric]}_{k}"] if relevant else math.nan
        assert got == pytest.approx(expected, abs=1e-9, nan_ok=True), (metric, k)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(st.integers(0, 1), min_size=30, max_size=60))
def test_visual_rag_ndcg_is_scikit_learns_on_the_first_30(relevance):
    labels = {"q": {f"d{i:02d}": label for i, label in enumerate(relevance)}}
    ours = evaluate(run_of({"q": ranked(labels["q"])}), labels)
    for k in CUTOFFS:
        # scikit-learn gives 0 when none of the 30 is relevant, as we do
        best = ndcg_score([relevance[:30]], [[-i for i in range(30)]], k=k)
        expected = best if any(relevance) else math.nan
        got = value(ours, "q", "ndcg_visual_rag", k)
        assert got == pytest.approx(expected, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize(("depth", "expected"), [(1, math.nan), (29, math.nan), (30, 1), (40, 1)])
def test_a_too_shallow_run_has_no_visual_rag_ndcg(depth, expected):
    labels = {"q": {f"d{i:02d}": int(i % 5 == 0) for i in range(40)}}
    table = evaluate(run_of({"q": ranked(list(labels["q"])[:depth])}), labels, cutoffs=(1, 12))
    assert value(table, "q", "ndcg_visual_rag", 1) == pytest.approx(expected, nan_ok=True)
    assert value(table, "q", "recall", 1) == 1 / 8
    means = mean_metrics(table).set_index(["metric", "k"])
    assert means.loc[("ndcg_visual_rag", 1), "n"] == (depth >= 30)


def test_without_relevant_documents_a_query_is_left_out_without_results_it_is_zero():
    labels = {"answered": {"a": 1}, "empty": {"a": 0}, "missing": {"a": 1}}
    run = run_of({"answered": {"a": 1.0}, "empty": {"a": 1.0}})
    means = mean_metrics(evaluate(run, labels, cutoffs=(1,))).set_index("metric")
    assert (means.loc["recall", "value"], means.loc["recall", "n"]) == (0.5, 2)


def test_other_queries_no_depth_and_graded_labels_of_a_random_order_are_refused():
    other, labels = run_of({"x": {"a": 1.0}}), {"q": {"a": 1}}
    refused(lambda: evaluate(other, labels), "share no query", "'x'", "'q'")
    refused(lambda: evaluate(run_of({"q": {"a": 1.0}}), labels, cutoffs=(0,)), "1 or more")
    refused(lambda: random_baseline({"q": {"a": 2}}, {"q": 5}), "graded labels")


@pytest.mark.parametrize(("pool", "relevant"), [(6, 3), (5, 5), (36, 2)])
def test_the_random_order_is_the_mean_over_every_order(pool, relevant):
    """One order for every placement of the relevant documents; all are equally likely."""
    labels, orders, cutoffs = {}, {}, (1, 2, 5)
    for places in itertools.combinations(range(pool), relevant):
        name, documents = f"q{len(orders)}", [f"d{place}" for place in range(pool)]
        labels[name] = {doc: int(place in places) for place, doc in enumerate(documents)}
        orders[name] = ranked(documents)
    each = evaluate(run_of(orders), labels, cutoffs=cutoffs)
    reference = random_baseline({"q": labels["q0"]}, {"q": pool}, cutoffs=cutoffs)
    ours = reference.set_index(["metric", "k"])["value"]
    for key, mean in each.groupby(["metric", "k"])["value"].mean().items():
        assert ours[key] == pytest.approx(mean, abs=1e-9), key


def test_a_random_order_is_one_of_the_documents_that_a_query_may_find():
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


def test_scores_carry_the_group_and_the_scale_of_their_query(guide):
    scores = score_runs(guide, {"perfect": oracle_run(guide.qrels)})
    assert list(scores["group"]) == [guide.queries[name].group for name in scores["query_id"]]
    columns = "retriever query_id group metric k value score_min score_max attainable"
    assert list(scores.columns) == columns.split()
    assert scores["value"].between(scores["score_min"], scores["score_max"]).all()
    counts = scores.query("metric == 'hit_count' and k == 20")
    clues = {name: len(guide.relevant(name)) for name in guide.queries}
    assert list(counts["attainable"]) == [min(20, clues[name]) for name in counts["query_id"]]
    assert (scores.query("metric != 'hit_count'")["attainable"] == 1).all()


def test_cutoffs_end_at_shallow_runs(guide, capsys):
    first, second = list(guide.queries)[:2]
    small = guide.subset([first, second])
    one = oracle_run({first: small.qrels[first]})
    refused(lambda: score_runs(small, {"mine": one}, full_depth=True), "0 documents", second)
    deep = oracle_run(small.qrels)
    shallow = deep[(deep["query_id"] != second) | (deep["rank"] <= 12)]
    scores = score_runs(small, {"deep": deep, "mine": shallow}, full_depth=True)
    assert set(scores["k"]) == {1, 5, 10, 12}
    assert set(scores["retriever"]) == {"deep", "mine", RANDOM_BASELINE, ORACLE}
    assert f"12 documents for query '{second}'" in capsys.readouterr().out


LABELS = {"q1": {"a": 1, "b": 0, "c": 1}, "q2": {"a": 0, "b": 1, "c": 0}, "q3": {"a": 0}}
RUN = run_of({query: ranked(docs) for query, docs in {"q1": "abc", "q2": "cb", "q3": "a"}.items()})


def test_the_readmes_custom_metric_agrees_with_a_hand_case(mine, tmp_path):
    mine(shown("def rbp"))
    table = evaluate(RUN, LABELS, cutoffs=[1, 3], metrics=["recall", "mine:rbp"])
    # q1 has clues at ranks 1 and 3: 0.2 (1 + 0.8²); q2 one at rank 2: 0.2 · 0.8
    assert value(table, "q1", "rbp", 3) == pytest.approx(0.2 * (1 + 0.64))
    assert value(table, "q2", "rbp", 3) == pytest.approx(0.2 * 0.8)
    assert value(table, "q1", "rbp", 1) == pytest.approx(0.2)
    assert math.isnan(value(table, "q3", "rbp", 3))  # nothing is relevant to it
    assert list(table["metric"].unique()) == [*METRICS, "rbp"]
    write_qrels(LABELS, tmp_path / "qrels.txt")
    write_run(RUN, tmp_path / "a.run", "a")
    files = [str(tmp_path / "qrels.txt"), str(tmp_path / "a.run")]
    done = CliRunner().invoke(app, ["metrics", *files, "--json", "--metric", "mine:rbp"])
    means = {(row["metric"], row["k"]): row for row in json.loads(done.stdout)}
    assert means["rbp", 5] == {"metric": "rbp", "k": 5, "value": pytest.approx(0.244), "n": 2}


@pytest.mark.parametrize(
    ("gives", "tokens"),
    [
        ("1.5", "'odd' | 'q1' | k = 1 | gave 1.5 | number from 0 to 1"),
        ("'high'", "gave 'high' | number from 0 to 1"),
        ("1 / 0", "'q1' | k = 1 | ZeroDivisionError | mine.py:1"),
    ],
)
def test_a_value_that_is_no_share_names_its_query(mine, gives, tokens):
    mine(f"def odd(relevant, n_relevant): return {gives}\n")
    refused(lambda: evaluate(RUN, LABELS, metrics=["mine:odd"]), *tokens.split(" | "))


KG = {}
for number, names in enumerate([["Talia ensis"], ["Talia osa", "Talia  Ensis"], ["Moth"]]):
    entities = [{"entity_name": name} for name in names]
    KG[f"kg-{number}"] = Document(doc_id=f"kg-{number}", metadata={"entities": entities})
QUERIES = [
    Query(query_id="first", text="?", entity="Talia ensis", group="g"),
    Query(query_id="third", text="?", entity="moth"),
    Query(query_id="never", text="?", entity="Heron"),
    Query(query_id="nothing found", text="?", entity="Moth"),
    Query(query_id="unknown", text="?"),
]
HITS = make_run(
    (name, doc_id, score)
    for name in ("first", "third", "never", "unknown")
    for doc_id, score in (("kg-1", 0.9), ("kg-0", 1.0), ("kg-2", 0.8))
)


def test_an_entity_is_found_where_one_of_the_first_k_hits_shows_it():
    table = entity_hit_rate(HITS, QUERIES, KG, entity_names, cutoffs=[1, 2, 3])
    assert set(table["metric"]) == {"hit_rate"}
    values = table.pivot(index="query_id", columns="k", values="value")
    assert values.loc["first"].tolist() == [1, 1, 1]
    assert values.loc["third"].tolist() == [0, 0, 1]
    assert values.loc["never"].tolist() == values.loc["nothing found"].tolist() == [0, 0, 0]
    assert "unknown" not in values.index
    covered = {"first": True, "third": True, "never": False, "nothing found": True}
    assert entity_coverage(QUERIES, KG, entity_names) == covered


def test_a_page_that_tells_the_answer_is_found_and_an_unknown_one_has_no_value():
    asked: list[str] = []

    def relevance(pairs: Sequence[tuple[Query, Document]]) -> list[bool | None]:
        asked.extend(f"{query.query_id} {page.doc_id}" for query, page in pairs)
        known = {"kg-0": None, "kg-1": False, "kg-2": True}
        return [known[page.doc_id] for _, page in pairs]

    table = hit_rate(HITS, QUERIES[:1], KG, relevance, cutoffs=[3, 1, 2])
    assert asked == ["first kg-0", "first kg-1", "first kg-2"]
    values = dict(zip(table["k"], table["value"], strict=True))
    assert values[3] == 1  # a page is known to tell it
    assert np.isnan([values[1], values[2]]).all()  # none is, and one is unknown
