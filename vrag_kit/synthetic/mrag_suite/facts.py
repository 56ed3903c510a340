"""Facts about a species: the sentence of each, what other facts say about it, the file of what
every document of a data set shows, and a grammar that reads facts in the Field Guide's language:
in sentences, in replies to short questions, and in claims.

The grammar knows names, parts, colors and patterns, and the sentences that the guide is written in,
and finds no fact in anything else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path

from vrag_kit.claims.verdicts import EntailmentLabel
from vrag_kit.files import write_file
from vrag_kit.judging.rule_judge import canonical_trait
from vrag_kit.synthetic.visual_rag.articles import SEASONS
from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.traits import COLORS, PATTERNS
from vrag_kit.types import DocId

COLOR = "color"
COLORS_OF_TWO = "colors"
PATTERN = "pattern"
FAMILY = "family"
HOME = "home"
SEASON = "season"
LOOKS = (COLOR, COLORS_OF_TWO, PATTERN)
"""Kinds of facts about a part; the others are lines of the encyclopedia."""
_SENTENCES = {
    COLOR: "The main color of the {part} of {subject} is {value}.",
    COLORS_OF_TWO: "One of the two colors of the {part} of {subject} is {value}.",
    PATTERN: "The {part} of {subject} {are} {value}.",
    FAMILY: "{subject} belongs to the family {value}.",
    HOME: "{subject} lives in {value}.",
    SEASON: "{subject} is mostly seen in {value}.",
}
_HIDDEN = tuple(chain.from_iterable(kind.hidden for kind in KINDS.values()))
PARTS = tuple(dict.fromkeys(part.name for part in _HIDDEN))
"""The hidden parts of all kinds of organism."""
PLURAL = frozenset(part.name for part in _HIDDEN if part.plural)
_CACHED_TEXTS = 10_000  # each is compared with many claims
_PART = re.compile("|".join(sorted(PARTS, key=len, reverse=True)))
_NOT = re.compile(r"\b(?:not|never|no longer|isn't|aren't|doesn't)\b")
_VERB = re.compile(r"\b(?:is|are|was|were|has|have|don't|do|seldom|few)\b")
_PRONOUN = re.compile(r"\s*(?:It|They|These|Those) (?:is|are)\b")
_LIST = re.compile(r",|;|\band\b|\bwith\b|\bor\b")
_SENTENCE = re.compile(r"(?<=[.?!])\s+|\n+")
_OF_TWO = re.compile(r"\bone of the two colors\b|\bwhich (?:has|have) two colors\b", re.IGNORECASE)
_PLAIN = re.compile(r"\bno (?:visible |clear )?patterns?\b")
_SAYS = {
    FAMILY: re.compile(r"\bfamily:? (?P<value>[A-Z][a-z]+)", re.IGNORECASE),
    HOME: re.compile(r"(?:\blives? (?:not )?in|\bHome:) (?P<value>[^.;]+)"),
    SEASON: re.compile(rf"(?:\bseen in|\bSeason:) (?P<value>{'|'.join(SEASONS)})\b"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One value of one species, or of a part of it."""

    subject: str
    """Scientific name."""
    kind: str
    """`COLOR`, `COLORS_OF_TWO`, `PATTERN`, `FAMILY`, `HOME` or `SEASON`."""
    value: str
    part: str = ""
    """A hidden part for looks; "" for the rest."""
    denied: bool = False
    """Whether it is said not to be so."""

    @property
    def sentence(self) -> str:
        """The fact in words that stand alone."""
        are = "are" if self.part in PLURAL else "is"
        said = _SENTENCES[self.kind].format(
            part=self.part, subject=self.subject, value=self.value, are=are
        )
        if not self.denied:
            return said
        first = said[0].lower() if said.startswith("The ") else said[0]
        return f"It is not so that {first}{said[1:]}"

    @property
    def about(self) -> tuple[str, str, str]:
        """What it is a value of."""
        return self.subject, self.part, self.kind


