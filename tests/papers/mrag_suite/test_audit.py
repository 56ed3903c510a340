"""The audit of MRAG-Suite's printed numbers finds what another, made apart from this code,
lists (`published/AUDIT.md`, section 4; the specification's section 1), those that are
planted, and nothing else.
"""

from __future__ import annotations

import audits
import pandas as pd
import pytest

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


def test_an_error_that_is_planted_is_found(checks: pd.DataFrame) -> None:
    check = "the paper's equations: H + F at most 100"
    place = int((TABLES[14]["metric"] == "faithfulness").to_numpy().argmax())
    tables = audits.with_error(TABLES, 14, place, error=60.0)
    planted = paper.audit.audit(paper.audit.frames(tables))
    assert counts(planted, check)[3] == counts(checks, check)[3] + 1


def test_a_pair_in_a_row_of_single_values_gives_its_first() -> None:
    rows = pivot_claim_metrics(TABLES[3]).set_index(["dataset", "model", "modality"])
    assert rows.loc[("VisRAG-ArXiv", "Claude 3.5", "single"), "hallucination"] == 41.4
    assert rows.notna().all(axis=None)
