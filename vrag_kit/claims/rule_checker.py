"""Rule-based claim extractor and checker, for texts that a grammar can parse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from vrag_kit.benchmarks.articles import split_sentences
from vrag_kit.claims.verdicts import (
    AnswerText,
    ClaimChecker,
    ClaimExtraction,
    EntailmentLabel,
    EntailmentRequest,
    failed_verdict,
    verdict,
)
from vrag_kit.types import Document, Failure, Judgment, Status

RULE = "rule"
"""Parameter value that selects the rule-based extractor and checker."""


class Grammar(Protocol):
    """Splits the texts of a language into claims, and relates claims to texts."""

    def claims(self, question: str, words: str) -> Sequence[str]:
        """Return the facts in an answer to a question, one sentence each, without duplicates.
        Empty for an answer without a fact.
        """

    def relation(self, claim: str, text: str) -> EntailmentLabel | None:
        """Return the relation of a text to one of these claims.
        None for a claim that the grammar cannot parse.
        """


class SentenceGrammar:
    """Splits texts into sentences, and knows no other rule.
    Implements `Grammar`.
    """

    def claims(self, question: str, words: str) -> Sequence[str]:
        """Return every distinct sentence as a claim; the question is ignored."""
        return tuple(dict.fromkeys(split_sentences(words)))

    def relation(self, claim: str, text: str) -> EntailmentLabel | None:
        """Return None: the relation of a text to a sentence is unknown."""
        return None


class RuleExtractor:
    """Extracts claims with a grammar; implements `ClaimExtractor`."""

    name = RULE

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar

    def extract(self, texts: Sequence[AnswerText]) -> list[ClaimExtraction]:
        """Return the claims that the grammar finds in each text."""
        found = [self._grammar.claims(each.question, each.words) for each in texts]
        return [ClaimExtraction(claims=tuple(claims)) for claims in found]


class RuleChecker:
    """Checks claims against texts with a grammar; implements `ClaimChecker`.

    Rules cannot read images. Items with an image go to the checker `pictures`, with their captions
    if the answerer saw these; without that checker, claims about them get no label.
    """

    name = RULE

    def __init__(self, grammar: Grammar, pictures: ClaimChecker | None = None) -> None:
        self.fingerprint = pictures.fingerprint if pictures else ""
        self._grammar, self._pictures = grammar, pictures

    def check(self, checkings: Sequence[EntailmentRequest]) -> list[tuple[Judgment, ...]]:
        """Return for each request one judgment per claim."""
        shown = [each for each in checkings if each.item.image is not None]
        seen = iter(self._pictures.check(shown) if self._pictures and shown else ())
        judged = []
        for each in checkings:
            if self._pictures and each.item.image is not None:
                judged.append(next(seen))
            else:
                judged.append(tuple(self._read(claim, each.item) for claim in each.claims))
        return judged

    def _read(self, claim: str, item: Document) -> Judgment:
        if item.image is not None or item.text is None:
            words = f"{item.doc_id}: rules read texts only"
            return failed_verdict(claim, item, Failure(Status.ERROR, words))
        relation = self._grammar.relation(claim, item.text)
        if relation is None:
            words = f"{claim!r} is no sentence of the grammar"
            return failed_verdict(claim, item, Failure(Status.UNREADABLE, words))
        return verdict(claim, item, relation)
