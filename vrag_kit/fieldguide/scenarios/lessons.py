"""Fresh questions without end, for those who train an answerer: no species, tray or
picture of theirs is in an edition. The six regions and the known species, whose names
are asked, are the same everywhere, in other pictures.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image

from vrag_kit.fieldguide.scenarios.table import nameable, topic
from vrag_kit.fieldguide.scenarios.topics import Asked, Topic
from vrag_kit.fieldguide.traits import stream

Options = tuple[str, str, str, str]
LETTERS = ("A", "B", "C", "D")
NAMED_SHARE = 0.25
"""Share of the questions that ask for a known species' name, where a scenario has such."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """One question with its pictures, RGB, and the letter of the right option."""

    scenario: str  # the paper's name, lower case
    asks: str  # "color", "pattern", "name", "chip" or "region"
    question: str
    options: Options
    letter: str  # "A" to "D"
    image: Image.Image  # the query
    examples: tuple[Image.Image, ...]  # ground truth
    distractors: tuple[Image.Image, ...]  # what a retriever finds by mistake


@dataclass(frozen=True, slots=True)
class LessonPictures:
    """How many pictures a lesson has, and how large."""

    size: int = 128  # side, pixels
    examples: int = 5  # in Incomplete 1, whatever this says, unless it is 0
    distractors: int = 5


USUAL = LessonPictures()


def lesson(scenario: str, name: str, pictures: LessonPictures = USUAL, *, asks: str = "") -> Lesson:
    """A fresh question of a scenario; the same name gives the same one.

    `asks` "name" or "trait" wants one of these sorts (names: not in Incomplete,
    Biological and Others); "" mixes them as the editions do.
    """
    key = f"lesson/{scenario}/{name}"
    rng = stream(key, "lesson")
    wants_name = asks == "name" or (not asks and rng.random() < NAMED_SHARE)
    known = nameable(scenario) if wants_name else []
    about = topic(scenario, key, known=known[int(rng.integers(len(known)))] if known else None)
    asked = about.asked()
    question = asked[int(rng.integers(len(asked)))]
    options, letter = choices(question, rng)
    size = pictures.size
    n_examples = min(1, pictures.examples) if scenario == "incomplete" else pictures.examples
    others = [_other(scenario, about, f"{key}/other/{i}") for i in range(pictures.distractors)]
    return Lesson(
        scenario=scenario,
        asks=question.asks,
        question=question.text,
        options=options,
        letter=letter,
        image=about.query(f"{key}/query", size),
        examples=tuple(about.example(f"{key}/gt/{i}", size) for i in range(n_examples)),
        distractors=tuple(other.example(f"{other.key}/fp", size) for other in others),
    )


def choices(question: Asked, rng: np.random.Generator) -> tuple[Options, str]:
    """(options, right letter): the answer among three wrong ones, each place as likely."""
    options = [str(each) for each in rng.choice(question.others, size=3, replace=False)]
    place = int(rng.integers(4))
    options.insert(place, question.answer)
    return (options[0], options[1], options[2], options[3]), LETTERS[place]


def _other(scenario: str, about: Topic, key: str) -> Topic:
    """A topic of the same sort with another answer, if a few tries find one."""
    other = topic(scenario, key)
    for attempt in range(40):
        if other.what == about.what and other.asked()[0].answer != about.asked()[0].answer:
            break
        other = topic(scenario, f"{key}/{attempt}")
    return other
