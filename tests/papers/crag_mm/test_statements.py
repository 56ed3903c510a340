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


def of_paper(kind: str, count: int, split: str = "public-test") -> Benchmark:
    """A benchmark with the name of the released rows."""
    names = [f"q{number}" for number in range(count)]
    return factories.benchmark(names, name=f"crag-mm-{kind}-turn-{split}")


SINGLE, MULTI = of_paper("single", 1938), of_paper("multi", 40)
"""As many questions as the paper's public test; fewer conversations."""


def checked(folder: Path, notebook: str, differences: pd.DataFrame) -> pd.DataFrame:
    """The saved checks of a notebook's differences, by statement."""
    at = Workspace(figures_dir=folder)
    paper.results.check_statements(notebook, differences, SINGLE, MULTI, at)
    return pd.read_csv(folder / f"crag_mm/{notebook}_claims.csv", index_col="statement_id")


def test_a_notebooks_differences_are_saved_with_the_statements_they_test(tmp_path: Path) -> None:
    scores = {"mm_llm": [-1.0] * 12, "task_3": [1.0] * 12}
    judged = judged_arms(scores, ["setting"], score_min=-1.0, score_max=1.0)
    benchmark = factories.benchmark([f"q{number}" for number in range(12)])
    gains = paper.results.truthfulness_gains(judged, benchmark, ["mm_llm"])
    verdicts = checked(tmp_path, "52", gains)["verdict"]
    assert list(verdicts.index) == ["search_helps_multi_turn", "search_multi_turn_accuracy"]
    assert set(verdicts) == {"not tested: not the paper's data"}


def test_a_statement_is_tested_on_the_papers_own_data_only(tmp_path: Path) -> None:
    """That about image quality is on the paper's questions, that about history is not."""
    columns = ["setting", "baseline", "value", "ci_low", "ci_high"]
    rows = [
        ("low quality", "normal", -20.0, -30.0, -10.0),
        ("needs history", "self-contained", -9.0, -12.0, -6.0),
    ]
    table = pd.DataFrame(rows, columns=columns).assign(model="m", metric="truthfulness", n=99)
    found = checked(tmp_path, "53", table)
    assert found["source"].tolist() == [SINGLE.name, MULTI.name]
    assert found["verdict"].tolist() == ["supported", "not tested: not the paper's data"]
    assert found["p_holm"].notna().tolist() == [True, False]


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
    assert bool(paper.results.data_source(rows)["data_version"]) == is_papers
