"""The paper's statements, checked against a notebook's differences."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import factories
import pandas as pd
import pytest
from mrag_rows import four_questions

from vrag_kit.errors import VragError
from vrag_kit.papers import mrag_bench as paper
from vrag_kit.papers import published
from vrag_kit.papers.mrag_bench.settings import QUESTIONS
from vrag_kit.types import Benchmark
from vrag_kit.workspace import Workspace

OPEN = "llava-hf-llava-onevision-qwen2-7b-ov-hf"


@pytest.fixture
def papers():
    """A benchmark with the paper's number of questions in *angle*."""
    angle = replace(four_questions().queries["0"], group="g")
    queries = [replace(angle, query_id=f"q{place}") for place in range(QUESTIONS["angle"])]
    return factories.benchmark(queries, name="the paper's")


def differences(*rows: tuple[str, str, float, float, float]) -> pd.DataFrame:
    """(model, setting, value, ci_low, ci_high) in points, overall."""
    columns = ["model", "setting", "value", "ci_low", "ci_high"]
    same = {"metric": "accuracy", "scenario": "overall", "baseline": "no_rag", "n": 60}
    return pd.DataFrame(rows, columns=columns).assign(**same)


def checked(
    folder: Path,
    notebook: str,
    table: pd.DataFrame,
    benchmark: Benchmark,
    means: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """The saved checks, by statement and model."""
    paper.results.check_statements(notebook, table, benchmark, Workspace(figures_dir=folder), means)
    claims = pd.read_csv(folder / "mrag_bench" / f"{notebook}_claims.csv")
    return claims.set_index(["statement_id", "system"])


def test_a_statement_is_tested_for_the_models_that_it_is_about(papers, tmp_path):
    gains = differences(
        ("mine", "gt_rag", 20.0, 12.0, 28.0),
        (OPEN, "gt_rag", 6.0, 1.0, 11.0),
        (OPEN, "retrieved_rag", 4.0, 1.0, 7.0),
        ("mine", "retrieved_rag", -3.0, -6.0, 0.0),
    )
    assert checked(tmp_path, "31", gains, papers)["verdict"].to_dict() == {
        ("gold_helps", "mine"): "supported",
        ("gold_helps", OPEN): "supported",
        ("gold_gain_open_models", OPEN): "compatible",
        ("retrieved_hurts_open_models", OPEN): "contradicted",
    }
    assert checked(tmp_path, "31", gains.iloc[:0], papers).empty
    elsewhere = checked(tmp_path, "31", gains, four_questions())["verdict"]
    assert set(elsewhere) == {"not tested: not the paper's data"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (10, "not tested: at chance"),  # a quarter: Wilson's 14.2 to 40.2 contains 25
        (20, "supported"),  # 35.2 to 64.8 does not
    ],
)
def test_a_setting_at_chance_decides_no_statement(papers, tmp_path, text, verdict):
    """Images are right 39 times of 40, so that the difference is clear in all three."""
    counts = {"gt_rag": 39, "gt_text": text, "no_rag": 10}
    scores = {name: [1.0] * n + [0.0] * (40 - n) for name, n in counts.items()}
    about = {"scenario": "angle", "aspect": "perspective", "stratum": "s", "marks": "", "k": 1}
    judged = factories.judged_arms(scores, ["setting"], model="mine", **about)
    gains = paper.results.gains_by_scenario(judged, weights=None, baseline="gt_text")
    means = paper.results.accuracy_by_scenario(judged, weights=None)
    found = checked(tmp_path, "32", gains, papers, means)["verdict"]
    assert found.to_dict() == {("gold_image_vs_text", "mine"): verdict}
    arms = paper.results.settings_at_chance(means)["setting"].tolist()
    assert arms == (["gt_text"] if "chance" in verdict else [])  # without evidence: expected


def test_the_correlation_with_retrieval_is_compared_with_the_papers(papers, tmp_path):
    tables = published("mrag_bench", 6), published("mrag_bench", 7)
    found = paper.retrieval.retrieval_accuracy_correlations(*tables)
    named = found.assign(value=found["pearson"], setting=found["metric"], baseline="")
    named["metric"] = "correlation of accuracy with " + named["metric"]
    claims = checked(tmp_path, "33", named, papers)
    assert claims["verdict"].tolist() == ["undecided", "compatible"]
    # r = 0.952; Fisher's interval of four points is tanh(atanh 0.952 ± 1.96)
    low = math.tanh(math.atanh(0.9519) - 1.96)
    assert claims["ci_low"].tolist() == pytest.approx([low, low], abs=0.01)


def test_a_folder_that_cannot_be_written_is_named(papers, tmp_path):
    (tmp_path / "mrag_bench").write_text("a file", encoding="utf-8")
    with pytest.raises(VragError, match="the claims cannot be saved"):
        checked(tmp_path, "31", differences(("mine", "gt_rag", 1, 0, 2)), papers)


def test_verdicts_hold_with_holm_over_the_statements_of_a_notebook(papers, tmp_path):
    """By hand: four gains of 10 points with reaches of 12.0, 8.2, 6.5 and 3.0 points. To 0.01
    they have z = 1.96 · 9.99 / reach = 1.63, 2.39, 3.01, 6.53: p = 0.103, 0.0169, 0.0026, 0;
    Holm's: 0.103, 2 · 0.0169 = 0.0339, 3 · 0.0026 = 0.0078, 0.
    """
    reaches = {"a": 12.0, "b": 8.2, "c": 6.5, "d": 3.0}
    rows = [(name, "gt_rag", 10.0, 10 - reach, 10 + reach) for name, reach in reaches.items()]
    found = checked(tmp_path, "31", differences(*rows), papers).loc["gold_helps"]
    expected = {"a": 0.103, "b": 0.0339, "c": 0.0078, "d": 0.0}
    assert found["p_holm"].to_dict() == pytest.approx(expected, abs=2e-3)
    assert found["verdict"].to_dict() == {"a": "undecided"} | dict.fromkeys("bcd", "supported")
