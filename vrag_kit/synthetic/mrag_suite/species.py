"""The species of the synthetic suite, the Field Guide's and others: each with its article, its
facts, and the sentences that describe its hidden parts. How large an edition is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from vrag_kit.benchmarks.articles import split_sentences
from vrag_kit.synthetic.mrag_suite import facts as kinds
from vrag_kit.synthetic.visual_rag.articles import SEASONS, SpeciesArticle, write_article
from vrag_kit.synthetic.visual_rag.pages import EDITIONS as GUIDES
from vrag_kit.synthetic.visual_rag.questions import Question, make_question
from vrag_kit.synthetic.world.organisms import KINDS, HiddenPart, hidden_parts
from vrag_kit.synthetic.world.photographs import numbered_species
from vrag_kit.synthetic.world.traits import Appearance, Species, choose, stream

LOOK = "look"
MAIN = "main color"
SECOND = "second color"
"""What a sentence describes of a part: all of it, or one of its colors."""
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


@dataclass(frozen=True, slots=True, eq=False)
class SpeciesFacts:
    """A species with its article, and what is known of it besides its hidden parts."""

    species: Species
    name: str  # of the stream that its article comes from
    article: SpeciesArticle
    season: str

    @property
    def subject(self) -> str:
        """Scientific name."""
        return self.species.scientific_name

    @property
    def parts(self) -> list[PartFacts]:
        """Its hidden parts."""
        return [PartFacts(self, part) for part in hidden_parts(self.species)]

    def facts(self, kind: str) -> tuple[kinds.Fact, ...]:
        """Return its facts of a kind: one family, two homes, one season."""
        values = {
            kinds.FAMILY: KINDS[self.species.kind].lineage[-1:],
            kinds.HOME: self.article.homes,
            kinds.SEASON: (self.season,),
        }
        return tuple(
            kinds.Fact(subject=self.subject, kind=kind, value=value) for value in values[kind]
        )

    def article_facts(self) -> tuple[kinds.Fact, ...]:
        """Return the facts in its article."""
        season = self.facts(kinds.SEASON) if self.article.season else ()
        return (*self.facts(kinds.FAMILY), *self.facts(kinds.HOME), *season)


@dataclass(frozen=True, slots=True, eq=False)
class PartFacts:
    """A hidden part of a species, which a question may be about."""

    life: SpeciesFacts
    part: HiddenPart

    @property
    def name(self) -> str:
        """The name of its random streams."""
        return f"{self.life.name}/{self.part.name}"

    @property
    def look(self) -> Appearance:
        """What nobody sees from outside."""
        return self.life.species.hidden[self.part.name]

    @property
    def is_plain(self) -> bool:
        """Whether it has one color only."""
        return self.look.pattern == "plain"

    @property
    def facts(self) -> tuple[kinds.Fact, ...]:
        """The facts that an image of it shows."""
        return appearance_facts(self.life.species, self.part.name)

    def question(self, kind: str) -> Question:
        """Return the question about it of a kind, one of `questions.ASKS`."""
        return make_question(self.life.species, self.part, kind)

    def describe(self, what: str = LOOK, *, of: str = "") -> Statement:
        """Return the sentence that describes its look, or its main or second color alone
        (`what`), and the facts in it; `of` names the species in the sentence.

        The words are those of the shipped answerers' training texts.
        """
        look = self.look
        facts = self.facts
        words = f"{look.color}, {look.pattern_words}"
        second = [fact for fact in facts[2:] if fact.value == look.second]
        if what == MAIN:
            words = f"{look.color}, {look.pattern}"
            facts = tuple(fact for fact in facts if fact not in second)
        elif what == SECOND:
            words = look.pattern_words
            facts = (facts[1], *second)
        verb = "are" if self.part.plural else "is"
        name = f"{self.part.name} of {of}" if of else self.part.name
        return f"The {name} {verb} {words}.", facts

    def sections(self) -> tuple[tuple[str, str], ...]:
        """Return the article's sections, with the look of the part in place of the sentence that
        mentions a hidden part without describing it.
        """
        sections = dict(self.life.article.sections)
        outward = split_sentences(sections["Description"])[:-1]
        sections["Description"] = " ".join([*outward, self.describe()[0]])
        return tuple(sections.items())


def appearance_facts(species: Species, part: str) -> tuple[kinds.Fact, ...]:
    """Return the facts that an image of a part shows."""
    look = species.hidden[part]
    colors = (look.color,) if look.pattern == "plain" else (look.color, look.second)
    every = [(kinds.COLOR, look.color), (kinds.PATTERN, look.pattern)]
    every += [(kinds.COLORS_OF_TWO, color) for color in colors]
    subject = species.scientific_name
    return tuple(
        kinds.Fact(subject=subject, part=part, kind=kind, value=value) for kind, value in every
    )


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
        names.setdefault(life.species.common_name, life.subject)
        names.setdefault(f"{life.species.genus} and its allies", life.subject)
        names.setdefault(life.subject, life.subject)
    return names


def _species(seed: str, count: int) -> list[SpeciesFacts]:
    """Return `count` species of each kind."""
    found = []
    for number, kind in product(range(count), KINDS):
        name = f"{seed}/{kind}/{number}"
        species = numbered_species(seed, kind, number)
        article = write_article(species, name)
        season = article.season or choose(SEASONS, stream(name, "season"))
        found.append(SpeciesFacts(species, name, article, season))
    return found
