"""Numbers with intervals read as what they are, and a finding says what its interval carries; what
the notebooks saved comes back as one table.
"""

import csv
import math
import re

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from vrag_kit.analysis import differences_table, load_results, settings_table
from vrag_kit.analysis.report_tables import finding, format_ci, format_ci_bound, format_p
from vrag_kit.errors import VragError
from vrag_kit.plotting import save_figure
from vrag_kit.synthetic import synthetic_mark
from vrag_kit.workspace import Workspace


@pytest.mark.parametrize(
    ("value", "low", "high", "cell"),
    [
        (80.04, 73.96, 85.96, "80.0 [74.0, 86.0]"),
        (-0.04, -8.0, 8.0, "0.0 [-8.0, 8.0]"),
        (-17.24, -33.5, -0.02, "-17.2 [-33.5, -0.02]"),  # 0 is outside, and reads so
        (13.5, 0.0049, 26.4, "13.5 [0.005, 26.4]"),
        (13.5, -1e-15, 26.4, "13.5 [0.0, 26.4]"),
        (80.0, math.nan, math.nan, "80.0 (no interval)"),
        (math.nan, math.nan, math.nan, "–"),
    ],
)
def test_a_cell_says_what_there_is(value, low, high, cell):
    assert format_ci(value, low, high) == cell


@given(st.floats(-100, 100).filter(lambda end: abs(end) >= 1e-9), st.integers(0, 3))
def test_an_end_that_is_not_0_never_reads_as_0(end, decimals):
    told = format_ci_bound(end, decimals)
    assert np.sign(float(told)) == np.sign(end)
    assert abs(float(told) - end) <= 0.5 * 10.0**-decimals + 1e-12


def test_a_table_of_differences_shows_no_p_of_0_and_names_what_a_row_lacks():
    claims = pd.DataFrame({"model": ["ours", "ours", "printed"], "k": [1, 5, 1]}).assign(
        value=[38.02, -1.5, 4.5],
        ci_low=[22.4, -9.0, math.nan],
        ci_high=[51.7, 6.0, math.nan],
        n=[81, 80, math.nan],
        n_failed=[0, 1, 0],
        p=[1e-12, 0.66449, math.nan],
        p_holm=[2e-12, 0.0497, math.nan],
        **{"metric": "accuracy", "unit": "percent"},
    )
    found = differences_table(claims)
    cells = ["38.0 [22.4, 51.7]", "-1.5 [-9.0, 6.0]", "4.5 (no interval)"]
    assert list(found["difference in points"]) == cells
    assert list(found["p"]) == ["< 0.0001", "0.66", "–"]
    assert list(found["p_holm"]) == ["< 0.0001", "0.0497", "–"]  # not "0.05", which it is below
    assert list(found["n"]) == ["81", "80", "–"]
    assert list(found["n_failed"]) == ["0", "1", "0"]
    assert "n_failed" not in differences_table(claims[:1])
    assert "difference in points" in differences_table(claims[:0])


def test_p_has_two_digits_or_as_many_as_distinguish_it_from_the_level():
    words = [format_p(p) for p in (1.0, 0.125, 0.381, 0.0001, 0.00009, 0.0499, 0.0500001, 0.05)]
    assert words == ["1", "0.13", "0.38", "0.0001", "< 0.0001", "0.0499", "0.0500001", "0.05"]


ROW = {"value": 6.0, "ci_low": 0.2, "ci_high": 12.0, "p_holm": 0.01, "unit": "percent"}


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ({}, "top-k is higher than zero-shot by 6.0 points [0.2, 12.0]"),
        (
            {"value": -17.2, "ci_low": -33.5, "ci_high": -0.02, "p_holm": 0.2},
            "top-k is lower than zero-shot by 17.2 points [0.02, 33.5], but not after correction",
        ),
        (
            {"value": 3.5, "ci_low": -2.0, "ci_high": 9.1},
            "no difference shown between top-k and zero-shot (95 % interval −2.0 to +9.1)",
        ),
        ({"ci_low": math.nan}, "the difference of top-k to zero-shot has no interval"),
        ({"value": math.nan, "ci_low": math.nan}, "top-k and zero-shot have no scores to compare"),
    ],
)
def test_a_finding_says_size_and_correction(numbers, said):
    assert finding({**ROW, **numbers}, "top-k", "zero-shot") == said


def test_figures_of_synthetic_data_are_marked():
    shipped = "vrag_kit/synthetic/weights/field-guide-clip-64"
    models = ["Qwen/Qwen2.5-VL-7B-Instruct", {"model": "field-guide-vlm-many"}]
    for about in ("field-guide-small", models, shipped):
        assert synthetic_mark(about) == "synthetic data"


def test_what_save_figure_writes_is_what_load_results_reads(at, tmp_path):
    answers = pd.DataFrame({"source": "Guide", "model": ["a", "b"], "setting": "one_in_k"})
    answers = answers.assign(k=[3, 5], metric="accuracy", value=[12.5, 100 / 3])
    answers = answers.assign(ci_low=[10.0, np.nan], ci_high=[15.0, np.inf], n=[81, 80])
    answers = answers.assign(n_failed=[0, 1], unit="percent")
    found = pd.DataFrame({"retriever": "clip", "k": 1, "metric": ["hit", "recall"]})
    found = found.assign(value=[1.0, 2.0], n=81, unit="percent")
    save_figure(Figure(), at, "03_answers", answers)
    save_figure(Figure(), at, "02_found", found)
    results = load_results(tmp_path)
    first = "folder experiment source model retriever setting k metric value ci_low ci_high n"
    assert list(results.columns) == [*first.split(), "n_failed", "unit"]
    for name, table in (("02_found", found), ("03_answers", answers)):
        back = results.loc[results["experiment"] == name, list(table.columns)]
        pd.testing.assert_frame_equal(
            back.reset_index(drop=True), table, check_dtype=False, rtol=1e-5
        )  # six digits are written


