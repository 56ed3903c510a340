"""What the answerer of choices is taught with: about no topic of an edition, always with
the true letter.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from vrag_kit.fieldguide.scenarios import EDITIONS, SCENARIOS, known_species
from vrag_kit.fieldguide.scenarios.edition import plan
from vrag_kit.fieldguide.scenarios.topics import SpeciesTopic
from vrag_kit.fieldguide.training.exercises import Desk, Exercise, Mix
from vrag_kit.fieldguide.training.stock import N_OTHERS, N_QUERIES, pictures, subject
from vrag_kit.fieldguide.training.train_reading import PARTS, exercise
from vrag_kit.papers.mrag_bench import WORDINGS

EVERY_SORT = Mix(say=0.1, none=0.1, shows=0.2, many=0.1, mixed=0.2, tells=0.2, both=0.1)
DESK = Desk("choices", 400)
OPTION = re.compile(r"^\(?([A-D])(?:\)|:) (.+)$", re.MULTILINE)


def exercises(count: int) -> list[Exercise]:
    return [DESK.exercise(f"test/{number}", EVERY_SORT) for number in range(count)]


def test_the_letter_to_say_is_that_of_the_truth_and_other_options_are_false() -> None:
    letters = []
    for each in exercises(300):
        asked = subject("choices", each.subject).topic.asked()
        options = dict(OPTION.findall(each.words))
        if not options:
            assert each.answer.removeprefix("It is ") in {question.answer for question in asked}
            continue
        question = next(question for question in asked if question.text in each.words)
        right = [letter for letter, option in options.items() if option == question.answer]
        assert [f"It is {question.answer}, answer {letter}" for letter in right] == [each.answer]
        letters.append(right[0])
    assert min(np.unique(letters, return_counts=True)[1]) > 0.15 * len(letters)


def test_a_picture_stands_for_each_number_and_a_query_comes_first() -> None:
    for each in exercises(300):
        about = subject("choices", each.subject)
        assert each.words.count("<image>") == len(each.pictures)
        assert max(each.pictures) < about.n_pictures
        if OPTION.search(each.words):
            assert each.pictures[0] < N_QUERIES
            assert min(each.pictures[1:], default=N_QUERIES) >= N_QUERIES


def test_both_wordings_are_taught_and_up_to_twenty_examples() -> None:
    every = exercises(600)
    for wording in WORDINGS.values():
        opening = wording.template("examples").slots[0].text
        assert any(each.words.startswith(opening) for each in every)
    assert max(len(each.pictures) for each in every) > 18


def test_the_same_name_gives_the_same_exercise_and_another_name_another() -> None:
    assert exercises(20) == exercises(20)
    assert len({each.words for each in exercises(60)}) > 50


@pytest.mark.parametrize("number", range(9))
def test_a_topic_has_its_queries_examples_and_others_in_order(number: int) -> None:
    about = subject("choices", number)
    drawn = pictures(about, 32)
    assert len(drawn) == N_QUERIES + about.n_examples + N_OTHERS == about.n_pictures
    first = about.topic.example(f"{about.topic.key}/gt/0", 32)
    assert drawn[N_QUERIES] == first
    assert about.scenario == list(SCENARIOS)[number]


def test_no_species_of_an_edition_is_taught_but_those_whose_names_are_asked() -> None:
    names = set()
    for edition in EDITIONS.values():
        for planned in plan(edition):
            if isinstance(planned.topic, SpeciesTopic):
                names.add(planned.topic.species.scientific_name)
    names -= {species.scientific_name for species in known_species()}
    for number in range(600):
        taught = subject("choices", number).topic
        if isinstance(taught, SpeciesTopic):
            assert taught.species.scientific_name not in names


@pytest.mark.parametrize("sort", ["recite", "one"])
def test_the_passage_of_a_reading_lesson_holds_what_is_to_be_said(sort: str) -> None:
    part = replace(PARTS[0], shares={sort: 1.0}, worded=True)
    for number in range(60):
        each = exercise(part, f"test/{number}")
        passage = each.words.partition("Passage 1: ")[2].partition("\n")[0]
        said = each.answer.removeprefix("It is ").partition(", answer")[0]
        assert re.search(rf"\b{said}\b", passage)
        assert bool(OPTION.search(each.words)) == (sort == "one")
        assert subject("choices", each.subject).scenario != "incomplete"
        assert exercise(part, f"test/{number}") == each
