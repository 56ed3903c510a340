"""Data sets' own metrics against hand-worked cases and their authors' rules written out; the choice
reader names the rule that decided, and guesses nothing.
"""

import json
import math

import factories
import pandas as pd
import pytest
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st
from rouge import Rouge

from vrag_kit.errors import VragError
from vrag_kit.judging import judge_answers, load_judge, rouge_recall
from vrag_kit.judging.answer_metrics import (
    choice_accuracy,
    keypoint_coverage,
    normalised_em,
    relaxed_accuracy,
    webqa_f1,
)
from vrag_kit.judging.multiple_choice import RULES, ParsedChoice, read_choice
from vrag_kit.types import Query


def query(*answers: str, **told: object) -> Query:
    choices = told.pop("choices", ())
    text = str(told.pop("text", "Which?"))
    return Query(query_id="q", text=text, answers=answers, choices=choices, metadata=told)


@pytest.mark.parametrize(
    ("answer", "accepted", "right"),
    [
        ("red fox", "a Red-Fox", False),
        ("3.5", "3.5.", True),
        ("3.5", "35", False),
        ("-5", "5", False),
        ("−5", "-5", True),
        ("1,000", "1000", True),
        ("The The", "A", False),
    ],
)
def test_em_looks_past_case_and_not_numbers(answer, accepted, right):
    assert normalised_em(query("other", accepted), answer) == right


def test_a_choice_is_right_by_letter_or_text_and_never_guessed():
    asked = query("a red fox", choices=("a grey wolf", "a red fox", "a dog"))
    for right in ("B", "(b)", "It is a red fox.", "Answer: B"):
        assert choice_accuracy(asked, right) == 1.0
    for wrong in ("A", "a dog", "A or B", "a fox", "I don't know"):
        assert choice_accuracy(asked, wrong) == 0.0
    letters = query("A", choices=("D", "A", "R", "K"))
    assert [choice_accuracy(letters, each) for each in ("A", "a.", "B")] == [1.0, 1.0, 0.0]
    assert math.isnan(choice_accuracy(query("a red fox"), "B"))
    assert math.isnan(choice_accuracy(query("a cat", choices=("a dog", "a fox")), "B"))


@pytest.mark.parametrize(
    ("answer", "accepted", "right"),
    [
        ("105", "100", True),  # 5 / 100 is not above 5 %
        ("1.05", "1", True),  # though 0.05 as a binary fraction is
        ("94.9", "100", False),
        ("95%", "100", True),
        ("$1,020.", "1000", True),
        ("-100", "100", False),
        ("0.01", "0", False),
        ("about 100", "100", False),
    ],
)
def test_relaxed_answers_are_within_five_percent(answer, accepted, right):
    assert relaxed_accuracy(query(accepted), answer) == right


def test_what_is_marked_as_no_number_must_be_the_same():
    assert relaxed_accuracy(query("2010"), "2013") == 1.0
    assert relaxed_accuracy(query("2010", is_numerical=False), "2013") == 0.0
    assert relaxed_accuracy(query("2010", is_numerical=False), "2010.") == 1.0


def test_keypoints_are_told_by_their_new_numbers_or_words():
    points = ("45% of adults agree in 2019.", "Women agree more often than men.")
    asked = query("x", text="How many adults agreed in 2019, and who more?", gold_claims=points)
    assert keypoint_coverage(asked, "45 percent, and women agree more often than men.") == 1.0
    assert keypoint_coverage(asked, "It was forty-five.") == 0.5
    assert keypoint_coverage(asked, "Women agree more often than men, 54 %.") == 0.5
    assert keypoint_coverage(asked, "In 2019.") == 0.0
    assert math.isnan(keypoint_coverage(query("x"), "45"))
    only_asked = query("x", text="Do women agree?", gold_claims=("Women agree.",))
    assert keypoint_coverage(only_asked, "Women agree.") == 1.0
    assert keypoint_coverage(only_asked, "No.") == 0.0


@pytest.mark.parametrize(
    ("category", "accepted", "answer", "score"),
    [
        ("color", "The bird is red and white.", "red", 2 / 3),  # 1 of 1, 1 of 2
        ("color", "The bird is red.", "Red, red, red!", 1.0),  # a word of a list once
        ("color", "The bird is red.", "It is blue.", 0.0),
        ("shape", "They are circles.", "a circle", 1.0),
        ("YesNo", "No, it is not.", "yes", 0.0),
        ("number", "There are two.", "2", 1.0),
        ("number", "There are 2 and 3.", "3 of twelve", 0.5),
        ("Others", "Both have a red roof.", "A red barn", 1 / 4),  # both have red roof
        ("text", "The bridge", "the bridges, bridges", 1.0),
        ("", "red roof", "red red", 1 / 2),
    ],
)
def test_webqa_counts_words(category, accepted, answer, score):
    assert webqa_f1(query(accepted, category=category), answer) == pytest.approx(score)


