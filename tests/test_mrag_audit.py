"""The audit of MRAG-Bench's printed numbers finds what another, made apart from this code,
lists (`published/AUDIT.md`, section 3), those that are planted, and nothing else.
"""

from __future__ import annotations

from functools import partial

import audits
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vrag_kit.papers import mrag_bench as paper
from vrag_kit.papers.audit import audit_summary, contradictions, possible_denominators
from vrag_kit.papers.mrag_bench.audit import QUESTIONS

TABLES = paper.audit.published_tables()
found = partial(audits.found, digits=2)


@pytest.fixture(scope="module")
def checks() -> pd.DataFrame:
    return paper.audit.audit(TABLES)


@pytest.mark.slow
def test_of_400_differences_two_use_each_others_baseline(checks: pd.DataFrame) -> None:
    assert audit_summary(checks).loc["difference from no RAG"].iloc[1:].sum() == 400
    assert found(checks, "difference from no RAG") == {
        ("3", "GPT-4o, retrieved_rag, image, deformation"): (7.28, -6.31),
        ("3", "GPT-4o, retrieved_rag, image, incomplete"): (-34.74, -21.15),
    }
    notes = contradictions(checks).query("check == 'difference from no RAG'")["note"]
    assert notes.tolist() == [
        "fits the value without RAG of incomplete",
        "fits the value without RAG of deformation",
    ]


def test_nine_whole_numbers_of_questions_give_all_shares_of_figure_2(checks: pd.DataFrame) -> None:
    assert sum(QUESTIONS.values()) == 1353
    rows = checks[checks["table"].eq("figure 2") & checks["check"].str.startswith("share")]
    assert rows["finding"].tolist() == ["agrees"] * 12


def test_of_594_cells_23_are_no_whole_number_of_questions(checks: pd.DataFrame) -> None:
    rows = checks[checks["check"] == "count consistency (questions)"]
    assert len(rows) == 594
    odd = found(checks, "count consistency (questions)")
    assert len(odd) == 23
    turbo = [where for table, where in odd if table == "3" and where.startswith("GPT-4-Turbo")]
    assert len(turbo) == 9
    assert odd["3", "GPT-4-Turbo, retrieved_rag, image, angle"] == (66.53, 66.46)
    cut_off = rows[rows["finding"] == "consistent with rounding"]
    assert cut_off[["cell", "reported"]].to_numpy().tolist() == [
        ["GPT-4o, no_rag, none, temporal", 73.82],
        ["GPT-4o, gt_rag, image, deformation", 68.62],
    ]


def test_four_cells_of_gpt_4o_are_shares_of_71_and_42_questions(checks: pd.DataFrame) -> None:
    # 50/71 = 70.42 %, 55/71 = 77.46 %; 20/42 = 47.62 %, 13/42 = 30.95 %
    assert possible_denominators([70.42, 77.46], 1, 100, digits=2) == [71]
    assert possible_denominators([47.62, 30.95], 1, 83, digits=2) == [42]
    notes = contradictions(checks)["note"]
    assert sorted(note.split("; ")[1] for note in notes if " fit " in note) == [
        "47.62 and 30.95 fit 42",
        "47.62 and 30.95 fit 42",
        "70.42 and 77.46 fit 71",
        "70.42 and 77.46 fit 71",
    ]


def test_models_weigh_by_questions_and_people_by_scenarios(checks: pd.DataFrame) -> None:
    assert len(checks[checks["check"] == "overall, all questions"]) == 66
    assert found(checks, "overall, all questions") == {
        ("3", "Human performance, no_rag, none"): (38.47, 35.55),
        ("3", "Human performance, retrieved_rag, image"): (61.38, 61.20),
        ("3", "Human performance, gt_rag, image"): (71.63, 73.02),
        ("3", "GPT-4-Turbo, retrieved_rag, image"): (58.95, 59.24),
        ("3", "GPT-4o, gt_rag, image"): (74.50, 74.58),
        ("4", "GPT-4-Turbo, retrieved_rag, image"): (58.95, 59.24),
    }
    notes = contradictions(checks).query("check == 'overall, all questions'")["note"]
    assert [bool(note) for note in notes] == [True, True, True, False, False, False]
    assert found(checks, "human gain, all questions") == {
        ("3", "Human performance, retrieved_rag, image, overall"): (22.91, 25.64),
        ("3", "Human performance, gt_rag, image, overall"): (33.16, 37.47),
    }


def test_the_weighted_mean_agrees_with_a_hand_calculation() -> None:
    cells = pd.DataFrame(
        [
            {"model": "m", "setting": "s", "modality": "x", "scenario": name, "value": 0.0}
            for name in ("overall", *QUESTIONS)
        ]
    )
    cells.loc[cells["scenario"] == "angle", "value"] = 90.0
    (row,) = paper.audit.overall_means(cells).itertuples()
    assert row.weighted == pytest.approx(90 * 322 / 1353)
    assert row.plain == pytest.approx(10)


def test_repeated_rows_are_equal(checks: pd.DataFrame) -> None:
    rows = checks[checks["check"] == "the same cell in two tables"]
    assert len(rows) == 70  # six rows of Table 4 and one of Table 7, of ten cells
    assert found(checks, "the same cell in two tables") == {}


def test_four_statements_of_the_text_do_not_follow_from_the_tables(checks: pd.DataFrame) -> None:
    assert found(checks, "text vs. tables") == {
        ("3", "largest proprietary gain"): (9.69, 11.23),
        ("3", "lead of GPT-4o, GT"): (15.52, 15.22),
        ("4", "ground truth, LLaVA-NeXT-Interleave-7B, preprint"): (11.09, 11.90),
        ("figure 2", "questions of perspective and others"): (892, 898),
    }
    assert len(checks[checks["check"] == "text vs. tables"]) == 22


def test_the_correlation_of_figure_5_rests_on_four_points_and_turns_round() -> None:
    table = paper.audit.retriever_correlations(TABLES).set_index("scenario")
    assert set(table["n"]) == {4}
    overall = table.loc["overall"]
    assert (round(overall["pearson"], 3), overall["spearman"]) == (0.952, pytest.approx(0.8))
    by_scenario = table.drop("overall")["pearson"].round(2)
    assert (by_scenario.idxmin(), by_scenario.min()) == ("incomplete", -0.97)
    assert (by_scenario.idxmax(), by_scenario.max()) == ("occlusion", 0.93)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "place", "column", "check"),
    [
        (3, 25, "delta", "difference from no RAG"),
        (6, 3, "value", "count consistency (questions)"),
        (4, 10, "value", "overall, all questions"),
        (7, 33, "value", "the same cell in two tables"),
    ],
)
def test_an_error_that_is_planted_is_found(
    checks: pd.DataFrame, number: int, place: int, column: str, check: str
) -> None:
    planted = paper.audit.audit(audits.with_error(TABLES, number, place, column=column, error=0.3))
    more = set(found(planted, check)) - set(found(checks, check))
    assert more, TABLES[number].loc[place].to_dict()
    assert all(where[0].startswith(str(number)) for where in more)


@given(st.integers(1, 60), st.lists(st.integers(0, 60), min_size=1, max_size=3))
def test_shares_of_n_questions_fit_n(n: int, right: list[int]) -> None:
    shares = [round(100 * min(each, n) / n, 2) for each in right]
    assert n in possible_denominators(shares, 1, 60, digits=2)
