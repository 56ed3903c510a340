"""Sentences say what a table's intervals carry and no more; what is true of the Field
Guide alone is said only of the Field Guide.
"""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vrag_kit.analysis import compare, differences_in_words, in_percent
from vrag_kit.errors import VragError
from vrag_kit.fieldguide import remark

ROW = {"p": 0.001, "p_holm": 0.01, "metric": "accuracy", "unit": "percent", "n": 40}


def claims(*rows: dict[str, object]) -> pd.DataFrame:
    """Rows as `in_percent(compare(…))` gives them: arm and model, then numbers."""
    columns = ["setting", "model", "k", "value", "ci_low", "ci_high", *ROW]
    table = pd.DataFrame([{"model": "tiny", **ROW, **row} for row in rows])
    return table[[name for name in columns if name in table]]


def said(table: pd.DataFrame, **more: str) -> list[str]:
    """The sentences, without the line above them."""
    text = str(differences_in_words(table, than="zero-shot", **more))
    return [line for line in text.splitlines() if line.startswith("* ")]


def test_each_model_gets_a_sentence_with_what_is_higher_lower_and_undecided() -> None:
    table = claims(
        {"setting": "gt_clue", "value": 28.04, "ci_low": 17.2, "ci_high": 38.9},
        {"setting": "non_clue", "value": -14.2, "ci_low": -21.3, "ci_high": -8.0},
        {"setting": "gt_clue", "model": "big", "value": 3.5, "ci_low": -2.0, "ci_high": 9.1},
    )
    assert said(table) == [
        "* **tiny**: GT clue (1 image) higher by 28.0 [17.2, 38.9]; non-clue (1 image) lower by"
        " 14.2 [8.0, 21.3].",
        "* **big**: no difference shown for GT clue (1 image) (95 % interval −2.0 to +9.1).",
    ]
    head = str(differences_in_words(table, than="zero-shot", of="abstention")).splitlines()[0]
    assert head.startswith("Abstention against zero-shot, in points with 95 % intervals")
    assert "Holm" not in head  # nothing here is lost by the correction


def test_one_arm_at_several_k_with_one_verdict_is_one_clause() -> None:
    table = claims(
        {"setting": "top_k", "k": 3, "value": -6.9, "ci_low": -10.8, "ci_high": -3.3},
        {"setting": "top_k", "k": 5, "value": 1.0, "ci_low": -4.0, "ci_high": 6.0},
        {"setting": "top_k", "k": 7, "value": -0.0, "ci_low": -7.0, "ci_high": 5.0},
        {"setting": "top_k", "k": 20, "value": -10.3, "ci_low": -14.1, "ci_high": -6.5},
    )
    assert said(table) == [
        "* **tiny**: k = 3, 20 lower by 6.9 to 10.3 [3.3, 14.1]; no difference shown at k = 5, 7"
        " (95 % intervals within −7.0 to +6.0)."
    ]
    both = pd.concat([table.head(2), table.head(1).assign(setting="one_in_k")])
    assert said(both) == [
        "* **tiny**: top-k at k = 3 lower by 6.9 [3.3, 10.8]; no difference shown for top-k at"
        " k = 5 (95 % interval −4.0 to +6.0); 1-in-k at k = 3 lower by 6.9 [3.3, 10.8]."
    ]


def test_what_does_not_last_after_correction_is_said_so() -> None:
    rows = {"setting": "gt_clue", "value": 6.0, "ci_low": 0.2, "ci_high": 12.0, "p_holm": 0.09}
    assert said(claims(rows)) == [
        "* **tiny**: GT clue (1 image) higher, but not after correction, by 6.0 [0.2, 12.0]."
    ]
    head = str(differences_in_words(claims(rows), than="zero-shot")).splitlines()[0]
    assert "“but not after correction” marks" in head
    assert "(Holm)" in head


def test_an_arm_without_verdicts_says_so_and_claims_nothing() -> None:
    nan = float("nan")
    lost = {"value": nan, "ci_low": nan, "ci_high": nan, "p_holm": nan, "n": 0}
    table = claims(
        {"setting": "top_k", "k": 3, **lost},
        {"setting": "top_k", "k": 5, "value": 9.0, "ci_low": 2.0, "ci_high": 16.0},
        {"setting": "gt_clue", "k": 1, **lost},
    )
    assert said(table) == [
        "* **tiny**: top-k at k = 3 has no verdicts to compare, so nothing can be said; top-k at"
        " k = 5 higher by 9.0 [2.0, 16.0]; GT clue (1 image) has no verdicts to compare, so"
        " nothing can be said."
    ]


@given(st.floats(-100, 100), st.floats(0, 50), st.floats(0, 50), st.floats(0, 1), st.booleans())
def test_nothing_is_claimed_when_the_interval_holds_zero(
    value: float, below: float, above: float, p: float, known: bool
) -> None:
    low, high = value - below, value + above
    row = {"setting": "top_k", "value": value, "ci_low": low, "ci_high": high, "p_holm": p}
    (line,) = said(claims(row if known else {**row, "ci_low": float("nan")}))
    claimed = "higher" in line or "lower" in line
    assert claimed == (known and not low <= 0 <= high)
    if claimed:
        assert ("higher" in line) == (value > 0)
        assert ("not after correction" in line) == (p >= 0.05)


def test_a_table_without_rows_says_so_and_another_table_is_refused() -> None:
    nothing = claims({"setting": "top_k", "value": 0.0, "ci_low": 0.0, "ci_high": 0.0}).head(0)
    assert str(differences_in_words(nothing, than="zero-shot")) == (
        "There is nothing to compare with zero-shot."
    )
    with pytest.raises(VragError, match=r"no column 'ci_low'.*Expected in_percent"):
        differences_in_words(pd.DataFrame({"value": [1.0]}), than="zero-shot")


def test_sentences_come_from_a_comparison_as_it_is() -> None:
    queries = [f"q{number}" for number in range(30)]
    table = pd.DataFrame(
        [
            {"model": "tiny", "setting": name, "query_id": query, "group": query, "value": value}
            for number, query in enumerate(queries)
            for name, value in (("zero_shot", 0.0), ("gt_clue", float(number % 5 > 0)))
        ]
    )
    found = compare(table, arm="setting", by=["model"], baseline="zero_shot")
    (line,) = said(in_percent(found.assign(metric="accuracy")))
    assert line.startswith("* **tiny**: GT clue (1 image) higher by 80.0 [")


@pytest.mark.parametrize(
    "about",
    [
        "field-guide",
        "field-guide-small",
        "field-guide-vlm-few",
        ["Qwen/Qwen2.5-VL-7B-Instruct", {"model": "field-guide-vlm-many"}],
        "vrag_kit/fieldguide/weights/field-guide-clip-64",
        "vrag_kit/fieldguide/labels.csv",
    ],
)
def test_a_remark_on_the_field_guide_stands_below_its_results(about: object) -> None:
    text = str(remark(about, "  One.\n    Two."))
    assert text == "**About the Field Guide.** One.\nTwo."


@pytest.mark.parametrize(
    "about",
    [
        {"name": "field-guide", "annotations": "a.jsonl", "image_root": "images"},
        "Qwen/Qwen2.5-VL-7B-Instruct",
        ["gpt-4o@openai", {"model": "field-guide-made-by-me"}],
        "runs/labels/me.csv",
        "",
        [],
    ],
)
def test_nobody_elses_results_carry_a_remark_on_the_field_guide(about: object) -> None:
    assert remark(about, "One.") is None
