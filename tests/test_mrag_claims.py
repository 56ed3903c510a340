"""What MRAG-Bench's text says, held against a notebook's differences."""

from __future__ import annotations

import math
from pathlib import Path

import factories
import pandas as pd
import pytest

from vrag_kit.analysis import load_results
from vrag_kit.errors import VragError
from vrag_kit.papers import mrag_bench as paper
from vrag_kit.papers import published_gains
from vrag_kit.papers.mrag_bench.statements import STATEMENTS, published_name
from vrag_kit.papers.sources import DataSource
from vrag_kit.papers.statements import published_verdicts

OPEN = "llava-hf-llava-onevision-qwen2-7b-ov-hf"

PAPERS = DataSource("the paper's", "MRAG-Bench")


def differences(*rows: tuple[str, str, float, float, float]) -> pd.DataFrame:
    """(model, setting, value, ci_low, ci_high) in points, overall."""
    columns = ["model", "setting", "value", "ci_low", "ci_high"]
    return pd.DataFrame(rows, columns=columns).assign(scenario="overall", baseline="no_rag", n=60)


def test_a_checkpoint_is_known_by_what_table_3_calls_it() -> None:
    assert published_name(OPEN) == "LLaVA-OneVision"
    assert published_name("gpt-4o-2024-05-13") == "GPT-4o"
    assert published_name("mistral-community-pixtral-12b") == "Pixtral-12B"
    assert published_name("field-guide-vlm-many") == "field-guide-vlm-many"


def test_the_papers_own_numbers_bear_its_sentences_out_but_for_two() -> None:
    overall = {"scenario": "overall", "model_group": paper.results.MODEL_GROUPS}
    printed = {said.name: published_verdicts("mrag_bench", said, **overall) for said in STATEMENTS}
    assert printed["gold_helps"] == ["supported"] * 14
    # Claude's 11.23 is more than 9.69, and one of ten open models does not decline
    assert printed["gold_gain_proprietary_models"].count("contradicted") == 1
    assert printed["retrieved_hurts_open_models"].count("contradicted") == 1
    open_models = {"model_group": "open_source", "scenario": "overall"}
    gains = published_gains("mrag_bench", 3, ["no_rag"], **open_models)
    assert (gains.query("setting == 'retrieved_rag'")["value"] > 0).sum() == 1


def test_a_sentence_is_asked_of_the_models_that_it_is_about(tmp_path: Path) -> None:
    told = differences(
        ("mine", "gt_rag", 20.0, 12.0, 28.0),
        (OPEN, "gt_rag", 6.0, 1.0, 11.0),
        (OPEN, "retrieved_rag", 4.0, 1.0, 7.0),
        ("mine", "retrieved_rag", -3.0, -6.0, 0.0),
    )
    claims = paper.statements.check_statements("31", told, PAPERS, tmp_path).set_index(
        ["statement_id", "system"]
    )
    assert claims["verdict"].to_dict() == {
        ("gold_helps", "mine"): "supported",
        ("gold_helps", OPEN): "supported",
        ("gold_gain_open_models", OPEN): "compatible",
        ("retrieved_hurts_open_models", OPEN): "contradicted",
        (
            "gold_gain_proprietary_models",
            "GPT-4-Turbo, Gemini Pro, Claude 3.5 Sonnet, GPT-4o",
        ): "not run",
        (
            "retrieved_helps_proprietary_models",
            "GPT-4-Turbo, Gemini Pro, Claude 3.5 Sonnet, GPT-4o",
        ): "not run",
    }
    table = paper.statements.statements_table(tmp_path).set_index("section")
    assert table["verdict"].value_counts().to_dict() == {
        "not run": 9,
        "supported": 1,
        "compatible": 1,
        "contradicted": 1,
    }
    assert table["source"].iloc[0] == "the paper's (MRAG-Bench)"
    assert table["reported"].iloc[0] == "14 of 14"
    # what ten examples are ahead of one is drawn in Figure 5, and printed nowhere
    assert (table["reported"] == "not reported").sum() == 1


def test_saved_claims_say_what_their_number_is(tmp_path: Path) -> None:
    told = differences(("mine", "gt_rag", 20.0, 12.0, 28.0))
    paper.statements.check_statements("31", told, PAPERS, tmp_path)
    both = paper.retrieval.published_retrieval_vs_accuracy().assign(model="mine")
    said = paper.retrieval.retrieval_accuracy_correlations(both)
    said = said.assign(value=said["pearson"], setting=said["metric"], baseline="")
    paper.statements.check_statements("33", said, PAPERS, tmp_path)
    rows = load_results(tmp_path)[["experiment", "metric", "unit"]].drop_duplicates()
    assert rows.to_numpy().tolist() == [
        ["31_claims", "difference in accuracy", "points"],
        ["33_claims", "correlation of accuracy with hit@5", ""],
    ]


