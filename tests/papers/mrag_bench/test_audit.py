"""The audit notebook finds what another audit, made apart from this code, lists
(`published/AUDIT.md`, section 3), planted errors, and nothing else.
"""

from __future__ import annotations

from functools import partial
from unittest import mock

import audits
import pandas as pd
import pytest

from vrag_kit.papers import published
from vrag_kit.papers.audit import possible_denominators

NOTEBOOK = "mrag_bench/38_mrag_audit.ipynb"
found = partial(audits.found, digits=2)
SUMMARY = {  # check → how many numbers agree, are rounded, are not comparable, contradict
    "difference from no RAG": [398, 0, 0, 2],
    "count consistency (questions)": [569, 2, 0, 23],
    "overall, all questions": [56, 4, 0, 6],
    "human gain, all questions": [0, 0, 0, 2],
    "share of each aspect": [3, 0, 0, 0],
    "share of each scenario": [9, 0, 0, 0],
    "sum of the scenarios": [1, 0, 0, 0],
    "the same cell in two tables": [70, 0, 0, 0],
    "text vs. tables": [18, 0, 0, 4],
}


@pytest.fixture(scope="module")
def checks(tmp_path_factory):
    checks: pd.DataFrame = audits.run_notebook(NOTEBOOK, tmp_path_factory.mktemp("audit"))["checks"]
    return checks


def test_every_check_has_its_findings(checks):
    summary = audits.summary(checks)
    assert summary.T.to_dict("list") == SUMMARY
    assert found(checks, "difference from no RAG") == {  # each has the other's baseline
        ("3", "GPT-4o, retrieved_rag, image, deformation"): (7.28, -6.31),
        ("3", "GPT-4o, retrieved_rag, image, incomplete"): (-34.74, -21.15),
    }
    odd = found(checks, "count consistency (questions)")
    turbo = [where for table, where in odd if table == "3" and where.startswith("GPT-4-Turbo")]
    assert len(turbo) == 9
    assert odd["3", "GPT-4-Turbo, retrieved_rag, image, angle"] == (66.53, 66.46)


def test_four_cells_of_gpt_4o_are_shares_of_71_and_42_questions():
    # 50/71 = 70.42 %, 55/71 = 77.46 %; 20/42 = 47.62 %, 13/42 = 30.95 %
    assert possible_denominators([70.42, 77.46], 1, 100, digits=2) == [71]
    assert possible_denominators([47.62, 30.95], 1, 83, digits=2) == [42]


def test_models_weigh_by_questions_and_people_by_scenarios(checks):
    assert found(checks, "overall, all questions") == {
        ("3", "Human performance, no_rag, none"): (38.47, 35.55),
        ("3", "Human performance, retrieved_rag, image"): (61.38, 61.20),
        ("3", "Human performance, gt_rag, image"): (71.63, 73.02),
        ("3", "GPT-4-Turbo, retrieved_rag, image"): (58.95, 59.24),
        ("3", "GPT-4o, gt_rag, image"): (74.50, 74.58),
        ("4", "GPT-4-Turbo, retrieved_rag, image"): (58.95, 59.24),
    }
    assert found(checks, "human gain, all questions") == {
        ("3", "Human performance, retrieved_rag, image, overall"): (22.91, 25.64),
        ("3", "Human performance, gt_rag, image, overall"): (33.16, 37.47),
    }


def test_four_statements_of_the_text_do_not_follow_from_the_tables(checks):
    assert found(checks, "text vs. tables") == {
        ("3", "largest proprietary gain"): (9.69, 11.23),
        ("3", "lead of GPT-4o, GT"): (15.52, 15.22),
        ("4", "ground truth, LLaVA-NeXT-Interleave-7B, preprint"): (11.09, 11.90),
        ("figure 2", "questions of perspective and others"): (892, 898),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "place", "column", "check"),
    [
        (3, 25, "delta", "difference from no RAG"),
        (7, 33, "value", "the same cell in two tables"),
    ],
)
def test_a_planted_error_is_found(checks, number, place, column, check, tmp_path):
    def damaged(paper: str, table: int | str, **filters: str) -> pd.DataFrame:
        tables = {table: published(paper, table, **filters)}
        if table == number:
            tables = audits.with_error(tables, number, place, column=column, error=0.3)
        return tables[table]

    with mock.patch("vrag_kit.papers.published", damaged):
        names = audits.run_notebook(NOTEBOOK, tmp_path)
    more = set(found(names["checks"], check)) - set(found(checks, check))
    assert more
    assert all(where[0].startswith(str(number)) for where in more)
