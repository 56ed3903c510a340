"""The audit of CRAG-MM's printed numbers finds what another, made apart from this code,
lists (`published/AUDIT.md`, section 2; the specification's section 6), those that are
planted, and nothing else.
"""

from __future__ import annotations

from functools import partial

import audits
import pandas as pd
import pytest

from vrag_kit.papers import crag_mm as paper
from vrag_kit.papers import published
from vrag_kit.papers.crag_mm.audit import independent_turns_early_stop

TABLES = paper.audit.published_tables()
found = partial(audits.found, digits=1)


@pytest.fixture(scope="module")
def checks():
    return paper.audit.audit(TABLES)


def counts(checks: pd.DataFrame, check: str) -> list[int]:
    return audits.summary(checks).loc[check].tolist()


def test_case_6_one_single_turn_row_has_another_truthfulness(checks):
    assert counts(checks, "truthfulness, single questions") == [59, 9, 0, 1]
    assert found(checks, "truthfulness, single questions") == {
        ("8", "InternVL3.5 38B, mm_llm"): (-7.9, -8.6)
    }
    mini = published("crag_mm", 8).query("model == 'GPT-5 Mini' and setting == 'task_2'")
    told = mini.set_index("metric")["value"]
    # 48.7 − 17.2 = 31.5
    assert told["accuracy"] - told["hallucination"] == pytest.approx(told["truthfulness"])
    assert told["truthfulness"] == 31.5


def test_seven_statements_do_not_follow_from_the_tables(checks):
    assert found(checks, "text vs. tables") == {
        ("5", "most hallucination, single_turn"): (49, 52.9),
        ("5", "most hallucination, multi_turn"): (35, 50.1),
        ("2", "low-quality egocentric images"): (15, 13.9),
        ("3", "domains"): (14, 13),
        ("3", "question types"): (4, 6),
        ("5", "fewest early stops"): (27, 25.0),
        ("9", "fewest stops, straightforward"): (44, 43.5),
    }
    rounded = checks.query("check == 'text vs. tables' and finding.str.contains('rounding')")
    assert rounded["cell"].tolist() == ["industry, truthfulness, single_turn"]


def test_one_system_stops_far_less_often_than_independent_turns_would():
    # Claude Sonnet and GPT-5 in Table 5: printed 25.0 and 26.9
    assert round(100 * independent_turns_early_stop((58.7, 6.6, 34.6))) == 44
    assert round(100 * independent_turns_early_stop((70.0, 3.9, 26.1))) == 27
