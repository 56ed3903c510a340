"""The species of the synthetic suite, the Field Guide's and others: each with its article, its
facts, and the sentences that describe its hidden parts. How large an edition is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from vrag_kit.benchmarks.articles import split_sentences
from vrag_kit.synthetic.mrag_suite import facts as kinds
from vrag_kit.synthetic.visual_rag.articles import SEASONS, write_article
from vrag_kit.synthetic.visual_rag.pages import EDITIONS as GUIDES
from vrag_kit.synthetic.world.organisms import KINDS, HiddenPart
from vrag_kit.synthetic.world.photographs import numbered_species
from vrag_kit.synthetic.world.traits import Species, stream

LOOK = "look"
MAIN = "main color"
SECOND = "second color"
"""What a sentence describes of a part: all of it, or one of its colors."""
_HOMES = re.compile(r"It lives in (.+?) and (.+?)\.")
_SEEN = re.compile(r"It is mostly seen in (.+?)\.")
Statement = tuple[str, tuple[kinds.Fact, ...]]
"""A text and the facts in it."""


@dataclass(frozen=True, slots=True)
class MragSuiteEdition:
    """How large an edition is."""

    guide: str  # the edition of the Field Guide whose species it is about
    others: int  # more species of each kind, which pages and charts are about
    pages: int  # questions of each page data set
    counts: int  # questions of Chart-MRAG
    seed: str


EDITIONS = {
    "full": MragSuiteEdition(guide="full", others=6, pages=60, counts=60, seed="suite-shown"),
    "small": MragSuiteEdition(guide="small", others=2, pages=12, counts=15, seed="pocket-suite"),
}


@dataclass(frozen=True, slots=True)
class SpeciesFacts:
    """A species with its article, and what is known of it besides its hidden parts."""

    species: Species
    name: str  # of the stream that its article comes from
    title: str
    sections: tuple[tuple[str, str], ...]  # of its article
    homes: tuple[str, str]
    season: str
    season_in_article: bool

    @property
    def subject(self) -> str:
        """Scientific name."""
        return self.species.scientific_name

    def is_plain(self, part: HiddenPart) -> bool:
        """Whether a part has one color only."""
        return self.species.hidden[part.name].pattern == "plain"

    def facts(self, kind: str) -> tuple[kinds.Fact, ...]:
        """Return its facts of a kind: one family, two homes, one season."""
        family = KINDS[self.species.kind].lineage[-1]
        values = {kinds.FAMILY: (family,), kinds.HOME: self.homes, kinds.SEASON: (self.season,)}
        about = {"subject": self.subject, "kind": kind}
        return tuple(kinds.Fact(**about, value=each) for each in values[kind])

    def article_facts(self) -> tuple[kinds.Fact, ...]:
        """Return the facts in its article."""
        season = self.facts(kinds.SEASON) if self.season_in_article else ()
        return (*self.facts(kinds.FAMILY), *self.facts(kinds.HOME), *season)

    def describe(self, part: HiddenPart, what: str = LOOK, *, of: str = "") -> Statement:
        """Return the sentence that describes a part's look, or its main or second color alone
        (`what`), and the facts in it; `of` names the species in the sentence.

        The words are those of the shipped answerers' training texts.
        """
        look, facts = self.species.hidden[part.name], appearance_facts(self.species, part.name)
        words = f"{look.color}, {look.pattern_words}"
        second = [fact for fact in facts[2:] if fact.value == look.second]
        if what == MAIN:
            words = f"{look.color}, {look.pattern}"
            facts = tuple(fact for fact in facts if fact not in second)
        elif what == SECOND:
            words, facts = look.pattern_words, (facts[1], *second)
        verb = "are" if part.plural else "is"
        name = f"{part.name} of {of}" if of else part.name
        return f"The {name} {verb} {words}.", facts

    def sections_describing(self, part: HiddenPart) -> tuple[tuple[str, str], ...]:
        """Return the article's sections, with the look of the part in place of the sentence that
        mentions a hidden part without describing it.
        """
        sections = []
        for heading, text in self.sections:
            if heading == "Description":
                text = " ".join([*split_sentences(text)[:-1], self.describe(part)[0]])
            sections.append((heading, text))
        return tuple(sections)


def appearance_facts(species: Species, part: str) -> tuple[kinds.Fact, ...]:
    """Return the facts that an image of a part shows."""
    look = species.hidden[part]
    colors = (look.color,) if look.pattern == "plain" else (look.color, look.second)
    every = [(kinds.COLOR, look.color), (kinds.PATTERN, look.pattern)]
    every += [(kinds.COLORS_OF_TWO, color) for color in colors]
    about = {"subject": species.scientific_name, "part": part}
    return tuple(kinds.Fact(**about, kind=kind, value=value) for kind, value in every)


@cache
def suite_species(edition: MragSuiteEdition) -> tuple[SpeciesFacts, ...]:
    """Return the species of the Field Guide's edition, then those of `extra_species`."""
    guide = GUIDES[edition.guide]
    return (*_species(guide.seed, guide.species_per_kind), *extra_species(edition))


@cache
def extra_species(edition: MragSuiteEdition) -> tuple[SpeciesFacts, ...]:
    """Return the species that the guide does not have, so that no answerer was trained on them:
    those of pages and charts.
    """
    return tuple(_species(edition.seed, edition.others))


def names_to_species(known: Sequence[SpeciesFacts]) -> Mapping[str, str]:
    """Map every name of a species to its scientific name."""
    names: dict[str, str] = {}
    for life in known:
        species = life.species
        for name in (species.common_name, f"{species.genus} and its allies", life.subject):
            names.setdefault(name, life.subject)
    return names


def _species(seed: str, count: int) -> list[SpeciesFacts]:
    """Return `count` species of each kind."""
    found = []
    for number, kind in product(range(count), KINDS):
        name, species = f"{seed}/{kind}/{number}", numbered_species(seed, kind, number)
        title, sections = write_article(species, name)
        text = " ".join(words for _, words in sections)
        homes = _HOMES.findall(text)[0]
        seen = _SEEN.search(text)
        season = seen[1] if seen else str(stream(name, "season").choice(SEASONS))
        life = SpeciesFacts(species, name, title, sections, homes, season, seen is not None)
        found.append(life)
    return found
