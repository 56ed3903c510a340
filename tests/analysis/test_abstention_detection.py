"""Declining is detection: d′ and criterion as by hand and as scipy's normal, and the
accuracy of the answers given over their share.
"""

import math

import pandas as pd
import pytest
from factories import benchmark
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from vrag_kit.analysis import abstention_detection, add_has_evidence, risk_coverage
from vrag_kit.analysis.abstention import d_prime
from vrag_kit.errors import VragError


@given(st.integers(1, 300), st.integers(1, 300), st.floats(0, 1), st.floats(0, 1))
def test_d_prime_is_that_of_scipys_normal(signals, noises, hit, alarm):
    hits, alarms = round(hit * signals), round(alarm * noises)
    z_hit = norm.ppf((hits + 0.5) / (signals + 1))
    z_alarm = norm.ppf((alarms + 0.5) / (noises + 1))
    expected = (z_hit - z_alarm, -(z_hit + z_alarm) / 2)
    assert d_prime(hits, signals, alarms, noises) == pytest.approx(expected, abs=1e-9)


def judged(rows: list[tuple[str, bool, float, float]], draw: int = 0) -> pd.DataFrame:
    """(query, evidence, abstained, score), a row an answer."""
    table = pd.DataFrame(rows, columns=["query_id", "clue_in_context", "abstained", "score"])
    return table.assign(model="m", group=table["query_id"], draw=draw)


def test_hits_are_without_evidence_and_false_alarms_with_some():
    rows = []
    for number in range(10):
        rows += [(f"q{number}", False, float(number < 8), 0.0)]
        rows += [(f"q{number}", True, float(number < 1), float(number > 4))]
    rows.append(("q0", True, math.nan, math.nan))
    table = abstention_detection(judged(rows), by=["model"]).set_index("metric")
    assert table.loc["abstention_hit_rate", "value"] == 0.8
    assert table.loc["abstention_false_alarm_rate", "value"] == 0.1
    assert table.loc["abstention_false_alarm_rate", ["n", "n_failed"]].tolist() == [10, 1]
    assert table.loc["d_prime", "n"] == 20
    expected = d_prime(8, 10, 1, 10)
    assert table.loc[["d_prime", "criterion"], "value"].tolist() == pytest.approx(expected)
    for metric in ("d_prime", "criterion"):
        row = table.loc[metric]
        assert row["ci_low"] < row["value"] < row["ci_high"]


def test_without_doubt_or_with_few_groups_there_is_no_interval():
    sure = [(f"q{i}", bool(i % 2), float(not i % 2), 1.0) for i in range(10)]
    table = abstention_detection(judged(sure), by=["model"]).set_index("metric")
    assert table.loc["d_prime", "value"] == pytest.approx(d_prime(5, 5, 0, 5)[0])
    assert table.loc[["d_prime", "criterion"], ["ci_low", "ci_high"]].isna().all(axis=None)
    assert table.loc["abstention_hit_rate", "ci_low"] < 1  # the rate's own is exact
    for groups in (4, 5):
        rows = [(f"q{i % groups}", i % 3 > 0, float(i % 5 > 2), 1.0) for i in range(40)]
        table = abstention_detection(judged(rows), by=["model"]).set_index("metric")
        ends = table.loc["d_prime", ["ci_low", "ci_high"]]
        assert ends.notna().tolist() == [groups == 5] * 2


def test_whether_a_context_can_answer_is_read_from_the_labels():
    three = benchmark(["q"], "abc", {"q": {"a": 1, "b": 0}})
    table = pd.DataFrame({"query_id": ["q"] * 4, "doc_ids": [("a",), ("b", "a"), ("b", "c"), ()]})
    labelled = add_has_evidence(table, three)
    assert labelled["clue_in_context"].tolist() == [True, True, False, False]
    unlabelled = judged([("q", True, 0.0, 1.0)]).drop(columns="clue_in_context")
    with pytest.raises(VragError, match="add_has_evidence"):
        abstention_detection(unlabelled, by=["model"])


def test_samples_give_a_curve_from_the_surest_prompts_on():
    # declined of 4 samples: a none (all right), b one (2 of 3 right), c all
    rows = [("a", True, 0.0, 1.0)] * 4
    rows += [("b", True, 1.0, 0.0), *[("b", True, 0.0, 1.0)] * 2, ("b", True, 0.0, 0.0)]
    rows += [("c", True, 1.0, 0.0)] * 4 + [("d", True, math.nan, math.nan)]
    curve = risk_coverage(judged(rows), by=["model"])
    assert curve["threshold"].tolist() == [0.0, 0.25]
    assert curve[["n", "n_failed"]].to_numpy().tolist() == [[1, 1], [2, 1]]
    assert curve["coverage"].tolist() == pytest.approx([1 / 3, 2 / 3])
    assert curve["value"].tolist() == pytest.approx([1.0, (1 + 2 / 3) / 2])
