"""The species of the synthetic suite, the Field Guide's and others: each with its article, its
facts, and the sentences that describe its hidden parts.

Facts: the sentence of each, what other facts say about it, the file of what
every document of a data set shows, and a grammar that reads facts in the Field Guide's language:
in sentences, in replies to short questions, and in claims.

The grammar knows names, parts, colors and patterns, and the sentences that the guide is written in,
and finds no fact in anything else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from itertools import chain, product
from pathlib import Path
from typing import NamedTuple

from vrag_kit.benchmarks.articles import split_sentences
from vrag_kit.claims.verdicts import EntailmentLabel
from vrag_kit.judging.rule_judge import canonical_trait
from vrag_kit.synthetic.rows import write_json_lines
from vrag_kit.synthetic.visual_rag.articles import SEASONS, SpeciesArticle, write_article
from vrag_kit.synthetic.visual_rag.pages import EDITIONS as GUIDES
from vrag_kit.synthetic.visual_rag.questions import Question, make_question
from vrag_kit.synthetic.world.organisms import KINDS, HiddenPart, hidden_parts
from vrag_kit.synthetic.world.photographs import numbered_species
from vrag_kit.synthetic.world.traits import COLORS, PATTERNS, Appearance, Species, choose, stream
from vrag_kit.types import DocId

COLOR = "color"
COLORS_OF_TWO = "colors"
PATTERN = "pattern"
FAMILY = "family"
HOME = "home"
SEASON = "season"
_SENTENCES = {
    COLOR: "The main color of the {part} of {subject} is {value}.",
    COLORS_OF_TWO: "One of the two colors of the {part} of {subject} is {value}.",
    PATTERN: "The {part} of {subject} {are} {value}.",
    FAMILY: "{subject} belongs to the family {value}.",
    HOME: "{subject} lives in {value}.",
    SEASON: "{subject} is mostly seen in {value}.",
}
_HIDDEN = chain.from_iterable(kind.hidden for kind in KINDS.values())
PARTS = tuple(dict.fromkeys(part.name for part in _HIDDEN))
"""The hidden parts of all kinds of organism."""
_CACHED_TEXTS = 10_000  # each is compared with many claims
_PART = re.compile("|".join(sorted(PARTS, key=len, reverse=True)))
_SENTENCE = re.compile(r"(?<=[.?!])\s+|\n+")
_OF_TWO = re.compile(r"\bone of the two colors\b|\bwhich (?:has|have) two colors\b", re.IGNORECASE)
_LINES = {
    FAMILY: re.compile(r"\bfamily (?P<value>[A-Z][a-z]+)"),
    HOME: re.compile(r"\blives in (?P<value>[^.;]+)"),
    SEASON: re.compile(rf"\bseen in (?P<value>{'|'.join(SEASONS)})\b"),
}
"""What the encyclopedia says beside looks."""


class Topic(NamedTuple):
    """What a question asks or a fact is a value of; empty for what a question does not say."""

    subject: str = ""
    """Scientific name."""
    part: str = ""
    """A hidden part for looks; "" for the rest."""
    kind: str = ""
    """`COLOR`, `COLORS_OF_TWO`, `PATTERN`, `FAMILY`, `HOME` or `SEASON`; of questions the first
    three.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One value of one species, or of a part of it; the fields are those of `Topic`."""

    subject: str
    kind: str
    value: str
    part: str = ""

    @property
    def sentence(self) -> str:
        """The fact in words that stand alone."""
        are = "are" if self.part.endswith("s") else "is"
        return _SENTENCES[self.kind].format(**asdict(self), are=are)

    @property
    def about(self) -> Topic:
        """What it is a value of."""
        return Topic(self.subject, self.part, self.kind)


def relation(claim: Fact, facts: Iterable[Fact]) -> EntailmentLabel:
    """What facts say about a claim: an equal value entails it, another one of the same
    species, part and kind contradicts it, else they are neutral.

    Of several values, as of two homes, one that is equal is enough. The main colour of a
    part is one of its two colours, and is none that is not among both; while only one of
    the two is told, another colour may be the other one, unless the part is plain.
    """
    values: dict[str, set[str]] = {COLOR: set(), COLORS_OF_TWO: set(), PATTERN: set()}
    for fact in facts:
        if (fact.subject, fact.part) == (claim.subject, claim.part):
            values.setdefault(fact.kind, set()).add(fact.value)
    told, both = values.get(claim.kind, set()), values[COLORS_OF_TWO]
    is_other = bool(told) or (claim.kind == COLOR and len(both) == 2 and claim.value not in both)
    if claim.kind == COLORS_OF_TWO:
        told = told | values[COLOR]
        is_other = len(told) > 1 or (bool(told) and "plain" in values[PATTERN])
    if claim.value in told:
        return EntailmentLabel.ENTAILMENT
    return EntailmentLabel.CONTRADICTION if is_other else EntailmentLabel.NEUTRAL


Shown = Mapping[DocId, tuple[Fact, ...]]
"""Document → the facts that it shows or tells."""


def write_ground_truth(shown: Shown, path: Path) -> None:
    """Write what documents show, one JSON object a line."""
    rows = []
    for doc_id, facts in shown.items():
        known = [{k: v for k, v in asdict(fact).items() if v} for fact in facts]
        rows.append({"doc_id": doc_id, "shows": known})
    write_json_lines(path, rows)


def read_ground_truth(path: Path) -> dict[DocId, tuple[Fact, ...]]:
    """Return what `write_ground_truth` wrote."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {row["doc_id"]: tuple(Fact(**told) for told in row["shows"]) for row in rows}


