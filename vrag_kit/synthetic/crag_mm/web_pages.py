"""Web pages about entities, regions and describers, in short regular sentences, of which the
snippet has the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vrag_kit.synthetic.crag_mm.entities import (
    DESCRIBERS,
    REGIONS,
    WEB_FACTS,
    Entity,
    EntityWorld,
    with_article,
)
from vrag_kit.synthetic.world.traits import stream
from vrag_kit.types import Json

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

    url: str
    name: str  # what it is about: an entity's name, a region or a describer
    snippet: str
    result: str  # the full page, which begins with the snippet

    def row(self) -> Json:
        """Return the columns of the converted index."""
        named = {"page_name": self.name, "page_snippet": self.snippet, "page_url": self.url}
        return {**named, "page_result": self.result, "page_last_modified": ""}


def pages_about(entity: Entity, count: int, name: str) -> list[WebPage]:
    """Return `count` pages about an entity, each with facts of its own; the same name gives the
    same words.

    Facts that only the web has are dealt to the pages in turn; a page with few of them repeats
    some of the knowledge graph's. What does not fit the snippet comes further down, on the first
    page all.
    """
    rng = stream(name, "pages", entity.name)
    keys = [WEB_FACTS[i] for i in rng.permutation(len(WEB_FACTS))]
    return [_page(entity, i, keys[i::count], rng) for i in range(count)]


def _page(entity: Entity, number: int, keys: Sequence[str], rng: np.random.Generator) -> WebPage:
    others = [_REPEATED[i] for i in rng.permutation(len(_REPEATED))]
    if number == 0 or "capital" in keys:
        others.remove("region")  # it is in the sentence about its capital
    first = [key for key in keys[:_IN_SNIPPET] if rng.random() >= _LATER]
    fill = _IN_SNIPPET - len(first)
    in_snippet = [*first, *others[:fill]]
    more = (*WEB_FACTS, *others) if number == 0 else (*keys, others[fill])
    later = [key for key in more if key not in in_snippet]
    words = {**entity.facts, "name": entity.name, "look": with_article(entity.look)}
    snippet, rest = (
        " ".join(SENTENCES[key].format(**words) for key in part)
        for part in (["look", *in_snippet], later)
    )
    url = f"{SITE}/{entity.address}/{number}"
    return WebPage(url, entity.name, snippet, f"{snippet} {rest}".strip())


GENERAL = (*REGIONS, *DESCRIBERS)
"""Subjects of general pages."""


def general_page(world: EntityWorld, about: str) -> WebPage:
    """Return the page about a region or a describer of a world."""
    if about in REGIONS:
        words = f"One travels to {about}, whose capital is {world.capitals[about]}."
    else:
        words = f"One remembers {about}, who was born in {world.births[about]}."
    return WebPage(f"{SITE}/general/{about.lower()}", about, words, words)
