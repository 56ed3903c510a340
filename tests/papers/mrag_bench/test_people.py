"""How often participants agree, against counting by hand and scikit-learn."""

from __future__ import annotations

from importlib.resources import files

import pandas as pd
import pytest
from mrag_rows import answered, four_questions

from vrag_kit.papers.mrag_bench.people import inter_rater_agreement
from vrag_kit.synthetic.mrag_bench import EDITIONS
from vrag_kit.synthetic.mrag_bench.topics import plan_edition
from vrag_kit.synthetic.world.traits import stream
from vrag_kit.widgets.multiple_choice import read_choices

FOUR = four_questions()


def judged(**letters: str) -> pd.DataFrame:
    """Answers of each participant to the four questions, of which the first option is right."""
    tables = [
        answered(FOUR, dict(zip(FOUR.queries, said, strict=True)), "no_rag").assign(model=model)
        for model, said in letters.items()
    ]
    return pd.concat(tables, ignore_index=True)


def test_two_who_agree_on_wrong_options_agree():
    row = inter_rater_agreement(judged(Ada="BBCD", Bo="BBDD"), FOUR).iloc[0]
    assert row[["first", "second", "value", "n", "n_failed"]].tolist() == ["Ada", "Bo", 75, 4, 0]
    # by chance: B 2/4 · 2/4, D 1/4 · 2/4
    assert row["kappa"] == pytest.approx((0.75 - 0.375) / (1 - 0.375))
    assert 0 <= row["ci_low"] <= 75 <= row["ci_high"] <= 100


def test_an_answer_that_names_no_option_counts_as_neither_agreed_nor_not():
    table = judged(Ada="ABCD", model="ABCD")
    table.loc[table["model"] == "model", "answer"] = ["A", "a cat with a kitten", None, "D"]
    row = inter_rater_agreement(table, FOUR).iloc[0]
    assert row[["value", "n", "n_failed"]].tolist() == [100.0, 2, 2]


@pytest.mark.parametrize(("edition", "file"), [("small", "choices_small"), ("full", "choices")])
def test_the_choices_that_come_with_the_kit_fit_the_synthetic_questions(edition, file):
    asked = [question for about in plan_edition(EDITIONS[edition]) for question in about.questions]
    order = stream(EDITIONS[edition].seed, "rows").permutation(len(asked))
    choices = read_choices(str(files("vrag_kit.synthetic") / f"{file}.csv"))
    assert choices["setting"].value_counts().to_dict() == {"no_rag": 18, "gt_rag": 18}
    for choice in choices.itertuples():
        options = asked[order[int(choice.query_id)]].options
        assert options["ABCD".index(choice.option)] == choice.option_text