def test_pictures_are_set_against_texts_where_the_baseline_says_so(tmp_path: Path) -> None:
    ahead = differences(("mine", "gt_rag", 5.0, 2.0, 8.0), ("mine", "retrieved_rag", 1, -2, 4))
    ahead["baseline"] = ["gt_text", "retrieved_text"]
    claims = paper.statements.check_statements("32", ahead, PAPERS, tmp_path)
    assert claims["verdict"].tolist() == ["undecided", "supported"]


def answers(k: int, right: list[int]) -> pd.DataFrame:
    """Ten questions asked with `k` examples, of which these are right."""
    scores = [float(place in right) for place in range(10)]
    told = {"model": "mine", "k": k, "setting": "gt_rag" if k else "no_rag", "score": scores}
    return factories.judged(**told, scenario="angle", aspect="perspective")


@pytest.mark.slow
def test_numbers_of_examples_are_compared_as_the_sentences_say(tmp_path: Path) -> None:
    """By hand, of ten questions: 3 right without, 8 with one, 9 with ten examples."""
    judged = pd.concat([answers(0, [0, 1, 2]), answers(1, [*range(8)]), answers(10, [*range(9)])])
    said = paper.statements.statement_differences(
        "34", judged.reset_index(drop=True), weights=None, arm="k"
    )
    overall = said[said["scenario"] == "overall"].set_index(["setting", "baseline"])["value"]
    assert overall.to_dict() == {("1", "0"): 50.0, ("10", "1"): 10.0}
    claims = paper.statements.check_statements("34", said, PAPERS, tmp_path).set_index(
        "statement_id"
    )
    assert claims["verdict"].to_dict() == {
        "one_example_helps": "supported",
        "ten_vs_one_example": "undecided",
        "twenty_vs_ten_examples": "not run",
    }
    alone = paper.statements.statement_differences("34", answers(0, [0]), weights=None, arm="k")
    assert set(paper.statements.check_statements("34", alone, PAPERS, tmp_path)["verdict"]) == {
        "not run"
    }


def evidence(setting: str, right: int) -> pd.DataFrame:
    """Forty questions asked with an example or a passage, of which the first are right."""
    told = {"k": 1, "setting": setting, "score": [float(place < right) for place in range(40)]}
    return factories.judged(model="mine", **told, scenario="angle", aspect="perspective")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (10, "not tested: at chance"),  # a quarter: Wilson's 14.2 to 40.2 contains 25
        (20, "supported"),  # 35.2 to 64.8 does not
        (2, "supported"),  # 1.4 to 16.5: misled, which is no chance either
    ],
)
def test_an_arm_at_chance_decides_no_statement(tmp_path: Path, text: int, verdict: str) -> None:
    """Pictures are right 39 times of 40, so that the difference is clear in all three."""
    judged = pd.concat([evidence("gt_rag", 39), evidence("gt_text", text)], ignore_index=True)
    said = paper.statements.statement_differences("32", judged, weights=None)
    claims = paper.statements.check_statements("32", said, PAPERS, tmp_path).set_index(
        "statement_id"
    )
    assert claims.loc["gold_image_vs_text", "ci_low"] > 0
    assert claims.loc["gold_image_vs_text", "verdict"] == verdict
    arms = paper.statements.settings_at_chance(judged, weights=None)["setting"].tolist()
    assert arms == (["gt_text"] if "chance" in verdict else [])
    table = paper.statements.statements_table(tmp_path)
    assert set(table["verdict"]) == {verdict, "not run"}


def test_asking_without_evidence_is_expected_at_chance_and_is_no_such_arm() -> None:
    alone = evidence("no_rag", 10).assign(k=0)
    assert paper.statements.settings_at_chance(alone, weights=None).empty


def test_the_correlation_with_what_is_found_is_held_against_the_papers(tmp_path: Path) -> None:
    together = paper.retrieval.retrieval_accuracy_correlations(
        paper.retrieval.published_retrieval_vs_accuracy()
    )
    said = together.assign(value=together["pearson"], setting=together["metric"], baseline="")
    claims = paper.statements.check_statements("33", said, PAPERS, tmp_path).set_index(
        "statement_id"
    )
    # r = 0.952; Fisher's interval of four points is tanh(atanh 0.952 ± 1.96)
    low, high = (math.tanh(math.atanh(0.9519) + side * 1.96) for side in (-1, 1))
    assert claims["ci_low"].tolist() == pytest.approx([low, low], abs=0.01)
    assert claims["ci_high"].tolist() == pytest.approx([high, high], abs=0.01)
    assert claims["verdict"].tolist() == ["undecided", "compatible"]
    statements = [said for said in STATEMENTS if said.notebook == "33"]
    printed = [published_verdicts("mrag_bench", said) for said in statements]
    assert printed == [["supported"]] * 2


def test_without_any_there_is_no_table_and_a_folder_that_cannot_be_written_says_so(
    tmp_path: Path,
) -> None:
    assert paper.statements.statements_table(tmp_path).empty
    (tmp_path / "mrag_bench").write_text("a file", encoding="utf-8")
    with pytest.raises(VragError, match="the claims cannot be saved"):
        paper.statements.check_statements(
            "31", differences(("mine", "gt_rag", 1, 0, 2)), PAPERS, tmp_path
        )