LOOK = "look"
MAIN = "main color"
SECOND = "second color"
"""What a sentence describes of a part: all of it, or one of its colors."""
Statement = tuple[str, tuple[Fact, ...]]
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

    def facts(self, kind: str) -> tuple[Fact, ...]:
        """Return its facts of a kind: one family, two homes, one season."""
        values = {
            FAMILY: KINDS[self.species.kind].lineage[-1:],
            HOME: self.article.homes,
            SEASON: (self.season,),
        }
        return tuple(Fact(subject=self.subject, kind=kind, value=value) for value in values[kind])

    def article_facts(self) -> tuple[Fact, ...]:
        """Return the facts in its article."""
        season = self.facts(SEASON) if self.article.season else ()
        return (*self.facts(FAMILY), *self.facts(HOME), *season)


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
    def facts(self) -> tuple[Fact, ...]:
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
        name = f"{self.part.name} of {of}" if of else self.part.name
        return f"The {name} {self.part.be} {words}.", facts

    def sections(self) -> tuple[tuple[str, str], ...]:
        """Return the article's sections, with the look of the part in place of the sentence that
        mentions a hidden part without describing it.
        """
        sections = dict(self.life.article.sections)
        outward = split_sentences(sections["Description"])[:-1]
        sections["Description"] = " ".join([*outward, self.describe()[0]])
        return tuple(sections.items())


def appearance_facts(species: Species, part: str) -> tuple[Fact, ...]:
    """Return the facts that an image of a part shows."""
    look = species.hidden[part]
    colors = (look.color,) if look.pattern == "plain" else (look.color, look.second)
    every = [(COLOR, look.color), (PATTERN, look.pattern)]
    every += [(COLORS_OF_TWO, color) for color in colors]
    subject = species.scientific_name
    return tuple(Fact(subject=subject, part=part, kind=kind, value=value) for kind, value in every)


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


