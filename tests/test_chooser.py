"""The shipped answerer of choices looks at examples: on species it never saw they help it,
and another question's do not.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from conftest import WEIGHTS

from vrag_kit.analysis import compare, per_query
from vrag_kit.benchmarks import load_mrag_bench
from vrag_kit.fieldguide.scenarios import draw_mrag_bench
from vrag_kit.generation import ask_models
from vrag_kit.judging import judge_all
from vrag_kit.papers.mrag_bench import (
    WORDINGS,
    ChoiceJudge,
    gt_rag,
    no_rag,
    swapped_rag,
    with_scenarios,
)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """Answers on the small edition, in the wording of the paper's appendix."""
    folder: Path = tmp_path_factory.mktemp("drawn")
    edition = draw_mrag_bench("small", folder / "mrag")
    benchmark = load_mrag_bench(edition, edition, cache_dir=folder)
    contexts = [*no_rag(benchmark), *gt_rag(benchmark), *swapped_rag(benchmark)]
    models = [str(WEIGHTS / "field-guide-vlm-choices")]
    wording = WORDINGS["paper"]
    answers = ask_models(models, benchmark, contexts, folder / "answers", wording=wording)
    return with_scenarios(judge_all(ChoiceJudge(), benchmark, answers), benchmark)


def test_every_answer_ends_with_a_letter(judged: pd.DataFrame) -> None:
    assert judged["answer"].str.fullmatch(r"It is .+, answer [A-D]").all()
    assert judged["verdict"].str.fullmatch(r"[A-D] tagged(, options are letters)?").all()


def test_examples_of_unseen_species_help_and_another_questions_do_not(
    judged: pd.DataFrame,
) -> None:
    values = per_query(judged[judged["stratum"] == "new"], by=["model", "setting"])
    gains = compare(values, arm="setting", by=["model"], baseline="no_rag")
    by_setting = gains.set_index("setting")
    assert by_setting.loc["gt_rag", "ci_low"] > 0.2
    assert by_setting.loc["swapped_rag", "ci_low"] < 0
    assert by_setting.loc["swapped_rag", "value"] < by_setting.loc["gt_rag", "ci_low"]
