"""Passages as an encyclopedia has them: in words, what the examples of a topic show."""

from __future__ import annotations

import numpy as np

from vrag_kit.synthetic.mrag_bench.regions import RegionTopic
from vrag_kit.synthetic.mrag_bench.topics import (
    OUTSIDE,
    Painter,
    SpeciesTopic,
    Topic,
    training_names,
)
from vrag_kit.synthetic.mrag_bench.transformative import damaged, withered, young
from vrag_kit.synthetic.mrag_bench.trays import CODES, N_CHIPS, Tray
from vrag_kit.synthetic.visual_rag.articles import HOMES
from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.traits import Appearance, stream

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
_STATES: dict[Painter, tuple[str, ...]] = {
    young: ("when it is grown", "once it is grown"),
    damaged: ("before it is damaged", "as long as it is not damaged"),
    withered: ("when it has withered", "once it has withered"),
}
"""What paints a young, damaged or withered one → when the asked look is seen."""
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
_SEASONS = ("spring", "early summer", "late summer", "autumn")
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
    and land. Raises `TypeError` for another sort of topic.
    """
    rng = stream(name, "passage")
    if isinstance(topic, RegionTopic):
        region = topic.region
        words = {"name": region.name, "words": region.words, "noun": topic.kind}
        return _pick(rng, _REGIONS).format(**words)
    if isinstance(topic, Tray):
        return _of_tray(topic, rng)
    if not isinstance(topic, SpeciesTopic):
        raise TypeError(f"no passage is written about a {type(topic).__name__}")
    if topic.asks == ("name",):
        name = topic.species.scientific_name
        told, kind = dict(training_names())[name], topic.species.kind
        return f"{name} is {told}. {_home(kind, rng)} {_kin(kind, rng)}"
    return _of_species(topic, rng)


def _of_species(topic: SpeciesTopic, rng: np.random.Generator) -> str:
    """Its outside, the asked part if that is another or looks otherwise, and its life."""
    species, outside = topic.species, OUTSIDE[topic.species.kind]
    states = _STATES.get(topic.hide) or _STATES.get(topic.show) or ("",)
    when = f" {_pick(rng, states)}".rstrip()
    asked = _part(topic.part, topic.look, rng) | {"noun": species.kind, "when": when}
    if topic.part == outside and topic.look == species.outside:
        told = _pick(rng, _OUTWARD).format(**asked)
        return f"{told} {_home(species.kind, rng)} {_kin(species.kind, rng)}"
    seen = _part(outside, species.outside, rng) | {"noun": species.kind, "when": ""}
    outward, closer = _pick(rng, _OUTWARD).format(**seen), _pick(rng, _CLOSER).format(**asked)
    return f"{outward} {closer} {_home(species.kind, rng)}"


def _of_tray(tray: Tray, rng: np.random.Generator) -> str:
    chips = [f"{CODES[color]} {color}" for color in tray.chips]
    upper, lower = chips[: N_CHIPS // 2], chips[N_CHIPS // 2 :]
    kind = tray.species.kind
    words = _part(OUTSIDE[kind], tray.species.outside, rng) | {"noun": kind}
    rows = {"upper": ", ".join(upper), "lower": ", ".join(lower)}
    return _pick(rng, _TRAYS).format(**words, **rows)


def _part(part: str, look: Appearance, rng: np.random.Generator) -> dict[str, str]:
    """The words {part}, {are} and {look}."""
    forms = _PLAIN if look.pattern == "plain" else _PATTERNED
    told = _pick(rng, forms).format(color=look.color, pattern=look.pattern, second=look.second)
    return {"part": part, "are": "are" if part.endswith("s") else "is", "look": told}


def _home(kind: str, rng: np.random.Generator) -> str:
    home, season = _pick(rng, HOMES[KINDS[kind].scene]), _pick(rng, _SEASONS)
    return _pick(rng, _HOMES).format(home=home, season=season)


def _kin(kind: str, rng: np.random.Generator) -> str:
    return _pick(rng, _KIN).format(family=KINDS[kind].lineage[-1], often=_pick(rng, _OFTEN))


def _pick(rng: np.random.Generator, options: tuple[str, ...]) -> str:
    return str(rng.choice(options))
