"""The shipped answerer of choices looks at examples and reads passages: on species it never
saw both help it, and another question's examples do not.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from conftest import WEIGHTS
from scipy import stats

from vrag_kit.analysis import paired_differences, per_query
from vrag_kit.benchmarks import load_mrag_bench, load_mrag_texts
from vrag_kit.generation import ask_models
from vrag_kit.judging import judge_answers
from vrag_kit.papers.mrag_bench.choices import MultipleChoiceJudge
from vrag_kit.papers.mrag_bench.results import with_scenarios
from vrag_kit.papers.mrag_bench.settings import (
    PROMPT_SETS,
    gt_rag,
    gt_text,
    mismatched_rag,
    no_rag,
    with_passages,
)
from vrag_kit.synthetic.mrag_bench.passages import TEXTS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def judged(mrag_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """Answers on the small edition, in the wording of the paper's appendix."""
    folder = tmp_path_factory.mktemp("drawn")
    benchmark = load_mrag_bench(mrag_folder, mrag_folder, cache_dir=folder)
    texts = load_mrag_texts(benchmark, mrag_folder / TEXTS)
    contexts = [*no_rag(benchmark), *gt_rag(benchmark), *mismatched_rag(benchmark), *gt_text(texts)]
    models = [str(WEIGHTS / "field-guide-vlm-choice")]
    prompts = PROMPT_SETS["paper"]
    both = with_passages(benchmark, texts)
    answers = ask_models(models, both, contexts, folder / "answers", prompts=prompts)
    return with_scenarios(judge_answers(MultipleChoiceJudge(), benchmark, answers), benchmark)


@pytest.mark.slow
def test_every_answer_ends_with_a_letter(judged: pd.DataFrame) -> None:
    assert judged["answer"].str.fullmatch(r"It is .+, answer [A-D]").all()
    assert judged["verdict"].str.fullmatch(r"[A-D] tagged(, options are letters)?").all()


def by_luck(n: int) -> float:
    """As many of `n` as letters that are drawn get right at most, but once in a thousand."""
    return float(stats.binom.isf(0.001, n, 0.25))


def test_examples_of_unseen_species_help_and_another_questions_do_not(
    judged: pd.DataFrame,
) -> None:
    new = judged[judged["stratum"] == "unseen species"]
    right = new.groupby("setting")["score"].sum()
    most = by_luck(new["query_id"].nunique())
    assert right["gt_rag"] > most
    assert right["mismatched_rag"] <= most
    values = per_query(new, by=["model", "setting"])
    gains = paired_differences(values, arm="setting", by=["model"], baseline="no_rag").set_index(
        "setting"
    )
    assert gains.loc["gt_rag", "ci_low"] > max(0, gains.loc["mismatched_rag", "value"])


def test_the_passage_that_tells_helps_on_unseen_species(judged: pd.DataFrame) -> None:
    """Against luck, and paired with no evidence; in Incomplete no passage says which chip is
    missing.
    """
    new = judged[(judged["stratum"] == "unseen species") & (judged["scenario"] != "incomplete")]
    values = per_query(new, by=["model", "setting"])
    gains = paired_differences(values, arm="setting", by=["model"], baseline="no_rag").set_index(
        "setting"
    )
    assert gains.loc["gt_text", "ci_low"] > 0.2
    assert new.query("setting == 'gt_text'")["score"].sum() > by_luck(new["query_id"].nunique())
