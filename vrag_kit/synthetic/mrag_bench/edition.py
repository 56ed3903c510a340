"""What an edition of the drawn MRAG-Bench holds, before anything is drawn: questions,
their pictures, and the pictures' names in the manner of the real corpus.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from vrag_kit.synthetic.mrag_bench.regions import REGIONS
from vrag_kit.synthetic.mrag_bench.topics import (
    SCENARIOS,
    RegionTopic,
    Topic,
    make_topic,
    nameable_species,
)
from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.traits import stream

N_EXAMPLES = 5  # ground-truth pictures of a question; in Incomplete 1
QUESTIONS_A_TOPIC = 5 / 3  # of three topics, two have two questions and one has one
NAMED_SHARE = 0.25
"""Share of the questions that ask for a known species' name, where a scenario has such."""


@dataclass(frozen=True, slots=True)
class MragBenchEdition:
    """How large an edition is."""

    questions: int  # of each scenario
    pool: dict[str, int]  # aspect → examples of a topic in the corpus
    strays: int  # pictures of other species for each topic
    size: int  # side of a picture, pixels
    seed: str


EDITIONS = {
    "full": MragBenchEdition(
        questions=60,
        pool={"Perspective": 20, "Transformative": 6, "Others": 20},
        strays=1,
        size=128,
        seed="other-eyes",
    ),
    "small": MragBenchEdition(
        questions=7,
        pool={"Perspective": 7, "Transformative": 5, "Others": 7},
        strays=1,
        size=96,
        seed="pocket-eyes",
    ),
}


@dataclass(frozen=True, slots=True)
class PlannedQuestion:
    """One row before it is drawn."""

    number: int  # its place among those of its scenario
    asks: str
    text: str
    options: tuple[str, ...]  # four
    letter: str
    examples: tuple[int, ...]  # indices into the topic's pool
    name: str  # of its query picture's stream


@dataclass(frozen=True, slots=True)
class PlannedTopic:
    """A topic with its questions."""

    scenario: str
    index: int  # among the topics of its scenario
    topic: Topic
    pool: int  # examples in the corpus
    questions: tuple[PlannedQuestion, ...]


def plan_edition(edition: MragBenchEdition) -> list[PlannedTopic]:
    """All topics of an edition with their questions; draws nothing."""
    return list(chain.from_iterable(_plan_scenario(edition, name) for name in SCENARIOS))


def plan_distractors(edition: MragBenchEdition, planned: PlannedTopic) -> list[Topic]:
    """The other topics of its scenario of which the corpus holds one picture each."""
    key = planned.topic.key
    return [make_topic(planned.scenario, f"{key}/stray/{i}") for i in range(edition.strays)]


def _plan_scenario(edition: MragBenchEdition, scenario: str) -> list[PlannedTopic]:
    """The topics of a scenario: of three, two have two questions and one has one."""
    left = edition.questions
    planned: list[PlannedTopic] = []
    known = _known(edition, scenario)
    while left:
        index = len(planned)
        named = known.pop() if known else None
        key = f"{edition.seed}/{scenario}/{index}"
        about = make_topic(scenario, key, known=named)
        if isinstance(about, RegionTopic):
            about = _region(key, index)
        pool = edition.pool[SCENARIOS[scenario].aspect] if scenario != "incomplete" else 1
        count = min(left, 1 if index % 3 == 2 or scenario == "incomplete" else 2)
        done = edition.questions - left
        questions = tuple(_question(about, done + i, i, pool) for i in range(count))
        planned.append(PlannedTopic(scenario, index, about, pool, questions))
        left -= count
    return planned


def _known(edition: MragBenchEdition, scenario: str) -> list[tuple[str, int]]:
    """The known species whose names are asked, each once: for a quarter of the questions."""
    every = nameable_species(scenario)
    wanted = round(edition.questions * NAMED_SHARE / QUESTIONS_A_TOPIC)
    order = stream(edition.seed, scenario, "known").permutation(len(every))
    return [every[i] for i in order[:wanted]]


def _region(key: str, index: int) -> Topic:
    """Regions in turn, each with every kind."""
    regions, kinds = list(REGIONS.values()), list(KINDS)
    kind = kinds[(index + index // len(regions)) % len(kinds)]
    return RegionTopic(key, regions[index % len(regions)], kind)


def _question(about: Topic, number: int, turn: int, pool: int) -> PlannedQuestion:
    rng = stream(about.key, "question", turn)
    asked = about.questions()
    question = asked[(turn + int(stream(about.key).integers(2))) % len(asked)]
    options = [str(each) for each in rng.choice(question.others, size=3, replace=False)]
    place = int(rng.integers(4))
    options.insert(place, question.answer)
    examples = tuple(int(i) for i in rng.permutation(pool)[:N_EXAMPLES])
    name = f"{about.key}/query/{turn}"
    return PlannedQuestion(
        number, question.asks, question.text, tuple(options), "ABCD"[place], examples, name
    )
