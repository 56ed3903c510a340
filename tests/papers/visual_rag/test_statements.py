"""The paper's sentences on results of one's own: numbers as the paper's tables would give
them, intervals as the notebooks' tables do, of the models that a sentence is about.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT
from factories import judged_arms
from hypothesis import given, settings
from hypothesis import strategies as st

from vrag_kit.analysis import expand_strata, load_results, paired_differences, per_query
from vrag_kit.papers import visual_rag as paper
from vrag_kit.papers.sources import SYNTHETIC, DataSource
from vrag_kit.papers.statements import Statement
from vrag_kit.papers.visual_rag.gcue import gcue
from vrag_kit.papers.visual_rag.published import PAPER_NAMES, PAPER_QUERIES
from vrag_kit.papers.visual_rag.statements import (
    STATEMENTS,
    Arms,
    Number,
    published_arms,
    retrieval_arms,
    statement_numbers,
)
from vrag_kit.papers.visual_rag.statements import judged_arms as arms_of

TABLES = paper.audit.published_tables()
PAPERS = DataSource("visual-rag", "Visual-RAG v1, first upload")
GUIDE = DataSource("Guide", no_verdict=SYNTHETIC)
OURS = {theirs: ours for ours, theirs in PAPER_NAMES.items()}


@cache
def replayed(number: int) -> Arms:
    """The arms of the paper's table as if it were ours: each of 120 queries has the mean."""
    parts = []
    for row in paper.abstention.with_uncertainty(TABLES[number]).to_dict("records"):
        share = row["value"] / 100
        arm = {(OURS[row["model"]], row["setting"], row["k"]): [share] * 120}
        parts.append(judged_arms(arm, abstained=share, m=row.get("m", 0)))
    return arms_of(pd.concat(parts, ignore_index=True), number)


def statement(name: str) -> Statement:
    return next(each for each in STATEMENTS if each.name == name)


def reported(said: Statement) -> dict[str, Number]:
    """The statement's numbers in the paper's own table."""
    return statement_numbers(said, published_arms(TABLES[said.table], said.table))


def ours(name: str, judged: pd.DataFrame, table: int) -> dict[str, Number]:
    """The statement's numbers in judged answers like those of a table."""
    return statement_numbers(statement(name), arms_of(judged, table))


@pytest.mark.slow
@pytest.mark.parametrize("said", STATEMENTS, ids=lambda said: said.name)
def test_on_answers_like_the_papers_every_number_is_the_one_its_tables_give(
    said: Statement,
) -> None:
    theirs = reported(said)
    if said.table == 2:
        hits = TABLES[2].query("metric == 'hit'")
        scores = hits.assign(value=hits["value"] / 100, query_id="q", group="g")
        found = statement_numbers(said, retrieval_arms(scores))
    else:
        found = statement_numbers(said, replayed(said.table))
    assert theirs
    assert {name: number.value for name, number in found.items()} == pytest.approx(
        {name: number.value for name, number in theirs.items()}
    )


def test_numbers_of_the_paper_agree_with_hand_calculations() -> None:
    values = {
        name: {of: each.value for of, each in reported(statement(name)).items()}
        for name in ("three_clues_best", "u_shape", "one_in_k_improves", "gcue_qwen")
    }
    assert values["three_clues_best"] == {"Qwen2.5VL": pytest.approx(54.51 - 53.20)}
    assert values["u_shape"] == {"GPT-4o": pytest.approx(59.89 - 53.38)}
    assert values["one_in_k_improves"]["Gemini"] == pytest.approx(63.47 - 64.01)
    assert values["gcue_qwen"] == {"Qwen2.5VL": pytest.approx(1.693, abs=5e-4)}  # at k = 3