class FieldGuideGrammar:
    """Reads facts about the species of `names`, which maps every name to the scientific one;
    implements `Grammar`.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = dict(names)
        longest = sorted(self._names, key=len, reverse=True)
        self._name = re.compile(rf"\b(?=[A-Z])(?:{'|'.join(map(re.escape, longest))})")
        self._read = lru_cache(maxsize=_CACHED_TEXTS)(self._facts)

    def facts(self, text: str, question: str = "") -> list[Fact]:
        """Return the facts in a text, in order, without duplicates.

        A sentence without a name is about the one named last, in the text or in the `question` that
        it answers. A reply without a part, such as "red and blue", is read as the answer to that
        question, or to the last one in the text.
        """
        return list(self._read(text, question))

    def _facts(self, text: str, question: str) -> tuple[Fact, ...]:
        asked = self.question_target(question)
        subject = asked.subject
        found: list[Fact] = []
        for sentence in _SENTENCE.split(text):
            if sentence.endswith("?"):
                asked = self.question_target(sentence)
                subject = asked.subject
                continue
            subject = self._subject(sentence) or subject
            part, values = self._values(sentence, asked)
            for kind, value in values if subject else ():
                found.append(Fact(subject=subject, part=part, kind=kind, value=value))
        return tuple(dict.fromkeys(found))

    def claims(self, question: str, words: str) -> tuple[str, ...]:
        """Return one sentence for each fact in words that answer a question."""
        return tuple(fact.sentence for fact in self.facts(words, question))

    def claim(self, sentence: str) -> Fact | None:
        """Return the fact of a claim; None for one without a fact, or with several."""
        facts = self.facts(sentence)
        return facts[0] if len(facts) == 1 else None

    def relation(self, claim: str, text: str) -> EntailmentLabel | None:
        """Return the relation of a text to a claim; None for a claim without one fact."""
        fact = self.claim(claim)
        return None if fact is None else relation(fact, self.facts(text))

    def question_target(self, question: str) -> Topic:
        """Return what a question asks about which part of which species."""
        subject = self._subject(question)
        part = _PART.search(question)
        if not part:
            return Topic(subject)
        if re.search(r"\bpattern", question):
            return Topic(subject, part[0], PATTERN)
        both = re.search(r"\bcolors\b", question)
        return Topic(subject, part[0], COLORS_OF_TWO if both else COLOR)

    def _subject(self, text: str) -> str:
        """The scientific name of the species named first; "" where none is."""
        found = self._name.search(text)
        return self._names[found[0]] if found else ""

    def _values(self, sentence: str, asked: Topic) -> tuple[str, list[tuple[str, str]]]:
        """The part that a sentence is about, and (kind, value) of what it says."""
        lines = _lines(sentence)
        part = _PART.search(sentence)
        words = self._name.sub(" ", sentence)
        if lines or not (part or asked.part):
            return "", lines
        if not part:
            return asked.part, _replied(words, asked.kind)
        return part[0], _looks(words.partition(part[0])[2], words)


def _lines(sentence: str) -> list[tuple[str, str]]:
    """(kind, value) of what the encyclopedia tells."""
    told = []
    for kind, words in _LINES.items():
        if found := words.search(sentence):
            values = re.split(r", | and ", found["value"]) if kind == HOME else [found["value"]]
            told += [(kind, value) for value in values]
    return told


def _looks(words: str, sentence: str) -> list[tuple[str, str]]:
    """(kind, value) of the looks in what is said of a part: the ground's colour comes
    first; "banded with blue" tells of a second one, and alone of no ground.
    """
    known = _canonical(words)
    colors, patterns = _traits(known)
    both = [(COLORS_OF_TWO, color) for color in colors]
    ground = [(COLOR, color) for color in colors[:1]]
    if _OF_TWO.search(sentence):
        return both
    if re.search(r"\bmain color\b", sentence):
        return ground
    if not patterns:
        return ground if len(colors) < 2 else both
    if colors and "with" in known[: known.index(colors[0])]:
        return [*patterns, *both]
    return [*ground, *patterns, *both]


def _replied(words: str, kind: str) -> list[tuple[str, str]]:
    """(kind, value) in a reply to a question about a part."""
    colors, patterns = _traits(_canonical(words))
    of_color = COLORS_OF_TWO if kind == COLORS_OF_TWO or len(colors) > 1 else COLOR
    return [*((of_color, color) for color in colors), *patterns]


def _canonical(words: str) -> list[str]:
    """The words, spellings of colors and patterns as these are named, in order, each once."""
    plain = words.lower().replace("no pattern", "plain")
    return list(dict.fromkeys(map(canonical_trait, re.findall(r"[a-z]+", plain))))


def _traits(known: Sequence[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Colors, and (`PATTERN`, pattern) of each pattern."""
    patterns = [(PATTERN, word) for word in known if word in PATTERNS]
    return [word for word in known if word in COLORS], patterns
