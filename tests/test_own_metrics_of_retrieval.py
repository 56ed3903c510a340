"""A retrieval metric of one's own is one function, and stands where the kit's stand."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st
from own_project import FINDING_BOOK, Checked, Write, shown
from typer.testing import CliRunner

from vrag_kit.analysis import cluster_means, paired_differences, to_percent
from vrag_kit.errors import VragError
from vrag_kit.papers.visual_rag.replication import compare_retrieval_to_paper
from vrag_kit.plotting import line_plot
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
from vrag_kit.runner.cli import app
from vrag_kit.types import Benchmark, Document, Query

LABELS = {"q1": {"a": 1, "b": 0, "c": 1}, "q2": {"a": 0, "b": 1, "c": 0}, "q3": {"a": 0}}
RANKED = {"q1": "abc", "q2": "cb", "q3": "a"}
RUN = make_run(
    (query, doc, -float(rank)) for query, docs in RANKED.items() for rank, doc in enumerate(docs)
)


def value(table: pd.DataFrame, query_id: str, metric: str, k: int) -> float:
    chosen = (table["query_id"] == query_id) & (table["metric"] == metric) & (table["k"] == k)
    return float(table.loc[chosen, "value"].item())


def test_the_readmes_metric_agrees_with_a_case_worked_by_hand(mine: Write) -> None:
    mine(shown("def rbp"))
    table = evaluate(RUN, LABELS, cutoffs=[1, 3], metrics=["mine:rbp"])
    # q1 has clues at ranks 1 and 3: 0.2 (1 + 0.8²); q2 one at rank 2: 0.2 · 0.8
    assert value(table, "q1", "rbp", 3) == pytest.approx(0.2 * (1 + 0.64))
    assert value(table, "q2", "rbp", 3) == pytest.approx(0.2 * 0.8)
    assert value(table, "q1", "rbp", 1) == pytest.approx(0.2)
    assert math.isnan(value(table, "q3", "rbp", 3))  # nothing is relevant to it
    assert list(table["metric"].unique()) == [*METRICS, "rbp"]
    (mean,) = mean_metrics(table).query("metric == 'rbp' and k == 3").to_dict("records")
    assert (mean["n"], mean["value"]) == (2, pytest.approx((0.328 + 0.16) / 2))


def average_precision(relevant: np.ndarray, n_relevant: int) -> float:
    places = np.flatnonzero(relevant) + 1
    return float(np.sum(np.arange(1, len(places) + 1) / places)) / n_relevant


def precision(relevant: np.ndarray, n_relevant: int) -> float:
    return float(relevant.mean())


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=30), st.integers(0, 3))
def test_functions_agree_with_trec_eval(relevance: list[bool], not_found: int) -> None:
    labels = {"q": {f"d{at:02d}": int(each) for at, each in enumerate(relevance)}}
    labels["q"] |= {f"lost{number}": 1 for number in range(not_found)}
    scores = {"q": {f"d{at:02d}": -float(at) for at in range(len(relevance))}}
    run = make_run(("q", doc, score) for doc, score in scores["q"].items())
    ours = evaluate(run, labels, cutoffs=[5, 10], metrics=[average_precision, precision])
    theirs = pytrec_eval.RelevanceEvaluator(labels, {"map_cut.5,10", "P.5,10"}).evaluate(scores)
    for k in (5, 10):
        if any(labels["q"].values()):
            ap, p = (value(ours, "q", name, k) for name in ("average_precision", "precision"))
            assert ap == pytest.approx(theirs["q"][f"map_cut_{k}"])
            assert p == pytest.approx(theirs["q"][f"P_{k}"])
        else:
            assert math.isnan(value(ours, "q", "precision", k))


def letters() -> Benchmark:
    return Benchmark(
        name="letters",
        fingerprint="f",
        queries={q: Query(query_id=q, text="?", group=q) for q in ("q1", "q2")},
        corpus={d: Document(doc_id=d) for d in "abc"},
        qrels={q: LABELS[q] for q in ("q1", "q2")},
    )


def test_it_stands_in_the_table_the_tests_and_the_figure_of_02() -> None:
    other = make_run((q, d, -float(at)) for q in ("q1", "q2") for at, d in enumerate("bca"))
    runs = {"one": RUN[RUN["query_id"] != "q3"], "other": other}
    scores = score_runs(letters(), runs, cutoffs=[1, 2], metrics=[precision])
    mine = scores[scores["metric"] == "precision"]
    assert set(mine["retriever"]) == {"one", "other", ORACLE}
    assert RANDOM_BASELINE in set(scores["retriever"])
    results = to_percent(cluster_means(scores, by=["retriever", "metric", "k"]))
    table = compare_retrieval_to_paper(results, letters())
    assert table.loc[("one", "precision"), "@2"].startswith("50.0 [")  # 1 of 2 in q1 and q2
    claims = paired_differences(
        mine[mine["retriever"] != ORACLE], arm="retriever", by=["metric", "k"], baseline="one"
    )
    # at k = 1 "one" has a clue in q1 alone, "other" in q2 alone
    assert claims.set_index("k")["value"].to_dict() == {1: 0.0, 2: 0.0}
    how = {"x": "k", "xlabel": "k", "ylabel": "%", "color": "retriever", "panels": "metric"}
    figure = line_plot(results, **how)
    (panel,) = [axis for axis in figure.axes if axis.get_title("left").startswith("precision")]
    heights = {round(float(y), 6) for line in panel.lines for y in line.get_ydata()}
    assert heights == {50.0, 100.0, 75.0}  # the two, and the perfect order at 1 and at 2


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("mine:rpb", "has no function 'rpb'; it has rbp"),
        ("mine:BASE", "has no function 'BASE'; it has rbp"),
        ("mein:rbp", r"No module named 'mein'.* has mine\.py"),
        ("mine.py:rbp", r"No module named 'mine\.py'.* has mine\.py"),
        ("recal", 'expected one of recall, ndcg, .* or a function as "module:function"'),
        (3, "metric 3: expected one of"),
        (lambda relevant, n_relevant: 0.5, "'<lambda>'; expected one"),
        (["mine:rbp", "mine:rbp"], "found the name 'rbp'"),
    ],
)
def test_what_is_no_metric_is_said(mine: Write, entry: object, words: str) -> None:
    mine("BASE = 0.8\ndef rbp(relevant, n_relevant): return 0.5\n")
    entries = entry if isinstance(entry, list) else [entry]
    with pytest.raises(VragError, match=words):
        evaluate(RUN, LABELS, metrics=entries)


def test_the_kits_own_may_be_listed_too() -> None:
    assert set(evaluate(RUN, LABELS, metrics=["recall", precision])["metric"]) == {
        *METRICS,
        "precision",
    }


@pytest.mark.parametrize(
    ("gives", "words"),
    [
        ("1.5", "metric 'odd' of query 'q1' at k = 1: it gave 1.5; expected a number from 0 to 1"),
        ("2.0", "it gave 2.0; .* nothing to measure"),
        ("-1", "it gave -1; expected a number from 0 to 1"),
        ("'high'", "it gave 'high'; expected a number from 0 to 1"),
        ("None", "it gave None; expected a number from 0 to 1"),
        ("float('inf')", "it gave inf; expected a number"),
        ("1 / 0", r"'q1' at k = 1: it failed with ZeroDivisionError: .* \(mine.py:1\)"),
    ],
)
def test_a_value_that_is_no_share_is_told_with_its_query(
    mine: Write, gives: str, words: str
) -> None:
    mine(f"def odd(relevant, n_relevant): return {gives}\n")
    with pytest.raises(VragError, match=words):
        evaluate(RUN, LABELS, metrics=["mine:odd"])


def test_a_query_without_a_value_is_left_out_of_means(mine: Write) -> None:
    mine("def some(found, there): return 1.0 if there == 2 else float('nan')\n")
    means = mean_metrics(evaluate(RUN, LABELS, metrics=["mine:some"]))
    assert set(means.loc[means["metric"] == "some", "n"]) == {1}


def test_vrag_metrics_takes_it(mine: Write, tmp_path: Path) -> None:
    mine(shown("def rbp"))
    write_qrels(LABELS, tmp_path / "qrels.txt")
    write_run(RUN, tmp_path / "a.run", "a")
    files = [str(tmp_path / "qrels.txt"), str(tmp_path / "a.run")]
    told = CliRunner().invoke(app, ["metrics", *files, "--json", "--metric", "mine:rbp"])
    rows = json.loads(told.stdout)
    (found,) = [row["value"] for row in rows if (row["metric"], row["k"]) == ("rbp", 5)]
    assert found == pytest.approx((0.328 + 0.16) / 2)


def test_vrag_check_says_what_is_wrong_with_it(
    checked: Checked,
) -> None:
    (checked.folder / "my_measures.py").write_text(shown("def rbp"), encoding="utf-8")
    assert checked.check(FINDING_BOOK, metrics=["my_measures:rbp"])[1] == []
    missing = checked.check(FINDING_BOOK, metrics=["my_measures:rpb"])[1]
    assert any("'rpb'; it has rbp" in line for line in missing), missing
