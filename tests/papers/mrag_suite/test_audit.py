"""The audit of MRAG-Suite's printed numbers finds what another, made apart from this code,
lists (`published/AUDIT.md`, section 4; the specification's section 1), those that are
planted, and nothing else.
"""

from __future__ import annotations

import audits
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vrag_kit.papers import mrag_suite as paper
from vrag_kit.papers.audit import CONTRADICTS, audit_summary, contradictions
from vrag_kit.papers.mrag_suite.audit import DAMAGED, pivot_claim_metrics

TABLES = paper.audit.published_tables()


@pytest.fixture(scope="module")
def checks() -> pd.DataFrame:
    return paper.audit.audit(paper.audit.frames(TABLES))


def counts(checks: pd.DataFrame, check: str, table: int | str | None = None) -> list[int]:
    """agrees, by rounding, not comparable, contradicts"""
    rows = checks if table is None else checks[checks["table"] == str(table)]
    return audit_summary(rows).loc[check].iloc[1:].tolist()


def found(checks: pd.DataFrame, check: str) -> dict[str, tuple[float, float]]:
    """The contradictions of one check: where → (printed, recomputed)."""
    told = audits.found(checks, check, digits=1)
    return {where: numbers for (_, where), numbers in told.items()}


def test_most_rows_of_table_14_are_ragcheckers_and_none_the_papers(checks: pd.DataFrame) -> None:
    whole = checks[~checks["cell"].isin(checks.loc[checks["note"] == DAMAGED, "cell"])]
    for start, expected in (("RAGChecker: ", [5, 119, 31]), ("the paper's equations: ", [1, 0, 0])):
        rows = whole[whole["check"].str.startswith(start)]
        obeys = (rows["finding"] != CONTRADICTS).groupby([rows["table"], rows["cell"]]).all()
        # the specification: 119 of 126, 31 of 54, 5 of 29; the 30th has "41.4/0"
        assert [obeys[table].sum() for table in ("3", "14", "15")] == expected
        assert [len(obeys[table]) for table in ("3", "14", "15")] == [29, 126, 54]


@pytest.mark.slow
def test_hallucination_and_faithfulness_of_table_3_are_more_than_the_whole(
    checks: pd.DataFrame,
) -> None:
    check = "the paper's equations: H + F at most 100"
    assert [counts(checks, check, table)[3] for table in (3, 14, 15)] == [22, 0, 0]
    sums = {where: printed for where, (printed, _) in found(checks, check).items()}
    assert sums["Visual-RAG, Claude 3.5, single"] == pytest.approx(124.6)
    assert sums["VisRAG-ArXiv, Claude 3.5, single"] == pytest.approx(105.8)
    notes = contradictions(checks).query("check == @check and note != ''")["cell"]
    assert notes.tolist() == ["VisRAG-ArXiv, Claude 3.5, single"]


def test_what_is_0_by_its_formula_is_printed_otherwise(checks: pd.DataFrame) -> None:
    check = "the paper's equations: SK is 0"
    assert [counts(checks, check, table)[3] for table in (3, 14, 15)] == [29, 126, 54]
    check = "the paper's equations: V-HR and D-HR are 0"
    printed = contradictions(checks).query("check == @check")["reported"]
    assert sorted(printed) == [0.33, 3.7, 12.41, 32.44, 45.2, 66.87]


def test_f1_is_the_harmonic_mean_in_25_rows_of_table_3_alone(checks: pd.DataFrame) -> None:
    check = "F1 from reported P and R"
    assert counts(checks, check, 3) == [25, 0, 5, 0]
    assert counts(checks, check, 14) == [0, 0, 126, 0]
    assert counts(checks, check, 15) == [0, 0, 54, 0]
    assert counts(checks, "F1 at most the mean of P and R") == [210, 0, 0, 0]


def test_table_4_does_not_follow_from_its_own_tables(checks: pd.DataFrame) -> None:
    assert found(checks, "Table 4 recomputed from its rows") == {
        "Chart-MRAG, Phi-4, delta_cr": (54.54, 0.6),
        "Chart-MRAG, Phi-4, delta_cp": (59.5, 0.4),
        "Chart-MRAG, Phi-4, vis_hit_at_k": (81.38, 9.9),
        "Chart-MRAG, Phi-4, txt_miss_rate": (83.0, 90.5),
        "WebQA, Phi-4, vis_hit_at_k": (14.79, 14.5),
        "WebQA, Claude 2.5, delta_cp": (-0.35, -3.5),
        "WebQA, Claude 2.5, txt_miss_rate": (83.33, 83.5),
    }
    # 81.38 − (100 − 83.00) = 64.38
    within = found(checks, "the paper's equations: ΔCP of Table 4")
    assert within["Chart-MRAG, Phi-4"] == (59.5, 64.4)
    assert len(within) == 3


def test_50_of_239_cells_of_table_3_lie_within_the_three_modes(checks: pd.DataFrame) -> None:
    assert counts(checks, "Table 3 within the three modes") == [50, 0, 189, 0]


