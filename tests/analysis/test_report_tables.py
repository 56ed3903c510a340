"""Numbers with intervals read as what they are."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vrag_kit.analysis import differences_table
from vrag_kit.analysis.report_tables import format_ci, format_ci_bound, format_p


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
