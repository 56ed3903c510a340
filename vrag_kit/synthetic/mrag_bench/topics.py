"""The nine scenarios; what their questions are about: an organism, a tray or a region, with images
that hide the answer and images that show it; and the topics and questions of an edition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, product
from typing import NamedTuple

from PIL import Image

from vrag_kit.synthetic.mrag_bench import scenario_images as images
from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.photographs import draw_showing, numbered_species
from vrag_kit.synthetic.world.traits import (
    COLOR_CODES,
    COLORS,
    PATTERNS,
    Appearance,
    Species,
    choose,
    shuffled,
    stream,
)

Painter = Callable[[Species, str, str, int], Image.Image]
"""(species, part, name of the image, side in pixels) → the image."""
Parts = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Kind → part → what is asked of it: what an image of the scenario hides."""
KNOWN_WORLD = "named-species"
KNOWN_PER_KIND = 8
"""Species of each kind whose names the shipped answerers were trained on: numbers 0 to 7 of the
world `KNOWN_WORLD`. No other species was.
"""
_BOTH = ("color", "pattern")
_HIDDEN = {kind.name: {part.name: _BOTH for part in kind.hidden} for kind in KINDS.values()}
_ONE_SMALL = {"moth": {"hindwings": _BOTH}, "lizard": {"throat fan": _BOTH}}
_SMALL: Parts = {  # parts that leave much of the organism beside them; no mushroom has such
    kind: _ONE_SMALL.get(kind, parts) for kind, parts in _HIDDEN.items() if kind != "mushroom"
}
_SMALLEST: Parts = {
    "moth": {"forewings": ("pattern",)},
    "bird": {"inside of the bill": _BOTH, "folded wings": ("pattern",)},
    "flower": {"stamen tips": _BOTH, "petals": ("pattern",)},
    "mushroom": {"cap": ("pattern",)},
    "fish": {"inside of the mouth": _BOTH, "flanks": ("pattern",)},
    "lizard": {"throat fan": _BOTH, "back": ("pattern",)},
}
_COVERED: Parts = {name: {**_HIDDEN[name], kind.outside: _BOTH} for name, kind in KINDS.items()}
_GROWN: Parts = {
    name: {**_HIDDEN[name], kind.outside: ("pattern",)} for name, kind in KINDS.items()
}
_TORN: Parts = {
    "moth": {"hindwings": _BOTH},
    "bird": {"undersides of the wings": _BOTH},
    "flower": {"undersides of the leaves": _BOTH},
    "fish": {"dorsal fin": _BOTH},
    "lizard": {"throat fan": _BOTH},
}
_WITHERED: Parts = {kind: {KINDS[kind].outside: _BOTH} for kind in ("flower", "mushroom")}


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario of MRAG-Bench."""

    name: str  # as in the paper, lower case
    label: str  # as in the data set's column
    aspect: str
    hide: Painter = draw_showing
    parts: Parts = field(default_factory=lambda: {kind: {} for kind in KINDS})
    show: Painter = draw_showing
    verb: str = "is"
    when: str = ""  # ends a question
    states: tuple[str, ...] = ("",)  # end a sentence that answers
    asks_name: str = "Which species is this {noun}?"  # "": names are not asked


_TEMPORAL = Scenario(
    "temporal",
    "Temporal",
    "Transformative",
    images.young,
    _GROWN,
    when=" when it is grown",
    states=("when it is grown", "once it is grown"),
    asks_name="Which species does this young {noun} belong to?",
)
_DEFORMATION = Scenario(
    "deformation",
    "Deformation",
    "Transformative",
    images.damaged,
    _TORN,
    verb="was",
    when=" before it was damaged",
    states=("before it is damaged", "as long as it is not damaged"),
    asks_name="Which species is this damaged {noun}?",
)
_BIOLOGICAL = Scenario(
    "biological",
    "Biological",
    "Transformative",
    images.fresh,
    _WITHERED,
    images.withered,
    when=" when it has withered",
    states=("when it has withered", "once it has withered"),
    asks_name="",
)
_EVERY = (
    Scenario("angle", "Angle", "Perspective", images.steep, _HIDDEN),
    Scenario("partial", "Partial", "Perspective", images.cropped, _SMALL),
    Scenario("scope", "Scope", "Perspective", images.far, _SMALLEST),
    Scenario("occlusion", "Obstruction", "Perspective", images.covered, _COVERED),
    _TEMPORAL,
    _DEFORMATION,
    Scenario("incomplete", "Incomplete", "Transformative", asks_name=""),
    _BIOLOGICAL,
    Scenario("others", "Others", "Others", asks_name=""),
)
SCENARIOS = {scenario.name: scenario for scenario in _EVERY}
"""Paper's name → scenario, in the order of its tables."""


