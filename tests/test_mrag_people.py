"""People's means in both weighings, and how often answerers agree, against counting by
hand, the paper and scikit-learn.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mrag_rows import four_questions

from vrag_kit.generation import ask_models
from vrag_kit.judging import judge_answers
from vrag_kit.papers import mrag_bench as paper
from vrag_kit.papers.mrag_bench.audit import QUESTIONS
from vrag_kit.synthetic.mrag_bench import EDITIONS
from vrag_kit.synthetic.mrag_bench.edition import plan_edition
from vrag_kit.synthetic.world.traits import stream
from vrag_kit.widgets.multiple_choice import read_choices

FOUR = four_questions()


def judged(**letters: str) -> pd.DataFrame:
    """Answers of each answerer to the four questions, of which the first option is right."""
    rows = []
    for model, said in letters.items():
        for query_id, answer in zip(FOUR.queries, said, strict=True):
            rows.append((model, "no_rag", query_id, answer, float(answer == "A")))
    table = pd.DataFrame(rows, columns=["model", "setting", "query_id", "answer", "score"])
    group = table["query_id"].map(FOUR.groups)
    return table.assign(
        k=0, draw=0, group=group, status="ok", marks="", abstained=0.0, score_min=0.0, score_max=1.0
    )


def test_the_papers_people_are_printed_as_plain_means_of_nine_scenarios() -> None:
    values = (
        paper.people.published_human_baseline()
        .pivot(index="setting", columns="average", values="value")
        .round(2)
    )
    assert values["macro"].to_dict() == {
        "gt_rag": 71.63,
        "no_rag": 38.47,
        "retrieved_rag": 61.38,
    }
    gains = values["micro"] - values.loc["no_rag", "micro"]
    assert gains["gt_rag"] == pytest.approx(37.47, abs=0.011)  # and not the printed 33.16
    assert gains["retrieved_rag"] == pytest.approx(25.64, abs=0.011)


@pytest.mark.slow
def test_where_nobody_answered_every_table_is_empty(tmp_path: Path) -> None:
    none = ask_models([], FOUR, [], tmp_path, prompts=paper.settings.load_prompts("paper"))
    table = paper.results.with_scenarios(
        judge_answers(paper.choices.MultipleChoiceJudge(), FOUR, none), FOUR
    )
    assert paper.people.micro_and_macro_accuracy(table, FOUR).empty
    assert paper.people.inter_rater_agreement(table, FOUR).empty
    assert paper.results.scenario_table(
        paper.people.micro_and_macro_accuracy(table, FOUR), rows=["average"], columns=["model"]
    ).empty


def test_a_mean_by_questions_and_a_plain_one_weigh_scenarios_otherwise() -> None:
    """Right in Angle and Others, wrong in Incomplete and Partial, a question each."""
    table = paper.results.with_scenarios(judged(Ada="ABAC"), FOUR)
    means = paper.people.micro_and_macro_accuracy(table, FOUR).set_index("average")["value"]
    counts = [QUESTIONS[name] for name in ("angle", "others", "incomplete", "partial")]
    assert means["micro"] == pytest.approx(sum(counts[:2]) / sum(counts))
    assert means["macro"] == pytest.approx(1 / 2)


def test_two_who_agree_on_wrong_options_agree() -> None:
    row = paper.people.inter_rater_agreement(judged(Ada="BBCD", Bo="BBDD"), FOUR).iloc[0]
    assert row[["first", "second", "value", "n", "n_failed"]].tolist() == ["Ada", "Bo", 0.75, 4, 0]
    # by chance: B 2/4 · 2/4, D 1/4 · 2/4
    assert row["kappa"] == pytest.approx((0.75 - 0.375) / (1 - 0.375))
    assert 0 <= row["ci_low"] <= 0.75 <= row["ci_high"] <= 1


def test_an_answer_that_names_no_option_counts_as_neither_agreed_nor_not() -> None:
    table = judged(Ada="ABCD", model="ABCD")
    table.loc[table["model"] == "model", "answer"] = ["A", "a cat with a kitten", None, "D"]
    row = paper.people.inter_rater_agreement(table, FOUR).iloc[0]
    assert row[["value", "n", "n_failed"]].tolist() == [1.0, 2, 2]


def test_one_answerer_agrees_with_nobody_and_settings_are_not_mixed() -> None:
    assert paper.people.inter_rater_agreement(judged(Ada="ABCD"), FOUR).empty
    apart = pd.concat([judged(Ada="ABCD"), judged(Bo="ABCD").assign(setting="gt_rag")])
    assert paper.people.inter_rater_agreement(apart, FOUR).empty


letters = st.text("ABCD", min_size=4, max_size=4)


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(letters, letters)
def test_kappa_is_scikit_learns(one: str, other: str) -> None:
    from sklearn.metrics import cohen_kappa_score

    row = paper.people.inter_rater_agreement(judged(Ada=one, Bo=other), FOUR).iloc[0]
    if len(set(one + other)) > 1:
        assert row["kappa"] == pytest.approx(cohen_kappa_score(list(one), list(other)))
    else:
        assert pd.isna(row["kappa"])


@pytest.mark.parametrize(("edition", "file"), [("small", "choices_small"), ("full", "choices")])
def test_the_choices_that_come_with_the_kit_are_of_the_drawn_questions(
    edition: str, file: str
) -> None:
    asked = [question for about in plan_edition(EDITIONS[edition]) for question in about.questions]
    order = stream(EDITIONS[edition].seed, "rows").permutation(len(asked))
    choices = read_choices(str(files("vrag_kit.synthetic") / f"{file}.csv"))
    assert choices["setting"].value_counts().to_dict() == {"no_rag": 18, "gt_rag": 18}
    for choice in choices.itertuples():
        options = asked[order[int(choice.query_id)]].options
        assert options["ABCD".index(choice.option)] == choice.option_text
