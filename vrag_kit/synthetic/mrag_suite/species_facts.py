"""What there is to be told about the species of the drawn suite: the Field Guide's and
others, each with its article and its life.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from vrag_kit.benchmarks.articles import split_sentences
from vrag_kit.synthetic.articles import write_article
from vrag_kit.synthetic.mrag_suite.edition import MragSuiteEdition
from vrag_kit.synthetic.mrag_suite.facts import (
    COLOR,
    COLORS_OF_TWO,
    FAMILY,
    HOME,
    PATTERN,
    SEASON,
    Fact,
)
from vrag_kit.synthetic.organisms import KINDS, HiddenPart
from vrag_kit.synthetic.pages import EDITIONS as GUIDES
from vrag_kit.synthetic.photographs import numbered_species
from vrag_kit.synthetic.questions import hidden_parts
from vrag_kit.synthetic.traits import Appearance, Species, stream

SEASONS = ("spring", "early summer", "late summer", "autumn")
"""When a species is seen."""
_HOMES = re.compile(r"It lives in (.+?) and (.+?)\.")
_SEEN = re.compile(r"It is mostly seen in (.+?)\.")


LOOK = "look"
"""What a sentence may tell of a part: all of it, or one of its colours."""
MAIN = "main color"
SECOND = "second color"


@dataclass(frozen=True, slots=True)
class SpeciesFacts:
    """A species and what is known of it, but for hidden parts."""

    species: Species
    name: str  # of the stream that its article comes from
    title: str
    sections: tuple[tuple[str, str], ...]  # of its article
    homes: tuple[str, str]
    season: str
    season_in_article: bool  # by its article

    @property
    def name_and_latin(self) -> str:
        """How pages and charts call it."""
        return f"{self.species.common_name} ({self.subject})"

    @property
    def parts(self) -> tuple[HiddenPart, HiddenPart]:
        """Its hidden parts."""
        return hidden_parts(self.species)

    def is_plain(self, part: HiddenPart) -> bool:
        """Whether a part has one color only."""
        return self.species.hidden[part.name].pattern == "plain"

    @property
    def subject(self) -> str:
        """Scientific name."""
        return self.species.scientific_name

    @property
    def family(self) -> str:
        """Of its kind."""
        return KINDS[self.species.kind].lineage[-1]

    def fact(self, kind: str, value: str = "") -> Fact:
        """What is true of it: of a home, either one."""
        told = {
            FAMILY: self.family,
            HOME: self.homes[0],
            SEASON: self.season,
        }
        return Fact(subject=self.subject, kind=kind, value=value or told[kind])

    def article_facts(self) -> tuple[Fact, ...]:
        """The facts that its article tells."""
        homes = [self.fact(HOME, home) for home in self.homes]
        season = [self.fact(SEASON)] if self.season_in_article else []
        return (self.fact(FAMILY), *homes, *season)

    def sections_describing(self, part: HiddenPart) -> tuple[tuple[str, str], ...]:
        """The article's sections, with how the part looks in the place of the sentence
        that calls it, or the other one, seldom seen.
        """
        sections = []
        for heading, text in self.sections:
            if heading == "Description":
                text = " ".join([*split_sentences(text)[:-1], describe_part(self, part)[0]])
            sections.append((heading, text))
        return tuple(sections)


def appearance_facts(subject: str, part: str, look: Appearance) -> tuple[Fact, ...]:
    """What one knows of a part who sees it."""
    plain = look.pattern == "plain"
    colors = (look.color,) if plain else (look.color, look.second)
    every = [(COLOR, look.color), (PATTERN, look.pattern)]
    every += [(COLORS_OF_TWO, color) for color in colors]
    return tuple(Fact(subject=subject, part=part, kind=kind, value=said) for kind, said in every)


def describe_part(
    life: SpeciesFacts, part: HiddenPart, what: str = LOOK, *, of: str = ""
) -> tuple[str, tuple[Fact, ...]]:
    """The sentence that tells a part's look, or its main or second colour alone (`what`),
    and the facts in it; `of` names the species in the sentence.

    The words are those that the shipped answerers learned to read.
    """
    look = life.species.hidden[part.name]
    every = appearance_facts(life.subject, part.name, look)
    second = Fact(subject=life.subject, part=part.name, kind=COLORS_OF_TWO, value=look.second)
    verb = "are" if part.plural else "is"
    start = f"The {part.name} of {of} {verb}" if of else f"The {part.name} {verb}"
    if what == SECOND:
        facts = tuple(fact for fact in every if fact.kind == PATTERN or fact == second)
        return f"{start} {look.pattern} with {look.second}.", facts
    if what == MAIN or look.pattern == "plain":
        return f"{start} {look.color}, {look.pattern}.", tuple(f for f in every if f != second)
    return f"{start} {look.color}, {look.pattern} with {look.second}.", every


@cache
def suite_species(edition: MragSuiteEdition) -> tuple[SpeciesFacts, ...]:
    """The species of the Field Guide's edition, and then those of `extra_species`."""
    guide = GUIDES[edition.guide]
    return (*_lives(guide.seed, guide.species_per_kind), *extra_species(edition))


@cache
def extra_species(edition: MragSuiteEdition) -> tuple[SpeciesFacts, ...]:
    """Species that the guide does not have, so that no answerer was told of them: what
    pages and charts are about.
    """
    return _lives(edition.seed, edition.others)


def _lives(seed: str, count: int) -> tuple[SpeciesFacts, ...]:
    """So many species of each kind."""
    found: list[SpeciesFacts] = []
    for number in range(count):
        found += [_life(seed, kind, number) for kind in KINDS]
    return tuple(found)


def names_to_species(known: tuple[SpeciesFacts, ...]) -> dict[str, str]:
    """Everything that a species is called → its scientific name."""
    names: dict[str, str] = {}
    for life in known:
        species = life.species
        for name in (species.common_name, f"{species.genus} and its allies", life.subject):
            names.setdefault(name, life.subject)
    return names


def species_by_name(known: tuple[SpeciesFacts, ...]) -> Mapping[str, Species]:
    """Scientific name → species."""
    return {life.subject: life.species for life in known}


def _life(seed: str, kind: str, number: int) -> SpeciesFacts:
    name = f"{seed}/{kind}/{number}"
    species = numbered_species(seed, kind, number)
    title, sections = write_article(species, name)
    text = " ".join(told for _, told in sections)
    homes = _HOMES.search(text)
    seen = _SEEN.search(text)
    if homes is None:
        raise RuntimeError(f"{name}: its article tells no homes")
    season = seen[1] if seen else str(stream(name, "season").choice(SEASONS))
    return SpeciesFacts(
        species=species,
        name=name,
        title=title,
        sections=sections,
        homes=(homes[1], homes[2]),
        season=season,
        season_in_article=seen is not None,
    )
