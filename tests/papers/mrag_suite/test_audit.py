"""The audit of MRAG-Suite's printed numbers finds what another, made apart from this code,
lists (`published/AUDIT.md`, section 4; the specification's section 1), those that are
planted, and nothing else.
"""

from __future__ import annotations

import audits
import pandas as pd
import pytest

from vrag_kit.papers import mrag_suite as paper
from vrag_kit.papers.audit import CONTRADICTS
from vrag_kit.papers.mrag_suite.audit import DAMAGED

TABLES = paper.audit.published_tables()


@pytest.fixture(scope="module")
def checks():
    return paper.audit.audit(paper.audit.frames(TABLES))


def counts(checks: pd.DataFrame, check: str, table: int | str | None = None) -> list[int]:
    """agrees, by rounding, not comparable, contradicts"""
    rows = checks if table is None else checks[checks["table"] == str(table)]
    return audits.summary(rows).loc[check].tolist()


def found(checks: pd.DataFrame, check: str) -> dict[str, tuple[float, float]]:
    """The contradictions of one check: where → (printed, recomputed)."""
    told = audits.found(checks, check, digits=1)
    return {where: numbers for (_, where), numbers in told.items()}


def test_most_rows_of_table_14_are_ragcheckers_and_none_the_papers(checks):
    whole = checks[~checks["cell"].isin(checks.loc[checks["note"] == DAMAGED, "cell"])]
    for start, expected in (("RAGChecker: ", [5, 119, 31]), ("the paper's equations: ", [1, 0, 0])):
        rows = whole[whole["check"].str.startswith(start)]
        obeys = (rows["finding"] != CONTRADICTS).groupby([rows["table"], rows["cell"]]).all()
        # the specification: 119 of 126, 31 of 54, 5 of 29; the 30th has "41.4/0"
        assert [obeys[table].sum() for table in ("3", "14", "15")] == expected
        assert [len(obeys[table]) for table in ("3", "14", "15")] == [29, 126, 54]


def test_sentences_and_tables(checks):
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


def test_an_error_that_is_planted_is_found(checks):
    check = "the paper's equations: H + F at most 100"
    place = int((TABLES[14]["metric"] == "faithfulness").to_numpy().argmax())
    tables = audits.with_error(TABLES, 14, place, error=60.0)
    planted = paper.audit.audit(paper.audit.frames(tables))
    assert counts(planted, check)[3] == counts(checks, check)[3] + 1
