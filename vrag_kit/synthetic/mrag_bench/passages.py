"""Passages as an encyclopedia has them: in words, what the examples of a topic show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

from numpy.random import Generator

from vrag_kit.benchmarks.datasets import mrag_bench_corpora as corpora
from vrag_kit.benchmarks.sources import write_csv_rows
from vrag_kit.synthetic.mrag_bench.scenario_images import N_CHIPS
from vrag_kit.synthetic.mrag_bench.topics import PlannedTopic, Topic
from vrag_kit.synthetic.visual_rag.articles import HOMES, SEASONS
from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.traits import COLOR_CODES, Appearance, choose, stream

TEXTS = "texts"

_OUTWARD = (
    "This is a {noun} whose {part} {are} {look}{when}.",
    "One knows this {noun} by its {part}, which {are} {look}{when}.",
    "The {part} of this {noun} {are} {look}{when}.",
    "A {noun}; its {part} {are} {look}{when}.",
)
_CLOSER = (
    "The {part} {are} {look}{when}.",
    "Seen in full, the {part} {are} {look}{when}.",
    "Those who look closer find that the {part} {are} {look}{when}.",
)
_PLAIN = ("{color}, plain", "plain {color}", "{color} and plain")
_PATTERNED = (
    "{color}, {pattern} with {second}",
    "mainly {color}, {pattern} with {second}",
    "{pattern}, {color} with {second}",
)
_HOMES = (
    "It lives in {home} and is mostly seen in {season}.",
    "Most observers meet it in {home} in {season}.",
    "The best time to see it is {season}, and the best place {home}.",
)
_KIN = (
    "Others of the family {family} live there too, and it is {often}.",
    "It is {often}, as are some others of the family {family}.",
    "It belongs to the family {family}, of which it is a {often} species.",
)
_OFTEN = ("common", "rare", "widespread")
_REGIONS = (
    "{name} is a region of {words}. Travelers remember this land, and many a {noun} is seen"
    " in it, whatever its species.",
    "In the region {name} one sees {words}. Every picture from there shows them behind each"
    " {noun} that lives in that part of the country.",
    "A land of {words}: that is the region called {name}. It is home to more than one species"
    " of {noun}.",
)
_TRAYS = (
    "A {noun} is pinned in this tray; its {part} {are} {look}. The upper chips are {upper}. The"
    " lower chips are {lower}.",
    "This is the tray of a {noun} whose {part} {are} {look}. It holds the chips {upper}, and"
    " below them {lower}.",
    "In the upper row of this tray lie the chips {upper}, in the lower row {lower}. Between them"
    " is a {noun}; its {part} {are} {look}.",
)


def write_passage(topic: Topic, name: str) -> str:
    """What the topic's examples show, in two or three sentences of some 25 to 45 words;
    the same name gives the same words.

    A species: its outside and the asked part as the examples show it, without its name;
    a known species: its name and outside; a tray: its eight chips; a region: its name
    and land.
    """
    rng = stream(name, "passage")
    kind = topic.species.kind
    if region := topic.region:
        return choose(_REGIONS, rng).format(name=region.name, words=region.words, noun=kind)
    if topic.chips:
        return _of_tray(topic, rng)
    if topic.asks == ("name",):
        part = KINDS[kind].outside
        look = f"{topic.look.color}, {topic.look.pattern_words}"
        known = f"{topic.species.scientific_name} is a {kind}; its {part} {_be(part)} {look}."
        return f"{known} {_home(kind, rng)} {_kin(kind, rng)}"
    return _of_species(topic, rng)


def _of_species(topic: Topic, rng: Generator) -> str:
    """Its outside, the asked part if that is another or looks otherwise, and its life."""
    species = topic.species
    outside = KINDS[species.kind].outside
    when = f" {choose(topic.scenario.states, rng)}".rstrip()
    asked = _part(topic.part, topic.look, rng) | {"noun": species.kind, "when": when}
    if topic.part == outside and topic.look == species.outside:
        told = choose(_OUTWARD, rng).format(**asked)
        return f"{told} {_home(species.kind, rng)} {_kin(species.kind, rng)}"
    seen = _part(outside, species.outside, rng) | {"noun": species.kind, "when": ""}
    outward, closer = choose(_OUTWARD, rng).format(**seen), choose(_CLOSER, rng).format(**asked)
    return f"{outward} {closer} {_home(species.kind, rng)}"


def _of_tray(topic: Topic, rng: Generator) -> str:
    chips = [f"{COLOR_CODES[color]} {color}" for color in topic.chips]
    half, kind = N_CHIPS // 2, topic.species.kind
    rows = {"upper": ", ".join(chips[:half]), "lower": ", ".join(chips[half:])}
    words = _part(KINDS[kind].outside, topic.species.outside, rng)
    return choose(_TRAYS, rng).format(**words, **rows, noun=kind)


def _part(part: str, look: Appearance, rng: Generator) -> dict[str, str]:
    """The words {part}, {are} and {look}."""
    forms = _PLAIN if look.pattern == "plain" else _PATTERNED
    told = choose(forms, rng).format(color=look.color, pattern=look.pattern, second=look.second)
    return {"part": part, "are": _be(part), "look": told}


def _be(part: str) -> str:
    return "are" if part.endswith("s") else "is"


def _home(kind: str, rng: Generator) -> str:
    home, season = choose(HOMES[KINDS[kind].scene], rng), choose(SEASONS, rng)
    return choose(_HOMES, rng).format(home=home, season=season)


def _kin(kind: str, rng: Generator) -> str:
    return choose(_KIN, rng).format(family=KINDS[kind].lineage[-1], often=choose(_OFTEN, rng))


def write_passages(
    planned: Sequence[PlannedTopic], row_ids: Mapping[str, str], folder: Path
) -> None:
    """Write the passages of a planned edition in the layout of `mrag_bench_corpora`, one of each
    topic and of every other topic in the corpus, and which answer which rows; `row_ids` maps the
    name of a planned question to the id of its row.

    A question's own passage stands first, then others about the same region or species.
    """
    passages: list[tuple[str, str]] = []
    about: dict[str, list[str]] = defaultdict(list)  # subject → names of passages
    own: dict[str, str] = {}  # a topic's key → name of its passage
    for each in planned:
        for topic in (each.topic, *each.strays):
            own[topic.key] = f"text-{len(passages):04d}"
            about[_subject(topic)].append(own[topic.key])
            passages.append((own[topic.key], write_passage(topic, f"{topic.key}/text")))
    answers: list[tuple[str, str]] = []
    for each in planned:
        names = dict.fromkeys([own[each.topic.key], *about[_subject(each.topic)]])
        answers += product([row_ids[question.name] for question in each.questions], names)
    answers.sort(key=lambda answer: int(answer[0]))
    write_csv_rows(folder / corpora.PASSAGES, corpora.PASSAGE_COLUMNS, passages)
    write_csv_rows(folder / corpora.GROUND_TRUTH, corpora.GROUND_TRUTH_COLUMNS, answers)


def _subject(topic: Topic) -> str:
    """What else tells the answer: the region, a known species, or nothing else."""
    if topic.region:
        return topic.region.name
    return topic.species.scientific_name if topic.asks == ("name",) else topic.key
