"""The Field Guide's language, read by rule: facts in sentences, in replies to short
questions, and in claims.

It knows names, parts, colours and patterns, and the sentences that the guide is written
in; anything else tells it nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain

from vrag_kit.claims.verdicts import EntailmentLabel
from vrag_kit.judging.rule_judge import canonical_trait
from vrag_kit.synthetic.mrag_suite.facts import (
    COLOR,
    COLORS_OF_TWO,
    FAMILY,
    HOME,
    LOOKS,
    PARTS,
    PATTERN,
    SEASON,
    Fact,
    relation,
)
from vrag_kit.synthetic.mrag_suite.species import SEASONS
from vrag_kit.synthetic.traits import COLORS, PATTERNS

_KEPT = 10_000  # texts whose facts are remembered: each is held against many claims
_PART = re.compile("|".join(sorted(PARTS, key=len, reverse=True)))
_SEASON = "|".join(SEASONS)
_NOT = re.compile(r"\b(?:not|never|no longer|isn't|aren't|doesn't)\b")
_PRONOUN = re.compile(r"\s*(?:It|They|These|Those) (?:is|are)\b")
_LIST = re.compile(r",|;|\band\b|\bwith\b|\bor\b")
_SENTENCE = re.compile(r"(?<=[.?!])\s+|\n+")
_OF_TWO = re.compile(r"\bone of the two colors\b|\bwhich (?:has|have) two colors\b", re.IGNORECASE)
_PLAIN = re.compile(r"\bno (?:visible |clear )?patterns?\b")
_SAYS = {
    FAMILY: re.compile(r"\bfamily:? (?P<value>[A-Z][a-z]+)", re.IGNORECASE),
    HOME: re.compile(r"(?:\blives? (?:not )?in|\bHome:) (?P<value>[^.;]+)"),
    SEASON: re.compile(rf"(?:\bseen in|\bSeason:) (?P<value>{_SEASON})\b"),
}
_ASKED = {
    FAMILY: re.compile(r"\bfamily\b"),
    SEASON: re.compile(r"\bseason\b"),
    HOME: re.compile(r"\blives?\b"),
}
_FORMS = {FAMILY: "[A-Z][a-z]+", SEASON: _SEASON}
"""What a bare reply looks like."""


@dataclass(frozen=True, slots=True)
class QuestionTarget:
    """What a question asks of whom; empty where it does not say, or asks of several."""

    subject: str = ""
    part: str = ""
    kinds: tuple[str, ...] = ()


class FieldGuideGrammar:
    """Reads what is said about the species of `names`, every name → the scientific one;
    implements `Grammar`.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = dict(names)
        longest = sorted(self._names, key=len, reverse=True)
        every = "|".join(map(re.escape, longest)) or "(?!)"
        self._name = re.compile(rf"\b(?=[A-Z])(?:{every})")  # looked for at capitals only
        self._read = lru_cache(maxsize=_KEPT)(self._facts)

    def facts(self, text: str, question: str = "") -> list[Fact]:
        """The facts that a text tells, in order, each once.

        A sentence without a name is about the one named last, in the text or in the
        `question` that it answers. A reply of bare words, such as "red and blue", is read
        as the answer to that question, or to the last one that stands in the text.
        """
        return list(self._read(text, question))

    def _facts(self, text: str, question: str) -> tuple[Fact, ...]:
        topic = self.question_target(question)
        found: list[Fact] = []
        for sentence in _SENTENCE.split(text):
            if sentence.endswith("?"):
                topic = self.question_target(sentence)
                continue
            topic = replace(topic, subject=self.subject(sentence) or topic.subject)
            if topic.subject:
                found += self._facts_of_sentence(sentence, topic)
        return tuple(dict.fromkeys(found))

    def claims(self, question: str, words: str) -> tuple[str, ...]:
        """One sentence for each fact in words that answer a question."""
        return tuple(fact.sentence for fact in self.facts(words, question))

    def claim(self, sentence: str) -> Fact | None:
        """The fact of a claim; None for one that is not of this language, or tells
        several.
        """
        facts = self.facts(sentence)
        return facts[0] if len(facts) == 1 else None

    def relation(self, claim: str, text: str) -> EntailmentLabel | None:
        """What a text says about a claim; None for a claim that is not of this language."""
        fact = self.claim(claim)
        return None if fact is None else relation(fact, self.facts(text))

    def question_target(self, question: str) -> QuestionTarget:
        """What a question asks of whom: one look of a part, or lines of the encyclopedia."""
        part = _PART.search(question)
        subject = self.subject(question)
        if part:
            return QuestionTarget(subject, part[0], (_look_asked(question),))
        if len({self._names[name] for name in self._name.findall(question)}) > 1:
            return QuestionTarget(subject)
        kinds = [kind for kind, words in _ASKED.items() if words.search(question)]
        return QuestionTarget(subject, kinds=tuple(kinds))

    def subject(self, text: str) -> str:
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
        elif not told and not _is_sentence(words):
            told = list(chain.from_iterable(_replied(words, kind) for kind in topic.kinds))
        facts = []
        for kind, value in told:
            part_of = topic.part if kind in LOOKS else ""
            if part_of or kind not in LOOKS:
                about = Fact(subject=topic.subject, part=part_of, kind=kind, value=value)
                facts.append(replace(about, denied=denied))
        return facts


def _look_asked(question: str) -> str:
    if re.search(r"\bpattern", question):
        return PATTERN
    return COLORS_OF_TWO if re.search(r"\b(?:two )?colors\b", question) else COLOR


def _lines(sentence: str) -> Iterator[tuple[str, str]]:
    """(kind, value) of what the encyclopedia tells."""
    for kind, words in _SAYS.items():
        found = words.search(sentence)
        if found is None:
            continue
        values = _listed(found["value"]) if kind == HOME else [found["value"]]
        for value in values:
            yield kind, value


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
    """(kind, value) in a reply of bare words to what was asked."""
    if kind in LOOKS:
        colors, patterns = _traits(words, COLORS), _traits(words, PATTERNS)
        asked = COLORS_OF_TWO if kind == COLORS_OF_TWO or len(colors) > 1 else COLOR
        return [*((asked, color) for color in colors), *((PATTERN, each) for each in patterns)]
    if kind == HOME:
        return [(kind, each) for each in _listed(words)]
    return [(kind, each) for each in re.findall(rf"\b(?:{_FORMS[kind]})\b", words)]


def _is_sentence(words: str) -> bool:
    """Whether words are more than a bare reply."""
    return bool(re.search(r"\b(?:is|are|was|were|has|have|don't|do|seldom|few)\b", words.lower()))


def _traits(words: str, values: Mapping[str, object] | Sequence[str]) -> list[str]:
    """Which of the values words stand for, in order, each once."""
    plain = _PLAIN.sub("plain", words.lower())
    known = map(canonical_trait, re.findall(r"[a-z]+", plain))
    return list(dict.fromkeys(word for word in known if word in values))


def _listed(words: str) -> list[str]:
    return [each.strip(" .") for each in _LIST.split(words) if each.strip(" .")]