def decided(notebook: str, table: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """The rows of `save_checks` that have a number."""
    claims = paper.statements.save_checks(notebook, table, PAPERS, folder)
    return claims[claims["verdict"] != "not run"]


def test_a_sentence_about_other_models_is_a_row_that_names_them(tmp_path: Path) -> None:
    table = judged_arms({("own", "one_in_k", k): [0.0, 1.0] * 10 for k in (3, 5)})
    claims = paper.statements.save_checks("04", table, PAPERS, tmp_path)
    assert set(claims["verdict"]) == {"not run"}
    assert "GPT-4o, Gemini, Claude" in set(claims["system"])
    assert claims["value"].isna().all()
    assert load_results(tmp_path).empty


def test_a_gain_has_the_interval_of_the_notebooks_own_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = judged_arms(
        {
            ("own", "zero_shot", 0): list(rng.integers(0, 2, 40) * 1.0),
            ("own", "gt_clue", 1): list(rng.integers(0, 3, 40) / 2),
        }
    )
    (row,) = decided("03", table, tmp_path).to_dict("records")
    arms = per_query(table)
    (same,) = paired_differences(arms, arm="setting", by=["model"], baseline="zero_shot").to_dict(
        "records"
    )
    assert (row["statement_id"], row["system"], row["n"]) == ("clue_helps", "own", 40)
    for name in ("value", "ci_low", "ci_high"):
        assert row[name] == pytest.approx(100 * same[name], abs=0.006)


@settings(deadline=None)
@given(st.floats(-20, 20), st.floats(0.1, 10), st.floats(0.1, 10), st.sampled_from(STATEMENTS))
def test_p_is_below_5_percent_exactly_where_the_interval_decides(
    value: float, below: float, above: float, said: Statement
) -> None:
    numbers = (value, value - below, value + above)
    decides = said.verdict(*numbers) in ("supported", "contradicted")
    p = said.p_value(*numbers)
    assert decides == (p < 0.05) or p == pytest.approx(0.05)


@settings(deadline=None)
@given(st.floats(-20, 20), st.floats(0, 10), st.floats(0, 10), st.sampled_from(STATEMENTS))
def test_a_verdict_follows_from_where_the_interval_lies(
    value: float, below: float, above: float, said: Statement
) -> None:
    low, high = value - below, value + above
    verdict = said.verdict(value, low, high)
    assert (verdict == "supported") == (said.low - 1e-9 <= low and high <= said.high + 1e-9)
    if verdict == "compatible":
        assert said.low <= value <= said.high < np.inf
        assert said.low > -np.inf
    if verdict == "contradicted":
        assert not said.low <= value <= said.high
    assert said.verdict(value, np.nan, np.nan) == "undecided"


def missed(number: int) -> pd.DataFrame:
    """A search that finds no clue in the first 30 for so many of the paper's queries."""
    queries = [f"q{i}" for i in range(PAPER_QUERIES)]
    found = [0.0] * number + [1.0] * (PAPER_QUERIES - number)
    return pd.DataFrame(
        {"query_id": queries, "group": queries, "value": found, "retriever": "own"}
    ).assign(metric="hit", k=30)


@pytest.mark.parametrize(
    ("number", "on_its_data", "elsewhere"),
    [
        (65, "supported", SYNTHETIC),  # 17.4 %, Table 2's CLIP has 100 − 82.62
        (60, "contradicted", SYNTHETIC),  # 16.0 %, Table 2's BGE
        (20, "contradicted", SYNTHETIC),
    ],
)
def test_what_is_found_in_the_papers_data_is_exact_and_elsewhere_there_is_no_verdict(
    tmp_path: Path, number: int, on_its_data: str, elsewhere: str
) -> None:
    for same_data, verdict in ((True, on_its_data), (False, elsewhere)):
        claims = paper.statements.save_checks(
            "02", missed(number), PAPERS if same_data else GUIDE, tmp_path
        )
        (row,) = claims.to_dict("records")
        assert (row["n"], row["verdict"]) == (PAPER_QUERIES, verdict)
        assert row["value"] == pytest.approx(100 * number / PAPER_QUERIES, abs=0.006)
        assert (row["ci_low"] == row["ci_high"]) == same_data


def test_the_table_tells_which_data_each_sentence_was_asked_of(tmp_path: Path) -> None:
    paper.statements.save_checks("02", missed(65), DataSource("One guide"), tmp_path)
    arms = {"zero_shot": 0, "gt_clue": 1}
    paper.statements.save_checks(
        "03",
        judged_arms({("own", arm, k): [float(k)] * 30 for arm, k in arms.items()}),
        replace(PAPERS, name="papers"),
        tmp_path,
    )
    table = paper.statements.statements_table(tmp_path)
    papers = "papers (Visual-RAG v1, first upload)"
    assert table["source"].tolist()[:3] == ["One guide", papers, ""]
    found = ["not tested: not the paper's data", "supported", "not run"]
    assert table["verdict"].tolist()[:3] == found


def test_named_models_and_classes_are_asked_for_and_others_are_left_alone(tmp_path: Path) -> None:
    scores = [1.0] * 10 + [0.0] * 10
    arms = {"zero_shot": 0, "gt_clue": 1}
    table = judged_arms(
        {
            (model, setting, k): scores
            for model in ("own", "gpt-4o", "Qwen-Qwen2.5-VL-7B-Instruct")
            for setting, k in arms.items()
        }
    )
    found = decided("03", table, tmp_path).groupby("statement_id")["system"].agg(list).to_dict()
    assert found == {
        "clue_helps": ["own", "GPT-4o", "Qwen2.5VL"],
        "clue_helps_proprietary_models": ["GPT-4o"],
    }  # of open models the largest gain is not known before all five were asked


@pytest.mark.slow
def test_the_smallest_of_several_has_an_interval_that_covers_it() -> None:
    truth, covered, rounds = [0.02, 0.03, 0.05], 0, 60
    rng = np.random.default_rng(1)
    for _ in range(rounds):
        levels = np.cumsum([0.3, *truth])
        scores = {
            ("gpt-4o", "one_in_k", k): list((rng.random(60) < level) * 1.0)
            for k, level in zip((3, 5, 7, 10), levels, strict=True)
        }
        number = ours("one_in_k_improves", judged_arms(scores), 3)["GPT-4o"]
        covered += number.ci_low <= 100 * min(truth) <= number.ci_high
    assert covered >= 0.95 * rounds


def test_gcue_is_that_of_its_own_table_and_undecided_where_there_is_no_ratio() -> None:
    rng = np.random.default_rng(2)
    chances = {("zero_shot", 0): 0.2, ("non_clue", 1): 0.2, ("gt_clue", 1): 0.9}
    chances |= {("one_in_k", 3): 0.8, ("one_in_k", 5): 0.5}
    for helps in (True, False):
        scores = {
            ("gpt-4o", setting, k): list((rng.random(80) < (chance if helps else 0.5)) * 1.0)
            for (setting, k), chance in chances.items()
        }
        table = judged_arms(scores)
        number = ours("gcue_proprietary_recovers", table, 3)["GPT-4o"]
        if helps:
            curve = gcue(table, lambdas=[0.5]).set_index("k")["value"]
            assert number.value == pytest.approx(curve[5] - curve[3])
            assert statement("gcue_proprietary_recovers").verdict(*number[:3]) == "contradicted"
        else:
            assert np.isnan(number.ci_low)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("gcue_qwen", "Qwen-Qwen2.5-VL-7B-Instruct"),
        ("gcue_proprietary_recovers", "gpt-4o"),
        ("gcue_open_declines", "mistral-community-pixtral-12b"),
    ],
)
def test_of_a_clue_that_hurts_nothing_is_said_to_be_left(name: str, model: str) -> None:
    rights = {("zero_shot", 0): 114, ("non_clue", 1): 114, ("gt_clue", 1): 72}
    rights |= {("one_in_k", 3): 48, ("one_in_k", 10): 24}  # of 120; the ratio were above 1
    table = judged_arms(
        {(model, *arm): [1.0] * right + [0.0] * (120 - right) for arm, right in rights.items()}
    )
    (number,) = ours(name, table, 3).values()
    assert np.isnan(number.value)
    assert statement(name).verdict(*number[:3]) == "undecided"
    assert gcue(table)["value"].isna().all()  # as in the notebook's own table


