"""A passage tells in words what the examples show, and never whose it is."""

from __future__ import annotations

import re

import pytest

from vrag_kit.synthetic.mrag_bench import SCENARIOS, write_passage
from vrag_kit.synthetic.mrag_bench.topics import (
    SpeciesTopic,
    Topic,
    TrayTopic,
    make_topic,
    nameable_species,
)
from vrag_kit.synthetic.mrag_bench.trays import CODES
from vrag_kit.synthetic.world.organisms import KINDS

SEVERAL = range(40)


def topics(scenario: str) -> list[Topic]:
    """Invented ones, and all known species whose names are asked."""
    new = [make_topic(scenario, f"read/{scenario}/{number}") for number in SEVERAL]
    return [
        *new,
        *(
            make_topic(scenario, f"told/{known}", known=known)
            for known in nameable_species(scenario)
        ),
    ]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_passage_holds_the_answer_of_every_question_about_its_topic(scenario: str) -> None:
    for about in topics(scenario):
        words = re.findall(r"[\w]+", text := write_passage(about, "some page"))
        for question in about.questions():
            for word in question.answer.split():
                assert word in words, text


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_it_is_short_and_the_same_for_the_same_name_alone(scenario: str) -> None:
    for about in topics(scenario):
        told = {write_passage(about, f"page {number}") for number in range(6)}
        assert told == {write_passage(about, f"page {number}") for number in range(6)}
        assert len(told) > 1
        for text in told:
            assert 20 <= len(text.split()) <= 55, text
            assert 2 <= len(re.findall(r"\.(?: |$)", text)) <= 3, text
            assert not re.search(r"[{}]", text)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_species_has_a_name_only_where_all_answerers_are_told_it(scenario: str) -> None:
    for about in topics(scenario):
        if isinstance(about, (SpeciesTopic, TrayTopic)):
            species, text = about.species, write_passage(about, "named?")
            known = isinstance(about, SpeciesTopic) and about.asks == ("name",)
            assert (species.scientific_name in text) == known
            assert species.common_name not in text
            assert (species.epithet in text) == known


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        ("temporal", "when it is grown|once it is grown"),
        ("deformation", "before it is damaged|as long as it is not damaged"),
        ("biological", "when it has withered|once it has withered"),
    ],
)
def test_a_passage_says_when_its_species_looks_so(scenario: str, words: str) -> None:
    for about in topics(scenario):
        if about.questions()[0].asks != "name":
            assert re.search(f"(?:{words})\\.", write_passage(about, "when?"))


def test_what_withers_is_told_as_it_was_before_too() -> None:
    for about in topics("biological"):
        assert isinstance(about, SpeciesTopic)
        fresh, withered = write_passage(about, "both").split(". ")[:2]
        assert about.species.outside.color in fresh
        assert KINDS[about.species.kind].outside in fresh
        assert about.look.color in withered


def test_a_tray_is_told_by_its_eight_chips_and_no_others() -> None:
    for about in topics("incomplete"):
        assert isinstance(about, TrayTopic)
        chips = re.findall(r"\b([A-Z]) ([a-z]+)\b", write_passage(about, "chips"))
        named = [(code, color) for code, color in chips if color in CODES]
        assert named == [(CODES[color], color) for color in about.chips]
