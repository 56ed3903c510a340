"""What the paper says of its results, compared with its own tables and with a notebook's
differences.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import factories
import pandas as pd
import pytest
from factories import judged_arms

from vrag_kit.papers import crag_mm as paper
from vrag_kit.types import Benchmark
from vrag_kit.workspace import Workspace

COLUMNS = ["model", "metric", "setting", "baseline", "value", "ci_low", "ci_high", "n"]


def of_paper(kind: str, count: int, split: str = "public-test") -> Benchmark:
    """A benchmark with the name of the released rows."""
    names = [f"q{number}" for number in range(count)]
    return factories.benchmark(names, name=f"crag-mm-{kind}-turn-{split}")


SINGLE, MULTI = of_paper("single", 1938), of_paper("multi", 40)
"""As many questions as the paper's public test; fewer conversations."""


def test_a_notebooks_differences_are_saved_with_the_statements_they_test(tmp_path: Path) -> None:
    scores = {"mm_llm": [-1.0] * 12, "task_3": [1.0] * 12}
    judged = judged_arms(scores, ["setting"], score_min=-1.0, score_max=1.0)
    benchmark = factories.benchmark([f"q{number}" for number in range(12)])
    gains = paper.results.truthfulness_gains(judged, benchmark, ["mm_llm"])
    checks = paper.results.check_statements(
        "52", gains, SINGLE, MULTI, Workspace(figures_dir=tmp_path)
    )
    verdicts = checks.set_index("statement_id")["verdict"]
    assert verdicts["search_helps_multi_turn"].startswith("not tested")
    assert "both_searches_help" not in verdicts


def test_a_statement_is_tested_on_the_papers_own_data_only(tmp_path: Path) -> None:
    """That about image quality is on the paper's questions, that about history is not."""
    rows = [
        ("mine", "truthfulness", "low quality", "normal", -20.0, -30.0, -10.0, 99),
        ("mine", "truthfulness", "needs history", "self-contained", -9.0, -12.0, -6.0, 99),
    ]
    table = pd.DataFrame(rows, columns=COLUMNS)
    checks = paper.results.check_statements(
        "53", table, SINGLE, MULTI, Workspace(figures_dir=tmp_path)
    )
    saved = pd.read_csv(tmp_path / "crag_mm" / "53_claims.csv")
    assert saved["source"].tolist() == [SINGLE.name, MULTI.name]
    assert checks["verdict"].tolist() == ["supported", "not tested: not the paper's data"]
    assert checks["p_holm"].notna().tolist() == [True, False]


@pytest.mark.parametrize(
    ("rows", "is_papers"),
    [
        (SINGLE, True),
        (of_paper("multi", 586), True),
        (of_paper("multi", 570), True),  # images are missing
        (of_paper("multi", 782), False),  # the private test
        (MULTI, False),
        (of_paper("single", 586), False),
        (replace(SINGLE, name="crag-mm-single-turn-validation"), False),
    ],
)
def test_the_papers_data_are_identified_by_name_and_count(rows: Benchmark, is_papers: bool) -> None:
    assert bool(paper.results.data_source(rows).edition) == is_papers
