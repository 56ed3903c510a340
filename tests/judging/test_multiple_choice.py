"""The choice reader names the rule that decided, and guesses nothing."""

from __future__ import annotations

import json

import pytest
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st

from vrag_kit.errors import VragError
from vrag_kit.judging.multiple_choice import RULES, ParsedChoice, read_choice

DATA = ROOT / "vrag_kit/papers/mrag_bench"


LILIES = ("turkscap", "toad", "martagon", "tiger lily")


def test_labelled_answers_are_read() -> None:
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
def test_more_answers_that_a_loose_rule_would_misread(raw: str, rule: str, letters: str) -> None:
    assert read_choice(raw, LILIES) == ParsedChoice(rule, letters)


@given(st.text(alphabet="ABCDabcd ().,:;!?'\"*\n-_orandnotisnswe", max_size=60))
def test_any_reading_is_by_one_of_the_rules_and_of_the_options(raw: str) -> None:
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
def test_an_option_that_is_named_is_found_wherever_it_stands(options: list[str]) -> None:
    place = options.index("martagon")
    for said in ("martagon", "It seems to be a Martagon.", "No toad, but a martagon"):
        assert read_choice(said, options).letter == "ABCD"[place]


@pytest.mark.parametrize("options", [(), ("one",), tuple(map(str, range(27)))])
def test_a_number_of_options_without_letters_is_refused(options: tuple[str, ...]) -> None:
    with pytest.raises(VragError, match=f"{len(options)} options; expected 2 to 26"):
        read_choice("A", options)
