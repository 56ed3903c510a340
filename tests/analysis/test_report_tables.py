"""Numbers with intervals read as what they are, and a finding says what its interval carries."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vrag_kit.analysis import differences_table
from vrag_kit.analysis.report_tables import finding, format_ci, format_ci_bound, format_p
from vrag_kit.synthetic import synthetic_mark


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
def test_a_cell_says_what_there_is(value: float, low: float, high: float, cell: str) -> None:
    assert format_ci(value, low, high) == cell


@given(st.floats(-100, 100).filter(lambda end: abs(end) >= 1e-9), st.integers(0, 3))
def test_an_end_that_is_not_0_never_reads_as_0(end: float, decimals: int) -> None:
    told = format_ci_bound(end, decimals)
    assert np.sign(float(told)) == np.sign(end)
    assert abs(float(told) - end) <= 0.5 * 10.0**-decimals + 1e-12


def test_a_table_of_differences_shows_no_p_of_0_and_names_what_a_row_lacks() -> None:
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


def test_p_has_two_digits_or_as_many_as_distinguish_it_from_the_level() -> None:
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
def test_a_finding_says_size_and_correction(numbers: dict[str, float], said: str) -> None:
    assert finding({**ROW, **numbers}, "top-k", "zero-shot") == said


def test_figures_of_synthetic_data_are_marked() -> None:
    shipped = "vrag_kit/synthetic/weights/field-guide-clip-64"
    models = ["Qwen/Qwen2.5-VL-7B-Instruct", {"model": "field-guide-vlm-many"}]
    for about in ("field-guide-small", models, shipped):
        assert synthetic_mark(about) == "synthetic data"