@pytest.mark.parametrize("name", ["gcue_proprietary_recovers", "gcue_open_declines"])
def test_a_change_from_one_k_to_itself_is_no_change(name: str) -> None:
    arms = {("zero_shot", 0): 0.0, ("non_clue", 1): 0.0, ("gt_clue", 1): 1.0, ("one_in_k", 3): 0.5}
    table = judged_arms(
        {
            (model, *arm): [share] * 40
            for model in ("gpt-4o", "mistral-community-pixtral-12b")
            for arm, share in arms.items()
        }
    )
    assert ours(name, table, 3) == {}


def test_several_clues_stand_among_ten_images_as_in_the_papers_table() -> None:
    alone, among = {("m_gt", 1): 0.5}, {("m_in_k", 5): 1.0, ("m_in_k", 10): 0.25}
    table = judged_arms(
        {("gpt-4o", *arm): [share] * 30 for arm, share in (alone | among).items()}
    ).assign(m=1)
    number = ours("few_clues_with_distractors", table, 6)["GPT-4o, m=1"]
    assert number.value == pytest.approx(25 - 50)


@pytest.mark.slow
def test_saved_claims_are_results_like_others_and_make_one_table(tmp_path: Path) -> None:
    assert paper.statements.statements_table(tmp_path).empty
    good = judged_arms({("own", "zero_shot", 0): [0.0] * 30, ("own", "gt_clue", 1): [1.0] * 30})
    bad = judged_arms(
        {("gpt-4o", "zero_shot", 0): [1.0] * 30, ("gpt-4o", "gt_clue", 1): [0.0] * 30}
    )
    paper.statements.save_checks("03", pd.concat([good, bad]), PAPERS, tmp_path)
    saved = load_results(tmp_path)
    assert set(saved["experiment"]) == {"03_claims"}
    assert set(saved["metric"]) == {"difference in accuracy"}
    assert set(saved["unit"]) == {"points"}
    assert saved["value"].tolist() == [100.0, -100.0, -100.0]
    table = paper.statements.statements_table(tmp_path)
    assert len(table) == len(STATEMENTS)
    rows = {row["statement"].partition(";")[0]: row for row in table.to_dict("records")}
    lifts = rows["a clue lifts every model over zero-shot"]
    assert lifts["verdict"] == "contradicted"  # it says "every model"
    assert lifts["numbers"].startswith("own: 100.00 [")
    assert "GPT-4o: -100.00 [" in lifts["numbers"]
    assert lifts["reported"] == "8 of 8"
    paper.statements.save_checks(
        "04", good, PAPERS, tmp_path
    )  # none: no model that its sentences are about
    pd.testing.assert_frame_equal(paper.statements.statements_table(tmp_path), table)
    assert table["verdict"].tolist()[2:] == ["not run"] * (len(STATEMENTS) - 2)
    other = rows["proprietary models improve at every step of 1-in-k"]
    assert (other["verdict"], other["reported"]) == ("not run", "1 of 3")
    assert other["numbers"] == "run notebook 04 with models it is about: GPT-4o, Gemini, Claude"


