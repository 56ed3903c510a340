"""A finding says what its interval carries and no more; what is true of the Field
Guide alone is said only of the Field Guide.
"""

from __future__ import annotations

import pytest

from vrag_kit.analysis.report_tables import finding
from vrag_kit.synthetic import synthetic_mark

ROW = {"value": 6.0, "ci_low": 0.2, "ci_high": 12.0, "p_holm": 0.01, "unit": "percent"}
NAN = float("nan")


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
        ({"ci_low": NAN}, "the difference of top-k to zero-shot has no interval"),
        ({"value": NAN, "ci_low": NAN}, "top-k and zero-shot have no scores to compare"),
    ],
)
def test_a_finding_says_size_and_correction(numbers: dict[str, float], said: str) -> None:
    assert finding({**ROW, **numbers}, "top-k", "zero-shot") == said


@pytest.mark.parametrize(
    "about",
    [
        "field-guide-small",
        ["Qwen/Qwen2.5-VL-7B-Instruct", {"model": "field-guide-vlm-many"}],
        "vrag_kit/synthetic/weights/field-guide-clip-64",
    ],
)
def test_figures_of_synthetic_data_are_marked(about: object) -> None:
    assert synthetic_mark(about) == "synthetic data"
