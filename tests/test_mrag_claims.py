"""What MRAG-Bench's text says, held against a notebook's differences."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from vrag_kit.errors import VragError
from vrag_kit.papers.mrag_bench import claims_on, claims_table, printed_main
from vrag_kit.papers.mrag_bench.statements import STATEMENTS, paper_name

OPEN = "llava-hf-llava-onevision-qwen2-7b-ov-hf"


def differences(*rows: tuple[str, str, float, float, float]) -> pd.DataFrame:
    """(model, setting, value, ci_low, ci_high) in points, overall."""
    columns = ["model", "setting", "value", "ci_low", "ci_high"]
    return pd.DataFrame(rows, columns=columns).assign(scenario="overall", n=60)


def test_a_checkpoint_is_known_by_what_table_3_calls_it() -> None:
    assert paper_name(OPEN) == "LLaVA-OneVision"
    assert paper_name("gpt-4o-2024-05-13") == "GPT-4o"
    assert paper_name("mistral-community-pixtral-12b") == "Pixtral-12B"
    assert paper_name("field-guide-vlm-many") == "field-guide-vlm-many"


def test_the_papers_own_numbers_bear_its_sentences_out_but_for_two() -> None:
    printed = {said.name: said.printed() for said in STATEMENTS}
    assert printed["ground truth helps"] == ["supported"] * 14
    # Claude's 11.23 is more than 9.69, and one of ten open models does not decline
    assert printed["gains of proprietary models"].count("contradicted") == 1
    assert printed["open models and retrieved examples"].count("contradicted") == 1
    table = printed_main().query("scenario == 'overall' and setting == 'retrieved_rag'")
    gains = table[table["model_group"] == "open_source"]["gain"]
    assert (gains > 0).sum() == 1


def test_a_sentence_is_asked_of_the_models_that_it_is_about(tmp_path: Path) -> None:
    told = differences(
        ("mine", "gt_rag", 20.0, 12.0, 28.0),
        (OPEN, "gt_rag", 6.0, 1.0, 11.0),
        (OPEN, "retrieved_rag", 4.0, 1.0, 7.0),
        ("mine", "retrieved_rag", -3.0, -6.0, 0.0),
    )
    claims = claims_on("31", told, "Drawn", tmp_path).set_index(["claim", "of"])
    assert claims["verdict"].to_dict() == {
        ("ground truth helps", "mine"): "supported",
        ("ground truth helps", OPEN): "supported",
        ("gains of open models", OPEN): "compatible",
        ("open models and retrieved examples", OPEN): "contradicted",
        (
            "gains of proprietary models",
            "GPT-4-Turbo, Gemini Pro, Claude 3.5 Sonnet, GPT-4o",
        ): "not run",
        (
            "proprietary models and retrieved examples",
            "GPT-4-Turbo, Gemini Pro, Claude 3.5 Sonnet, GPT-4o",
        ): "not run",
    }
    table = claims_table(tmp_path).set_index("section")
    assert table["verdict"].value_counts().to_dict() == {
        "not run": 4,
        "supported": 1,
        "compatible": 1,
        "contradicted": 1,
    }
    assert table["source"].iloc[0] == "Drawn"
    assert table["printed"].iloc[0] == "14 of 14"


def test_pictures_are_set_against_texts_where_the_baseline_says_so(tmp_path: Path) -> None:
    ahead = differences(("mine", "gt_rag", 5.0, 2.0, 8.0), ("mine", "retrieved_rag", 1, -2, 4))
    ahead["baseline"] = ["gt_text", "retrieved_text"]
    claims = claims_on("32", ahead, "Drawn", tmp_path)
    assert claims["verdict"].tolist() == ["undecided", "supported"]
    assert claims_on("32", ahead.drop(columns="baseline"), "Drawn", tmp_path)["n"].isna().all()


def test_without_any_there_is_no_table_and_a_folder_that_cannot_be_written_says_so(
    tmp_path: Path,
) -> None:
    assert claims_table(tmp_path).empty
    (tmp_path / "mrag_bench").write_text("a file", encoding="utf-8")
    with pytest.raises(VragError, match="the claims cannot be saved"):
        claims_on("31", differences(("mine", "gt_rag", 1, 0, 2)), "Drawn", tmp_path)
