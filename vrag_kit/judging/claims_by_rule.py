"""Claims by rule: extractor and checker for texts in a language that a grammar reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from vrag_kit.benchmarks.articles import sentences
from vrag_kit.judging.claims import (
    Checking,
    ClaimChecker,
    Extraction,
    Relation,
    Said,
    related,
    unrelated,
)
from vrag_kit.types import Evidence, Failure, Judgment, Status

RULE = "rule"
"""What parameters call extractor and checker by rule."""


class Grammar(Protocol):
    """What rules know of a language."""

    def claims(self, question: str, words: str) -> Sequence[str]:
        """The facts in words that answer a question, a sentence each, each once; empty
        where they tell none.
        """

    def relation(self, claim: str, text: str) -> Relation | None:
        """What a text says about one of these sentences; None for a claim that the
        grammar cannot read.
        """


class Sentences:
    """Knows of a language where its sentences end, and nothing else; implements
    `Grammar`.
    """

    def claims(self, question: str, words: str) -> Sequence[str]:
        """Every sentence is a claim, whatever was asked."""
        return tuple(dict.fromkeys(sentences(words)))

    def relation(self, claim: str, text: str) -> Relation | None:
        """None: what a text says about a sentence it cannot tell."""
        return None


class RuleExtractor:
    """Takes words apart as a grammar does; implements `ClaimExtractor`."""

    name = RULE

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar

    def extract(self, said: Sequence[Said]) -> list[Extraction]:
        """The claims that the grammar finds in each."""
        found = [self._grammar.claims(each.question, each.words) for each in said]
        return [Extraction(claims=tuple(claims)) for claims in found]


class RuleChecker:
    """Holds claims against texts as a grammar does; implements `ClaimChecker`.

    Rules read no pictures: those go to `pictures`, with their captions if the answerer
    saw these. Without it claims about them stay without a label.
    """

    name = RULE

    def __init__(self, grammar: Grammar, pictures: ClaimChecker | None = None) -> None:
        self.fingerprint = pictures.fingerprint if pictures else ""
        self._grammar, self._pictures = grammar, pictures

    def check(self, checkings: Sequence[Checking]) -> list[tuple[Judgment, ...]]:
        """For each checking one judgment a claim."""
        shown = [each for each in checkings if each.item.image is not None]
        seen = iter(self._pictures.check(shown) if self._pictures and shown else ())
        judged = []
        for each in checkings:
            if self._pictures and each.item.image is not None:
                judged.append(next(seen))
            else:
                judged.append(tuple(self._read(claim, each.item) for claim in each.claims))
        return judged

    def _read(self, claim: str, item: Evidence) -> Judgment:
        if item.image is not None or item.text is None:
            words = f"{item.doc_id}: rules read texts only"
            return unrelated(claim, item, Failure(Status.ERROR, words))
        relation = self._grammar.relation(claim, item.text)
        if relation is None:
            words = f"{claim!r} is no sentence of the grammar"
            return unrelated(claim, item, Failure(Status.UNREADABLE, words))
        return related(claim, item, relation)