def test_results_of_two_judges_and_two_retrievers_are_told_apart(tmp_path):
    """Who found counts where something was found, and is no matter of what is printed."""
    settings_ = ["zero_shot", "top_k", "top_k"]
    sources = ["Guide", "Guide", "Visual-RAG, reported"]
    means = pd.DataFrame({"source": sources, "model": "m", "setting": settings_, "k": [0, 5, 5]})
    means = means.assign(metric="accuracy", value=[1.0, 2.0, 3.0], unit="percent")
    gains = means[1:2].assign(setting="one_in_k", baseline="top_k")
    table = pd.concat([means, gains], ignore_index=True)
    for name, judge, retriever in (("a", "rule", "clip"), ("b", "o4-mini", "bge")):
        run = pd.DataFrame()
        run.attrs["retriever"] = retriever
        made = {"judge": judge, "found_by": {"top_k": run}}
        save_figure(Figure(), Workspace(figures_dir=tmp_path / name), "04_x", table, **made)
    ours = load_results(tmp_path).query("source == 'Guide'").set_index("folder")
    for folder, judge, retriever in (("a", "rule", "clip"), ("b", "o4-mini", "bge")):
        assert ours.loc[folder, "judge"].tolist() == [judge] * 3
        assert ours.loc[folder, "retriever"].tolist() == ["", retriever, retriever]
    printed = load_results(tmp_path).query("source != 'Guide'")
    assert set(printed["judge"]) == set(printed["retriever"]) == {""}


def test_what_the_demo_left_says_what_each_value_is_and_from_what_it_differs():
    left = sorted((ROOT / "figures").rglob("[0-9][0-9]_*.csv"))
    left = [file for file in left if not re.search("claims|statements", file.stem)]
    named = [file for file in left if ".table" not in file.suffixes]
    for file in named:
        for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines()):
            odd = [cell for cell in row.values() if re.search(r"^/|\| /|^[\[(]'|^\(\)$", cell)]
            assert not odd, f"{file}: {odd[0]}"
            if not row.get("value"):
                continue
            assert row["metric"], file
            tested = row.get("p_holm") or row.get("baseline")
            assert row["metric"].startswith("difference in ") == bool(tested), file
            assert bool(row.get("baseline")) == bool(tested), file


def test_names_such_as_NA_stay_names_and_empty_numbers_are_missing(tmp_path):
    first = 'model,value,note\nNone,1,x\nNA,,\nnan,3,7\n"",4,\n7,5,8\n'
    (tmp_path / "01_a.csv").write_text(first, encoding="utf-8")
    (tmp_path / "02_b.csv").write_text("value,n\n6,2\n", encoding="utf-8")
    results = load_results(tmp_path)
    assert list(results["model"]) == ["None", "NA", "nan", "", "7", ""]
    assert list(results["note"]) == ["x", "", "7", "", "8", ""]
    assert results["n"].dtype == "Int64"
    assert list(results["value"].isna()) == [False, True, False, False, False, False]


def test_a_folder_without_results_says_what_to_run(tmp_path):
    with pytest.raises(VragError, match=r"`vrag run params/visual_rag/demo\.yaml`"):
        load_results(tmp_path / "figures")
    (tmp_path / "notes.csv").write_text("k\n1\n", encoding="utf-8")
    with pytest.raises(VragError, match=r"holds no results, .* 03_baselines\.csv"):
        load_results(tmp_path)


@pytest.mark.slow
def test_the_papers_numbers_and_ones_own_have_rows_of_their_own_in_a_settings_table():
    """As the demo left 04 and 03, whose files hold both, and the latter strata too."""
    results = load_results(ROOT / "figures/visual_rag")
    table = settings_table(results.query("experiment == '04_top_k_vs_one_in_k'"))
    ours, theirs = table.loc["Field Guide"], table.loc["Visual-RAG, reported"]
    assert (ours["GPT-4o"] == "").all()
    assert ours.loc["all questions", "field-guide-vlm-few"].str.endswith("n = 81)").all()
    assert (theirs["field-guide-vlm-few"] == "").all()
    assert theirs.loc[("", "zero-shot (no image)", 0), "GPT-4o"].startswith("53.7 [")
    for name in ("03_baselines", "04_top_k_vs_one_in_k"):
        table = settings_table(results[results["experiment"] == name])
        assert list(table.index.names) == ["source", "stratum", "setting", "k"]
        strata = {"in training data", "not in training data", "all questions", ""}
        assert set(table.index.get_level_values("stratum")) == strata
    of_both = results.query("source == 'Field Guide' and setting == 'one_in_k'")
    with pytest.raises(VragError, match=r"several numbers of .*model field.*Choose one experiment"):
        settings_table(of_both)  # never is one of two hidden


def test_numbers_of_two_judges_in_one_place_are_told_apart_by_the_judges():
    """And not by a retriever that stands in some rows alone."""
    row = {"model": "m", "setting": "top_k", "k": 3, "retriever": "clip", "unit": "percent", "n": 4}
    row |= {"metric": "accuracy", "ci_low": 0.0, "ci_high": 100.0}
    zero = {**row, "setting": "zero_shot", "k": 0, "retriever": "", "value": 50.0}
    rows = [{**row, "value": value} for value in (25.0, 75.0)] + [zero, {**zero, "value": 0.0}]
    results = pd.DataFrame(rows).assign(judge=["rule", "o4-mini"] * 2)
    with pytest.raises(VragError, match=r"Choose one judge, of rule, o4-mini\.$"):
        settings_table(results)