def relation(claim: Fact, facts: Iterable[Fact]) -> EntailmentLabel:
    """What facts say about a claim: an equal value entails it, another one of the same
    species, part and kind or a denial contradicts it, else they are neutral.

    Of several values, as of two homes, one that is equal is enough. The main colour of a
    part is one of its two colours, and is none that is not among both; while only one of
    the two is told, another colour may be the other one, unless the part is plain. A
    claim that something is not so is entailed where it is denied or another value is
    told.
    """
    about = [fact for fact in facts if (fact.subject, fact.part) == (claim.subject, claim.part)]
    told = _values(about, claim.kind)
    if claim.kind == COLORS_OF_TWO:
        told |= _values(about, COLOR)
    denied = {fact.value for fact in about if fact.kind == claim.kind and fact.denied}
    is_all = claim.kind != COLORS_OF_TWO or len(told) > 1 or "plain" in _values(about, PATTERN)
    both = _values(about, COLORS_OF_TWO)
    is_third = claim.kind == COLOR and len(both) == 2 and claim.value not in both
    answer = EntailmentLabel.NEUTRAL
    if claim.value in told:
        answer = EntailmentLabel.ENTAILMENT
    elif (told and is_all) or claim.value in denied or is_third:
        answer = EntailmentLabel.CONTRADICTION
    opposite = {
        EntailmentLabel.ENTAILMENT: EntailmentLabel.CONTRADICTION,
        EntailmentLabel.CONTRADICTION: EntailmentLabel.ENTAILMENT,
    }
    return opposite.get(answer, answer) if claim.denied else answer


def _values(about: Iterable[Fact], kind: str) -> set[str]:
    """What is told of a kind, and not denied."""
    return {fact.value for fact in about if fact.kind == kind and not fact.denied}


Shown = Mapping[DocId, tuple[Fact, ...]]
"""Document → the facts that it shows or tells."""


def write_ground_truth(shown: Shown, path: Path) -> None:
    """Write what documents show, one JSON object a line."""
    lines = []
    for doc_id, facts in shown.items():
        told = [{k: v for k, v in asdict(fact).items() if v} for fact in facts]
        lines.append(json.dumps({"doc_id": doc_id, "shows": told}))
    write_file(path, "\n".join(lines) + "\n")


def read_ground_truth(path: Path) -> dict[DocId, tuple[Fact, ...]]:
    """Return what `write_ground_truth` wrote."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found[str(row["doc_id"])] = tuple(Fact(**told) for told in row["shows"])
    return found


@dataclass(frozen=True, slots=True)
class QuestionTarget:
    """What a question about a part asks; empty for what it does not say."""

    subject: str = ""
    part: str = ""
    kind: str = ""
    """One of `LOOKS`."""


class FieldGuideGrammar:
    """Reads facts about the species of `names`, which maps every name to the scientific one;
    implements `Grammar`.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = dict(names)
        longest = sorted(self._names, key=len, reverse=True)
        every = "|".join(map(re.escape, longest)) or "(?!)"
        self._name = re.compile(rf"\b(?=[A-Z])(?:{every})")  # looked for at capitals only
        self._read = lru_cache(maxsize=_CACHED_TEXTS)(self._facts)

    def facts(self, text: str, question: str = "") -> list[Fact]:
        """Return the facts in a text, in order, without duplicates.

        A sentence without a name is about the one named last, in the text or in the `question` that
        it answers. A reply of bare words, such as "red and blue", is read as the answer to that
        question, or to the last one in the text.
        """
        return list(self._read(text, question))

    def _facts(self, text: str, question: str) -> tuple[Fact, ...]:
        topic = self.question_target(question)
        found: list[Fact] = []
        for sentence in _SENTENCE.split(text):
            if sentence.endswith("?"):
                topic = self.question_target(sentence)
                continue
            topic = replace(topic, subject=self._subject(sentence) or topic.subject)
            if topic.subject:
                found += self._facts_of_sentence(sentence, topic)
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

    def question_target(self, question: str) -> QuestionTarget:
        """Return what a question asks about which part of which species."""
        subject = self._subject(question)
        part = _PART.search(question)
        if not part:
            return QuestionTarget(subject)
        if re.search(r"\bpattern", question):
            return QuestionTarget(subject, part[0], PATTERN)
        both = re.search(r"\b(?:two )?colors\b", question)
        return QuestionTarget(subject, part[0], COLORS_OF_TWO if both else COLOR)

    def _subject(self, text: str) -> str:
        """The scientific name of the species named first; "" where none is."""
        found = self._name.search(text)
        return self._names[found[0]] if found else ""

    def _facts_of_sentence(self, sentence: str, topic: QuestionTarget) -> list[Fact]:
        denied = bool(_NOT.search(sentence))
        told = list(_lines(sentence))
        part = _PART.search(sentence)
        words = self._name.sub(" ", sentence)
        if part and not told:
            told = _looks(words[words.find(part[0]) + len(part[0]) :], words)
            topic = replace(topic, part=part[0])
        elif not told and topic.part and _PRONOUN.match(sentence):
            told = _looks(words, words)
        elif not told and topic.part and not _VERB.search(words.lower()):
            told = _replied(words, topic.kind)
        facts = []
        for kind, value in told:
            part_of = topic.part if kind in LOOKS else ""
            if part_of or kind not in LOOKS:
                about = Fact(subject=topic.subject, part=part_of, kind=kind, value=value)
                facts.append(replace(about, denied=denied))
        return facts