class TopicQuestion(NamedTuple):
    """A question about a topic, which its examples answer."""

    asks: str  # "color", "pattern", "name", "chip" or "region"
    text: str
    answer: str
    others: Sequence[str]  # wrong answers of the same sort and spelling, three or more


@dataclass(frozen=True, slots=True)
class Topic:
    """A species and the part of it that the query hides; in Incomplete, a specimen tray with
    colored chips; in Others, organisms of a kind in a region.
    """

    key: str  # names its random streams
    scenario: Scenario
    species: Species
    asks: tuple[str, ...]  # of its questions
    look: Appearance  # of the part, as the examples show it
    part: str = ""
    chips: Sequence[str] = ()  # of a tray: eight keys of `COLORS`, the upper row first
    missing: int = 0  # index of the chip that the query lacks
    region: images.Region | None = None

    @property
    def what(self) -> str:
        """The kind, as a title; or "Tray"."""
        return "Tray" if self.chips else self.species.kind.capitalize()

    def question(self, asks: str) -> TopicQuestion:
        """Return the question about it that asks for one of `asks`."""
        kind = self.species.kind
        about = self.scenario
        part = f"the {self.part} of this {kind}{about.when}"
        if self.region:
            text = f"In which region was this {kind} seen?"
            answer = self.region.name
            others = [name for name in images.REGIONS if name != answer]
        elif self.chips:
            text = "Which chip is missing from this specimen tray?"
            answer = COLOR_CODES[self.chips[self.missing]]
            others = [code for color, code in COLOR_CODES.items() if color not in self.chips]
        elif asks == "name":
            text = about.asks_name.format(noun=kind)
            answer = self.species.scientific_name
            numbers = range(KNOWN_PER_KIND)
            known = [numbered_species(KNOWN_WORLD, kind, number) for number in numbers]
            others = [each.scientific_name for each in known if each.coat != self.species.coat]
        elif asks == "pattern":
            text = f"What pattern {about.verb} on {part}?"
            answer = self.look.pattern
            others = [each for each in PATTERNS if each != answer]
        else:
            text = f"What {about.verb} the main color of {part}?"
            answer = self.look.color
            others = [each for each in COLORS if each not in (answer, self.look.second)]
        return TopicQuestion(asks, text, answer, others)

    def query_image(self, name: str, size: int) -> Image.Image:
        """Draw an image that hides the answer, RGB, `size` × `size` pixels."""
        if self.region:
            return images.draw_region_query(self.region, self.species.kind, name, size)
        if self.chips:
            return self._tray(self.missing, name, size)
        return self.scenario.hide(self.species, self.part, name, size)

    def example_image(self, name: str, size: int) -> Image.Image:
        """Draw an image that shows the answer, RGB, `size` × `size` pixels."""
        if self.region:
            return images.draw_region_example(self.region, self.species.kind, name, size)
        if self.chips:
            return self._tray(None, name, size)
        return self.scenario.show(self.species, self.part, name, size)

    def _tray(self, missing: int | None, name: str, size: int) -> Image.Image:
        return images.draw_tray(self.species, self.chips, missing, self.key, name, size)


