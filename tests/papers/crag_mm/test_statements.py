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

from vrag_kit.config import Workspace
from vrag_kit.errors import VragError
from vrag_kit.papers import crag_mm as paper
from vrag_kit.papers import published_gains
from vrag_kit.types import Benchmark

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
    checks = paper.statements.check_statements(
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
    checks = paper.statements.check_statements(
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
    assert bool(paper.statements.data_source(rows).edition) == is_papers


def test_a_folder_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "crag_mm").write_text("a file", encoding="utf-8")
    none = pd.DataFrame(columns=COLUMNS)
    with pytest.raises(VragError, match="the claims cannot be saved"):
        paper.statements.check_statements(
            "52", none, SINGLE, MULTI, Workspace(figures_dir=tmp_path)
        )


def test_published_gains_are_differences_of_published_means() -> None:
    gains = published_gains("crag_mm", 8, ["mm_llm", "task_1"])
    chosen = gains.query("model == 'GPT-5 Mini' and metric == 'truthfulness'")
    steps = chosen.set_index(["baseline", "setting"])["value"]
    total = steps["mm_llm", "task_1"] + steps["task_1", "task_2"]
    assert steps["mm_llm", "task_2"] == pytest.approx(total)
