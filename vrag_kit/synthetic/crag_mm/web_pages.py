"""Web pages about entities, regions and describers, in short regular sentences: what
their snippets tell, and what only the full page tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vrag_kit.synthetic.crag_mm.entities import WEB_FACTS, Entity, EntityWorld, with_article
from vrag_kit.synthetic.crag_mm.vocabulary import DESCRIBERS, REGIONS
from vrag_kit.synthetic.traits import stream

PageFacts = frozenset[tuple[str, str]]
"""Facts: of whom (an entity's name, a region or a describer), and the key."""

SENTENCES = {
    "look": "{name} is {look}.",
    "found": "It is found on {found}.",
    "eaten": "It is eaten by {eaten}.",
    "smell": "It smells of {smell}.",
    "capital": "It lives in {region}, whose capital is {capital}.",
    "born": "It was described by {describer}, who was born in {born}.",
    "family": "It belongs to {family}.",
    "year": "It was described in {year}.",
    "region": "It lives in {region}.",
    "months": "It is seen in {months}.",
    "length": "Its length is {length}.",
    "width": "Its width is {width}.",
}
SITE = "https://worn.example"
_REPEATED = ("family", "year", "region", "months", "length", "width")
_LATER = 0.12
"""Chance that a fact of a snippet stands only further down."""
_IN_SNIPPET = 3
"""Facts of a snippet beside the look."""


@dataclass(frozen=True, slots=True)
class WebPage:
    """One page of the small web."""

    url: str  # percent-encoded; its place in the world
    name: str  # what it is about: an entity's name, a region or a describer
    snippet: str
    result: str  # the full page, which begins with the snippet
    told: PageFacts  # by the snippet
    page_facts: PageFacts


def pages_about(entity: Entity, count: int, name: str) -> list[WebPage]:
    """`count` pages about an entity, each tells facts of its own; the same name gives the
    same words.

    Facts that only the web tells are dealt to the pages in turn; a page with few of
    them repeats some of the graph's. What does not fit the snippet comes further down,
    on the first page all.
    """
    rng = stream(name, "pages", entity.name)
    keys = [WEB_FACTS[i] for i in rng.permutation(len(WEB_FACTS))]
    return [_page(entity, i, keys[i::count], rng) for i in range(count)]


def _page(entity: Entity, number: int, keys: Sequence[str], rng: np.random.Generator) -> WebPage:
    others = [_REPEATED[i] for i in rng.permutation(len(_REPEATED))]
    if number == 0 or "capital" in keys:
        others.remove("region")  # told with its capital
    first = [key for key in keys[:_IN_SNIPPET] if rng.random() >= _LATER]
    fill = _IN_SNIPPET - len(first)
    shown = [*first, *others[:fill]]
    more = (*WEB_FACTS, *others) if number == 0 else (*keys, others[fill])  # the first: all
    later = [key for key in more if key not in shown]
    return _written(entity, number, (["look", *shown], later))


def _written(entity: Entity, number: int, keys: tuple[list[str], list[str]]) -> WebPage:
    words = {**entity.facts, "name": entity.name, "look": with_article(entity.look)}
    first, later = (" ".join(SENTENCES[key].format(**words) for key in part) for part in keys)
    told = [_facts(entity, key) for key in keys[0]]
    more = [_facts(entity, key) for key in keys[1]]
    return WebPage(
        url=f"{SITE}/{entity.address}/{number}",
        name=entity.name,
        snippet=first,
        result=f"{first} {later}".strip(),
        told=frozenset().union(*told),
        page_facts=frozenset().union(*told, *more),
    )


def _facts(entity: Entity, key: str) -> PageFacts:
    """What the sentence for a key tells."""
    region, describer = entity.facts["region"], entity.facts["describer"]
    if key == "capital":
        return frozenset({(entity.name, "region"), (region, "capital")})
    if key == "born":
        return frozenset({(entity.name, "describer"), (describer, "born")})
    return frozenset({(entity.name, key)})


GENERAL = (*REGIONS, *DESCRIBERS)
"""What general pages are about."""


def general_page(world: EntityWorld, about: str) -> WebPage:
    """The page about a region or a describer of a world."""
    if about in REGIONS:
        words = f"One travels to {about}, whose capital is {world.capitals[about]}."
        told = frozenset({(about, "capital")})
    else:
        words = f"One remembers {about}, who was born in {world.births[about]}."
        told = frozenset({(about, "born")})
    url = f"{SITE}/general/{about.lower()}"
    return WebPage(url, about, words, words, told, told)