def _lines(sentence: str) -> Iterator[tuple[str, str]]:
    """(kind, value) of what the encyclopedia tells."""
    for kind, words in _SAYS.items():
        found = words.search(sentence)
        if found is None:
            continue
        values = _LIST.split(found["value"]) if kind == HOME else [found["value"]]
        for value in values:
            if value.strip(" ."):
                yield kind, value.strip(" .")


def _looks(words: str, sentence: str) -> list[tuple[str, str]]:
    """(kind, value) of the looks in what is said of a part: the ground's colour comes
    first; "banded with blue" tells of a second one, and alone of no ground.
    """
    colors = _traits(words, COLORS)
    told = [(PATTERN, pattern) for pattern in _traits(words, PATTERNS)]
    if _OF_TWO.search(sentence):
        return [(COLORS_OF_TWO, color) for color in colors]
    if re.search(r"\bmain color\b", sentence):
        return [(COLOR, color) for color in colors[:1]]
    grounded = (told or len(colors) == 1) and not _of_pattern(words)
    first = [(COLOR, color) for color in colors[:1]] if grounded else []
    both = [(COLORS_OF_TWO, color) for color in colors] if told or len(colors) > 1 else []
    return [*first, *told, *both]


def _of_pattern(words: str) -> bool:
    """Whether the first colour is what a part is banded, spotted or bordered with."""
    known = [canonical_trait(word) for word in re.findall(r"[a-z]+", words.lower())]
    color = next((place for place, word in enumerate(known) if word in COLORS), 0)
    return "with" in known[:color] and any(word in PATTERNS for word in known[:color])


def _replied(words: str, kind: str) -> list[tuple[str, str]]:
    """(kind, value) in a reply of bare words to a question about a part."""
    colors = _traits(words, COLORS)
    of_color = COLORS_OF_TWO if kind == COLORS_OF_TWO or len(colors) > 1 else COLOR
    patterns = [(PATTERN, pattern) for pattern in _traits(words, PATTERNS)]
    return [*((of_color, color) for color in colors), *patterns]


def _traits(words: str, values: Mapping[str, object] | Sequence[str]) -> list[str]:
    """Which of the values words stand for, in order, each once."""
    plain = _PLAIN.sub("plain", words.lower())
    known = map(canonical_trait, re.findall(r"[a-z]+", plain))
    return list(dict.fromkeys(word for word in known if word in values))