def test_table_13_is_table_2_cut_off_but_for_ten_cells_of_one_model(checks: pd.DataFrame) -> None:
    check = "the same cell, truncated decimals"
    assert counts(checks, check) == [86, 0, 0, 10]
    assert {where.split(", ")[1] for where in found(checks, check)} == {"Phi-4"}
    assert found(checks, check)["VisRAG-ArXiv, Phi-4, filtered"] == (26, 38)


def test_nine_cells_leave_the_dropped_questions_impossible(checks: pd.DataFrame) -> None:
    assert set(found(checks, "part not larger than whole")) == {
        "VisRAG-Doc, Qwen2.5-VL-72B",
        "VisRAG-Plot, Qwen2.5-VL-72B",
        "VisRAG-Slide, Qwen2.5-VL-72B",
        "VisRAG-Slide, Phi-4",
        "VisRAG-Plot, Pixtral-12B-2409",
        "VisRAG-Slide, Pixtral-12B-2409",
        "VisRAG-ArXiv, InternVL3-8B",
        "VisRAG-Doc, InternVL3-8B",
        "WebQA, InternVL3-8B",
    }
    assert counts(checks, "text: filtered questions are harder")[3] == 17


def test_the_orders_that_the_text_tells_hold_in_part_of_the_rows(checks: pd.DataFrame) -> None:
    assert counts(checks, "text: GPD lies between DO and GO") == [20, 0, 0, 28]
    assert counts(checks, "text: distractors alone are worse") == [37, 0, 0, 11]
    # 14 + 9 and 42 + 31 of 120
    assert counts(checks, "text: distractors raise hallucination")[3] == 23
    assert counts(checks, "text: distractors lower context precision")[3] == 73


def test_sums_and_differences_of_tables_1_7_and_8_hold(checks: pd.DataFrame) -> None:
    for check in (
        "sum over the data sets",
        "sum over the modalities",
        "ambiguous − clear",
        "ambiguous questions are a subset",
    ):
        assert counts(checks, check)[1:] == [0, 0, 0]


def test_sentences_and_tables(checks: pd.DataFrame) -> None:
    odd = found(checks, "text vs. tables")
    assert odd["overall, full"] == (62.5, 34.5)
    assert odd["WebQA, filtered"] == (52, 12.7)
    assert odd["claims supported, gold evidence"] == (90, 49.2)
    assert odd["expert-ex3-direct is best"] == (3, 1)
    agree = checks.query("check == 'text vs. tables' and finding == 'agrees'")
    assert agree["cell"].tolist() == ["drop by filtering", "items used"]
    assert found(checks, "best prompt's mean vs. Table 2") == {"VisRAG-ArXiv": (5.0, 45.2)}
    assert set(found(checks, "the data set's own paper")) == {
        "Visual-RAG, questions",
        "MRAG-Bench, avg_image_width_px",
        "MRAG-Bench, avg_image_height_px",
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "metric", "error", "check"),
    [
        (14, "faithfulness", 60.0, "the paper's equations: H + F at most 100"),
        (14, "self_knowledge", 60.0, "RAGChecker: SK at most P"),
        (14, "precision", 60.0, "RAGChecker: P at most F + SK"),
        (15, "f1", 90.0, "F1 at most the mean of P and R"),
    ],
)
def test_an_error_that_is_planted_is_found(
    checks: pd.DataFrame, number: int, metric: str, error: float, check: str
) -> None:
    place = int((TABLES[number]["metric"] == metric).to_numpy().argmax())
    planted = paper.audit.audit(
        paper.audit.frames(audits.with_error(TABLES, number, place, error=error))
    )
    assert counts(planted, check)[3] == counts(checks, check)[3] + 1


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    verdicts=st.lists(
        st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=5),
        min_size=1,
        max_size=8,
    )
)
def test_no_sheet_of_verdicts_breaks_the_inequalities(
    verdicts: list[list[tuple[bool, bool]]],
) -> None:
    """Means over answers, whatever claims are right (first) and supported (second)."""
    metrics = {
        "precision": [[right for right, _ in claims] for claims in verdicts],
        "faithfulness": [[told for _, told in claims] for claims in verdicts],
        "hallucination": [[not r and not told for r, told in claims] for claims in verdicts],
        "self_knowledge": [[r and not told for r, told in claims] for claims in verdicts],
    }
    means = {"recall": 0.0, "f1": 0.0}
    for name, answers in metrics.items():
        shares = [sum(claims) / len(claims) for claims in answers]
        means[name] = round(100 * sum(shares) / len(shares), 1)
    row = pd.DataFrame({"metric": list(means), "value": list(means.values())})
    row = row.assign(dataset="d", model="m", setting="gt_only", modality="single")
    wide = pivot_claim_metrics(row)
    found = paper.audit.inequalities({"t3": wide, "t14": wide, "t15": wide})
    assert len(found) == 4 * 3
    assert found["holds"].all()


def test_a_pair_in_a_row_of_single_values_gives_its_first() -> None:
    rows = pivot_claim_metrics(TABLES[3]).set_index(["dataset", "model", "modality"])
    assert rows.loc[("VisRAG-ArXiv", "Claude 3.5", "single"), "hallucination"] == 41.4
    assert rows.notna().all(axis=None)