def test_webqa_has_no_score_where_no_word_counts():
    assert math.isnan(webqa_f1(query("It is unknown.", category="color"), "red"))
    assert math.isnan(webqa_f1(query(category="text"), "red"))
    assert webqa_f1(query("unknown", "red", category="color"), "red") == 1.0


def test_a_metric_is_a_judge_that_a_parameter_names():
    benchmark = factories.benchmark([query("red", category="color"), "h"])
    rows = [("q", "ok", "red"), ("q", "ok", "I don't know"), ("h", "ok", "red"), ("q", "error", "")]
    answers = pd.DataFrame(rows, columns=["query_id", "status", "answer"]).assign(detail="")
    judged = judge_answers(load_judge("webqa_f1"), benchmark, answers)
    assert judged["score"].fillna(-1).tolist() == [1.0, 0.0, -1.0, -1.0]
    assert judged["abstained"].fillna(-1).tolist() == [0.0, 1.0, -1.0, -1.0]
    assert judged["verdict"].tolist()[:1] == ["webqa_f1: 1"]
    with pytest.raises(VragError, match="query 'q' has nothing that choice_accuracy compares with"):
        judge_answers(load_judge("choice_accuracy"), benchmark, answers)


TEXTS = st.text(alphabet="abB., ", max_size=12)


@given(TEXTS, st.lists(TEXTS, max_size=3))
def test_recall_is_the_packages_or_0_or_nan(answer, references):
    recalls, refused = [], ""
    for reference in references:
        try:
            recalls.append(Rouge().get_scores(answer, reference)[0]["rouge-1"]["r"])
        except ValueError as error:
            refused = str(error)
            recalls += [0.0] if refused == "Hypothesis is empty." and reference.strip(".") else []
    ours = rouge_recall(answer, references)
    assert ours == max(recalls) if recalls else math.isnan(ours)
    assert math.isnan(ours) or 0 <= ours <= 1


def test_an_answer_without_words_recalls_nothing_and_without_references_is_not_scored():
    assert rouge_recall("It is white and red", ["black and white"]) == 2 / 3  # and, white
    assert rouge_recall("", ["black"]) == rouge_recall("...", ["black"]) == 0
    assert math.isnan(rouge_recall("black", []))
    assert math.isnan(rouge_recall("black", ["", "."]))
    assert rouge_recall("black", [".", "black"]) == 1


DATA = ROOT / "vrag_kit/papers/mrag_bench"


LILIES = ("turkscap", "toad", "martagon", "tiger lily")


def test_labelled_answers_are_read():
    """As people expect."""
    data = json.loads((DATA / "choices.json").read_text(encoding="utf-8"))
    for row in data["rows"]:
        expected = ParsedChoice(row["rule"], row["letters"], row["options"] == "keys")
        assert read_choice(row["raw"], tuple(data["options"][row["options"]])) == expected, row


@pytest.mark.parametrize(
    ("raw", "rule", "letters"),
    [  # found while trying the reader: each came out as one letter before
        ("A: turkscap\nB: toad\nC: martagon\nD: tiger lily", "leading letter", "ABCD"),
        ("I rule out A.", "unparsed", ""),
        ("Excluding B, it is C.", "letter in text", "C"),
        ("The answer is B or rather C", "tagged", "BC"),
        ("B, or maybe C", "leading letter", "BC"),
        ("Answer is A, B, or C", "tagged", "ABC"),
        ("(A) is wrong", "unparsed", ""),
        ("A is not right.", "unparsed", ""),
        ("A\nB", "leading letter", "AB"),
        ("C) martagon (not A)", "leading letter", "C"),
        ("The answer is A due to its petals.", "tagged", "A"),
    ],
)
def test_more_answers_that_a_loose_rule_would_misread(raw, rule, letters):
    assert read_choice(raw, LILIES) == ParsedChoice(rule, letters)


@given(st.text(alphabet="ABCDabcd ().,:;!?'\"*\n-_orandnotisnswe", max_size=60))
def test_any_reading_is_by_one_of_the_rules_and_of_the_options(raw):
    reading = read_choice(raw, LILIES)
    assert reading.rule in RULES
    assert set(reading.letters) <= set("ABCD")
    assert list(reading.letters) == sorted(set(reading.letters))
    assert read_choice(raw, LILIES) == reading
    silent = reading.rule in ("empty", "declined", "unparsed")
    assert silent == (reading.letters == "")
    if not any(letter in raw.upper() for letter in "ABCD"):
        assert reading.letter is None  # no letter without one, nor an option's name


@given(st.permutations(LILIES))
def test_an_option_that_is_named_is_found_wherever_it_stands(options):
    place = options.index("martagon")
    for said in ("martagon", "It seems to be a Martagon.", "No toad, but a martagon"):
        assert read_choice(said, options).letter == "ABCD"[place]


@pytest.mark.parametrize("options", [(), ("one",), tuple(map(str, range(27)))])
def test_a_number_of_options_without_letters_is_refused(options):
    with pytest.raises(VragError, match=f"{len(options)} options; expected 2 to 26"):
        read_choice("A", options)