@pytest.mark.slow
def test_opposite_strata_are_shown_apart_and_make_a_verdict_mixed(tmp_path: Path) -> None:
    told, untold = 10, 30
    zero = [1.0] * told + [0.0] * untold
    clue = [0.0] * told + [1.0] * untold
    table = judged_arms({("own", "zero_shot", 0): zero, ("own", "gt_clue", 1): clue})
    strata = expand_strata(table, {"own": [f"q{i}" for i in range(told)]})
    found = decided("03", strata, tmp_path)
    assert dict(zip(found["stratum"], found["value"], strict=True)) == {
        "in training data": -100.0,
        "not in training data": 100.0,
        "all questions": 50.0,
    }
    row = (
        paper.statements.statements_table(tmp_path)
        .query("statement.str.startswith('a clue lifts every')")
        .iloc[0]
    )
    assert row["verdict"] == "mixed"
    assert row["numbers"].index("in training data -100") < row["numbers"].index("all questions 50")


def test_notebooks_ask_for_the_sentences_that_they_can_decide() -> None:
    notebooks = ROOT / "notebooks" / "visual_rag"
    for number in {said.notebook for said in STATEMENTS}:
        (file,) = notebooks.glob(f"{number}_*.ipynb")
        code = "".join(file.read_text(encoding="utf-8").split()).replace("\\n", "")
        assert re.search(rf"check_statements\(\W*{number}", code)
        if number != "02":  # opposite groups of questions are apart before they are pooled
            assert re.search(rf"check_statements\(\W*{number}\W*(with_)?strata", code)
