"""Metrics over one modality alone, and MM-RAGChecker's equations as they are printed,
against slow definitions and cases by hand.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pandas as pd
import pytest
from claim_sheets import sheet, sheets, slow_evidence, slow_ragchecker
from hypothesis import given, settings
from test_claim_metrics import W1, W2, W3, W5

from vrag_kit.analysis import to_percent
from vrag_kit.claims import ClaimVerdicts, claim_means_by_modality, compare_label_sources
from vrag_kit.claims.means import METRIC
from vrag_kit.papers import mrag_suite as paper
from vrag_kit.papers import published
from vrag_kit.papers.mrag_suite.claims import paper_equations


def tabulate_statements(*sheets: ClaimVerdicts | None) -> pd.DataFrame:
    queries = [f"q{n}" for n, _ in enumerate(sheets)]
    arm = {"dataset": "WebQA", "model": "small", "setting": "gt_only", "k": 6}
    return pd.DataFrame({**arm, "query_id": queries, "group": queries, "sheet": list(sheets)})


BY = ["dataset", "model", "setting"]


@settings(deadline=None)
@given(sheets())
def test_one_modality_alone_is_the_sheet_without_the_others_columns(of: ClaimVerdicts) -> None:
    for modality, letter in (("image", "i"), ("text", "t")):
        only = of.restrict_to_modality(modality)
        places = [n for n, item in enumerate(of.items) if item.modality == modality]
        assert only.items == tuple(of.items[place] for place in places)
        columns = [0, *(1 + place for place in places)]
        np.testing.assert_array_equal(only.verdicts, of.verdicts[:, columns])
        used = slow_evidence(only)["evidence_utilization", "all"]
        assert used == pytest.approx(
            slow_evidence(of)["evidence_utilization", modality], nan_ok=True
        )
        assert len(only.items) == [item.modality[0] for item in of.items].count(letter)


def test_ragcheckers_metrics_are_there_for_each_modality() -> None:
    means = claim_means_by_modality(tabulate_statements(W1, W2, None), by=BY)
    found = means.set_index(["family", "metric", "modality"])["value"]
    for modality in ("image", "text"):
        slow = [slow_ragchecker(each.restrict_to_modality(modality), math.nan) for each in (W1, W2)]
        for metric in ("claim_recall", "context_precision", "hallucination", "faithfulness"):
            known = [each[metric] for each in slow if not math.isnan(each[metric])]
            mine = found["ragchecker", metric, modality]
            assert mine == pytest.approx(sum(known) / len(known))
    # by hand, W1's claims: an image entails the first, second and fifth
    assert found["mm_ragchecker", "entailed_share", "image"] == pytest.approx(1 / 2)
    assert found["mm_ragchecker", "entailed_share", "text"] == pytest.approx(1 / 6)
    assert not means.duplicated(["family", "metric", "modality"]).any()
    assert ("ragchecker", "precision", "image") not in found.index  # it looks at no evidence


def test_answers_that_were_shown_nothing_of_a_modality_count_nowhere_in_it() -> None:
    pictures = sheet("i", ["E"], ["E"], "1", "1")
    means = claim_means_by_modality(tabulate_statements(pictures, W1, W3), by=BY)
    rows = means.set_index(["metric", "modality"]).loc["hallucination"]
    assert rows["n"].to_dict() == {"all": 2, "image": 2, "text": 1}
    assert rows["n_undefined"].to_dict() == {"all": 1, "image": 0, "text": 0}


def test_the_equations_of_w1_by_hand() -> None:
    found = {name: each.value for name, each in paper_equations(W1).items()}
    assert found == pytest.approx(
        {
            "hallucination": 1 / 3,  # the fourth and the sixth claim
            "faithfulness": 1 / 2,
            "claim_recall": 1 / 2,
            "context_precision": 3 / 4,
            "self_knowledge": 0,
            "delta_cr": 0,
            "delta_cp": 1 / 2,
            "vis_hit_at_k": 1,
            "txt_miss_rate": 1 / 2,
            "cma": 1 / 3,
            "v_hr": 0,
            "d_hr": 0,
        }
    )


@pytest.mark.slow
@settings(deadline=None)
@given(sheets())
def test_what_the_table_calls_always_0_is_0_or_divides_by_0(of: ClaimVerdicts) -> None:
    found = paper_equations(of)
    told = paper.claims.definitions_table().reset_index("equation", drop=True)["what follows"]
    always = [name for name in found if told[name].startswith("always 0")]
    assert always == ["self_knowledge", "delta_cr", "v_hr", "d_hr"]
    for name in always:
        assert found[name].value == 0 or math.isnan(found[name].value)
    one, two = found["hallucination"].value, found["faithfulness"].value
    assert math.isnan(one) or one + two <= 1 + 1e-12


def test_the_definitions_have_the_names_of_the_printed_tables() -> None:
    names = paper.claims.definitions_table().index.get_level_values("name")
    assert set(names) == set(paper_equations(W1))
    assert set(published("mrag_suite", 4)["metric"]) <= set(names)
    printed = set(published("mrag_suite", [3, 14, 15])["metric"])
    assert printed - set(names) == {"recall", "precision", "f1"}  # the paper defines none


def test_means_of_equations_have_no_doubt_about_what_is_always_0() -> None:
    means = paper.claims.equation_means(tabulate_statements(W1, W2, W5), by=BY).set_index("metric")
    assert means.loc["self_knowledge", ["value", "ci_low", "ci_high", "n"]].tolist() == [0, 0, 0, 1]
    assert means.loc["delta_cr", ["value", "ci_low", "ci_high", "n"]].tolist() == [0, 0, 0, 3]
    assert means.loc["v_hr", "n"] == 1  # of W1 alone: W2 has no claim, W5 none that is known
    assert means.loc["claim_recall", "value"] == pytest.approx((1 / 2 + 1 / 2 + 1) / 3)
    assert means.loc["delta_cp", "ci_low"] < 0


def test_table_4_has_what_the_equation_says_and_what_stands_in_its_place() -> None:
    table = tabulate_statements(W1)
    means = to_percent(claim_means_by_modality(table, by=BY))
    equations = to_percent(paper.claims.equation_means(table, by=BY))
    beside = paper.claims.compare_gaps_to_paper(equations, means, published("mrag_suite", 4))
    assert beside.index.get_level_values("dataset").unique().tolist() == ["WebQA"]
    row = beside.loc[("WebQA", "v_hr")]
    assert row["reported, other data"] == "12.4 to 32.4, median 22.4 (2 models)"
    assert row["small: by the equation"].startswith("0.0 [0.0, 0.0]")
    assert row["small: in its place"].startswith("50.0 ")  # error_support of images
    assert beside.loc[("WebQA", "cma"), "small: in its place"] == "–"


def test_the_figure_of_labels_says_how_many_true_means_the_intervals_hold() -> None:
    rows = [("checker", 40.0, 9.0), ("corrected", 55.0, 20.0), ("true", 60.0, 5.0)]
    rows.append(("corrected", 100.0, math.nan))  # without an interval: not drawn
    means = pd.DataFrame(rows, columns=["label_source", "value", "half"]).assign(
        dataset="WebQA", model="small", setting="gt_only", modality="all", n=20, n_labelled=4
    )
    means = means.assign(
        **{"family": "ragchecker", "metric": "hallucination"},
        **{"ci_low": means["value"] - means["half"], "ci_high": means["value"] + means["half"]},
    )
    figure = paper.claim_figures.label_figure(means)
    (panel,) = figure.axes
    drawn = [line.get_xdata()[0] for line in panel.lines if line.get_marker() == "o"]
    assert sorted(drawn) == [40, 55, 60]
    title = figure.get_label().splitlines()[0]
    assert "0 of 1 true means" in title
    assert "1 of 1" in title


@pytest.mark.slow
def test_corrected_means_stand_over_each_modality_too() -> None:
    table = tabulate_statements(W1, W2).assign(true_sheet=[W1, W2], k=3, sample=0)
    found = compare_label_sources(table, table, by=BY).set_index(["label_source", *METRIC])["value"]
    for metric, modality in product(("faithfulness", "claim_recall"), ("all", "image", "text")):
        key = ("ragchecker", metric, modality)
        assert found[("corrected", *key)] == pytest.approx(found[("true", *key)], nan_ok=True)
        assert found[("checker", *key)] == pytest.approx(found[("true", *key)], nan_ok=True)
