"""The rule judges: their agreement with labels by hand, and what declining looks like."""

import pytest
from factories import read_data
from hypothesis import given
from hypothesis import strategies as st

from vrag_kit.judging import RuleJudge, TruthfulnessRuleJudge, is_abstention
from vrag_kit.papers.crag_mm.judge import READINGS, evaluate_judge
from vrag_kit.types import Query

JUDGE = TruthfulnessRuleJudge(READINGS["code"])


def score(question: str, reference: str, answer: str, alone: str = "") -> float | None:
    """The score; `alone` is the question without its conversation."""
    told = {"reference_query": alone}
    query = Query(query_id="q", text=question, answers=(reference,), metadata=told)
    return JUDGE.verdict(query, answer).score


@pytest.fixture(scope="module")
def labelled():
    return evaluate_judge(JUDGE)


def test_of_158_answers_labelled_before_it_one_is_judged_otherwise(labelled):
    before = labelled[labelled["split"] == "development"]
    assert len(before) == 158
    assert before["label"].value_counts().to_dict() == {
        "incorrect": 78,
        "correct": 73,
        "missing": 7,
    }
    assert before[~before["agrees"]]["answer"].tolist() == ["It was described later."]


def test_of_60_labelled_after_it_fewer_are_judged_as_labelled(labelled):
    after = labelled[labelled["split"] == "held_out"]
    assert (len(after), int(after["agrees"].sum())) == (60, 45)
    assert after[after["label"] == "missing"]["agrees"].all()


def test_a_question_that_goes_on_from_another_is_read_with_its_reference_query():
    alone = "By which animals are mice eaten?"
    assert score("And mice?", "They are eaten by owls.", "Owls.", alone) == 1
    assert score("And mice?", "They are eaten by owls.", "They are eaten by foxes.", alone) == -1


@pytest.mark.parametrize(
    ("said", "same", "other"),
    [
        ("4.3 cm", "43 mm", "43 cm"),
        ("2 miles", "3.22 km", "2 km"),
        ("1,832", "1832", "1,833"),
        ("three thousand dollars", "$3,000", "€3,000"),
        ("forty-three", "43", "34"),
        ("16 oz", "1 pound", "1 kg"),
        ("1 gallon", "3.79 litres", "4 litres"),
        ("60 mph", "96.6 km/h", "60 km/h"),
        ("in the 1830s, B12, 4th, 1.2.3, at least 5", "", "1830, 12, 4, 1.2 and 5"),
    ],
)
def test_numbers_are_equal_in_any_unit(said, same, other):
    assert not same or score("How much is it?", f"It is {same}.", said) == 1
    for number in other.replace(" and", ", ").split(", "):
        assert score("How much is it?", f"It is {number}.", said) == -1


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_any_words_get_a_verdict(question, reference, answer):
    assert score(question, reference, answer) in (1, 0, -1)


def query(text: str, *answers: str) -> Query:
    return Query(query_id="q", text=text, answers=answers)


def test_the_rule_judge_agrees_with_the_labels():
    for row in read_data("labelled_answers.csv"):
        asked = query(row["question"], *row["accepted"].split("|"))
        verdict = RuleJudge().verdict(asked, row["answer"])
        expected = (float(row["score"]), frozenset(row["marks"].split()))
        assert (verdict.score, verdict.marks) == expected, row


ABSTENTIONS = (
    "I don’t know.",
    "It cannot be determined from the image.",
    "Not enough information",
    "idk",
    "I am not able to tell",
    "The wings are not visible in this picture.",
    "I cannot decide",
)
ANSWERS = ("The hindwings are not red but blue", "no", "It is known to be green")


def test_an_abstention_is_recognised():
    assert [text for text in (*ABSTENTIONS, *ANSWERS) if is_abstention(text)] == [*ABSTENTIONS]