def make_topic(
    scenario: str, key: str, *, known: tuple[str, int] | None = None, turn: int | None = None
) -> Topic:
    """Return the topic of that key: an invented species, tray or region; with `known` (kind,
    number) the name of that known species is asked. In Others, `turn` takes regions and kinds in
    turn; without it they are drawn.
    """
    rng = stream(key, "topic")
    about = SCENARIOS[scenario]
    if known:
        species = numbered_species(KNOWN_WORLD, *known)
        part = KINDS[species.kind].outside
        return Topic(key, about, species, ("name",), species.outside, part)
    kind = choose([*about.parts], rng)
    regions = [*images.REGIONS.values()]
    region = choose(regions, rng) if scenario == "others" else None
    if region and turn is not None:
        kind = [*KINDS][(turn + turn // len(regions)) % len(KINDS)]
        region = regions[turn % len(regions)]
    species = numbered_species(key, kind, 0)
    if region:
        return Topic(key, about, species, ("region",), species.outside, region=region)
    if scenario == "incomplete":
        rng = stream(key, "tray")
        chips = rng.choice([*COLOR_CODES], size=images.N_CHIPS, replace=False).tolist()
        missing = int(rng.integers(images.N_CHIPS))
        return Topic(key, about, species, ("chip",), species.outside, chips=chips, missing=missing)
    part = choose([*about.parts[kind]], rng)
    look = species.hidden.get(part, species.outside)
    if scenario == "biological":
        look = images.withered_appearance(species)
    return Topic(key, about, species, about.parts[kind][part], look, part)


N_EXAMPLES = 5  # ground-truth pictures of a question; in Incomplete 1
QUESTIONS_A_TOPIC = 5 / 3  # of three topics, two have two questions and one has one
NAMED_SHARE = 0.25
"""Share of the questions that ask for a known species' name, where a scenario has such."""


@dataclass(frozen=True, slots=True)
class MragBenchEdition:
    """How large an edition is."""

    questions: int  # of each scenario
    pool: dict[str, int]  # aspect → examples of a topic in the corpus
    size: int  # side of a picture, pixels
    seed: str
    strays: int = 1  # pictures of other species for each topic


EDITIONS = {
    "full": MragBenchEdition(
        questions=60,
        pool={"Perspective": 20, "Transformative": 6, "Others": 20},
        size=128,
        seed="other-eyes",
    ),
    "small": MragBenchEdition(
        questions=7,
        pool={"Perspective": 7, "Transformative": 5, "Others": 7},
        size=96,
        seed="pocket-eyes",
    ),
}


@dataclass(frozen=True, slots=True)
class PlannedQuestion:
    """One row before it is drawn."""

    number: int  # its place among those of its scenario
    about: TopicQuestion
    options: list[str]  # four
    letter: str
    examples: list[int]  # indices into the topic's pool
    name: str  # of its query picture's stream


@dataclass(frozen=True, slots=True)
class PlannedTopic:
    """A topic with its questions."""

    index: int  # among the topics of its scenario
    topic: Topic
    strays: tuple[Topic, ...]  # others of its scenario, of which the corpus holds one image each
    pool: int  # examples in the corpus
    questions: tuple[PlannedQuestion, ...]


def plan_edition(edition: MragBenchEdition) -> list[PlannedTopic]:
    """All topics of an edition with their questions; draws nothing."""
    return list(chain.from_iterable(_plan_scenario(edition, name) for name in SCENARIOS))


def _plan_scenario(edition: MragBenchEdition, scenario: str) -> Iterator[PlannedTopic]:
    """The topics of a scenario: of three, two have two questions and one has one."""
    about = SCENARIOS[scenario]
    named = list(product(about.parts, range(KNOWN_PER_KIND))) if about.asks_name else []
    n_named = round(edition.questions * NAMED_SHARE / QUESTIONS_A_TOPIC)
    named = shuffled(named, stream(edition.seed, scenario, "known"))[:n_named]  # each once
    is_tray = scenario == "incomplete"
    pool = 1 if is_tray else edition.pool[about.aspect]
    done = 0
    for index in count():
        if done == edition.questions:
            return
        key = f"{edition.seed}/{scenario}/{index}"
        topic = make_topic(scenario, key, known=named.pop() if named else None, turn=index)
        strays = tuple(make_topic(scenario, f"{key}/stray/{i}") for i in range(edition.strays))
        wanted = 1 if is_tray or index % 3 == 2 else 2
        turns = range(min(edition.questions - done, wanted))
        questions = tuple(_question(topic, done + i, i, pool) for i in turns)
        yield PlannedTopic(index, topic, strays, pool, questions)
        done += len(questions)


def _question(about: Topic, number: int, turn: int, pool: int) -> PlannedQuestion:
    rng = stream(about.key, "question", turn)
    asks = about.asks[(turn + int(stream(about.key).integers(2))) % len(about.asks)]
    question = about.question(asks)
    options = rng.choice(question.others, size=3, replace=False).tolist()
    place = int(rng.integers(4))
    options.insert(place, question.answer)
    examples = rng.permutation(pool)[:N_EXAMPLES].tolist()
    name = f"{about.key}/query/{turn}"
    return PlannedQuestion(number, question, options, "ABCD"[place], examples, name)
