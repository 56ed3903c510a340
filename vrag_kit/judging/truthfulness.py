"""Truthfulness: a correct answer scores 1, a missing one 0, an incorrect one −1.
Some answers need no judge.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Collection
from itertools import combinations
from typing import NamedTuple

import pandas as pd

from vrag_kit.judging.abstention import is_abstention
from vrag_kit.judging.rubric import DECLINING, Verdict
from vrag_kit.judging.scale import TRUTH, no_reference_failure, query_answers
from vrag_kit.judging.text import (
    asserted_clauses,
    conclusion,
    contains_phrase,
    has_negation,
    head_phrase,
    new_numbers,
    normalized_words,
    numbers_in,
    phrases,
    text_words,
)
from vrag_kit.types import Benchmark, Judgment, Query

Declines = Callable[[str], bool]
"""Whether an answer abstains."""
RULES = {
    "equal": "it is the accepted answer, letter for letter: right",
    "abstention": "it says that it does not know: missing",
    "two answers": "it leaves a choice (“or”) that the question did not ask for: wrong",
    "yes or no": "the accepted answer begins with yes or no: right where it says the same and"
    " gives no other number, and no other name behind the same words, as the reason",
    "number": "the accepted answer tells a number: right where that number is asserted, in any"
    " unit, alone or beside numbers of something else",
    "list": "the accepted answer lists several things: right where each is asserted and no other",
    "name": "the accepted answer has one thing that the question has not: right where its words"
    " stand together in what is asserted",
    "prose": "that has several words without a name: right where at least half of them (both of"
    " two) are asserted",
}
"""Rule → when it decides, and how. An answer "…: value" is its value; what is denied, or
only compared with, is not asserted."""
_YES_OR_NO = re.compile(
    r"\b(yes|no)\b(?=\s*(?:[.,;:!?]|$)|\s+(?:and|but)\b)"
    r"|^\W*(?:certainly|indeed|definitely|of course|correct|true|sure)\b"
)
_NAMED = re.compile(r"\b(\w+ \w+) ([A-Z]\w*)")
_SEPARATOR = re.compile(r",|;|/|\band\b|&")
_MONTHS = calendar.month_name[1:]
_MONTH_RANGE = re.compile(
    r"\bfrom ({0}) (?:to|until|through) ({0})\b".format("|".join(_MONTHS)), re.IGNORECASE
)


def precheck(query: Query, answer: str, declines: Declines) -> Verdict | None:
    """Return the verdict of an answer that needs no judge; None for all others.
    One that abstains is missing (mark "abstention"). One that equals an accepted answer, ignoring
    case and white space at its ends, is correct (mark "equal").

    Where the accepted answer itself abstains, an equal answer is correct.
    """
    if answer.strip().lower() in [accepted.strip().lower() for accepted in query.answers]:
        return Verdict(TRUTH.best, frozenset({"equal"}))
    if declines(answer):
        return Verdict(TRUTH.nothing, frozenset({"abstention"}))
    return None


def truth_verdict(right: bool, marks: frozenset[str] = frozenset()) -> Verdict:
    """Return the verdict of an answer that is not missing."""
    return Verdict(TRUTH.best if right else TRUTH.worst, marks)


class TruthfulnessRuleJudge:
    """Judges by rule whether an answer is correct, missing or incorrect; implements `Judge`.

    A verdict's marks name its rule, one of `RULES`; its raw text says what was compared ("correct
    by name: Volvo"). Words of a question do not count in its answer. Neither do those of its
    reference query (metadata "reference_query": the question without its conversation), as "And
    mice?" has no verb of its own.
    """

    name = "truth_rule"
    scale = TRUTH

    def __init__(self, declines: Declines = is_abstention) -> None:
        """`declines` decides which answers are missing."""
        self._declines = declines

    @property
    def fingerprint(self) -> str:
        """Changes with the rule that detects abstentions."""
        return repr([said for said in DECLINING if self._declines(said)])

    def judge(self, benchmark: Benchmark, answers: pd.DataFrame) -> list[tuple[Judgment, ...]]:
        """Return one verdict for each row of answers."""
        return [(self.verdict(*pair),) for pair in query_answers(benchmark, answers)]

    def verdict(self, query: Query, answer: str) -> Judgment:
        """Return the best verdict over the accepted answers.
        A query whose answers are hidden gets a failure.
        """
        if not query.answers:
            return no_reference_failure(query)
        found, wanted = precheck(query, answer, self._declines), ""
        if found is None:
            decisions = [_decide(query, accepted, answer) for accepted in query.answers]
            best = max(decisions, key=lambda decision: decision.right)
            found, wanted = truth_verdict(best.right, frozenset({best.rule})), best.wanted
        word = {TRUTH.best: "correct", TRUTH.worst: "incorrect"}.get(found.score, "missing")
        raw = f"{word} by {', '.join(found.marks)}" + (f": {wanted}" if wanted else "")
        return Judgment(score=found.score, marks=found.marks, raw=raw)


class _Decision(NamedTuple):
    right: bool
    rule: str
    wanted: str  # what the rule searched for


def _decide(query: Query, reference: str, answer: str) -> _Decision:
    said = asserted_clauses(conclusion(answer))
    if re.search(r"\bor\b", said) and not re.search(r"\bor\b", reference):
        return _Decision(False, "two answers", reference)
    if match := re.match(r"\W*(yes|no)\b", reference.lower()):
        stances = _stances(query.text, reference, answer, match[1])
        right = stances == {match[1]} and not _has_other_reason(query.text, reference, answer)
        return _Decision(right, "yes or no", match[1])
    counted = bool(re.search(r"\bhow (?:many|much)\b", query.text.lower()))
    if numbers := new_numbers(reference, query.text, words=counted):
        found = numbers_in(said, words=True) or numbers_in(asserted_clauses(answer), words=True)
        return _Decision(numbers[0].is_among(found), "number", reference)
    question = f"{query.text} {query.metadata.get('reference_query') or ''}"
    asked = normalized_words(question)
    head = head_phrase(reference)
    listed = phrases(head, asked)
    if len(listed) > 1 and _SEPARATOR.search(head):
        right = _lists(listed, head_phrase(said), asked)
        return _Decision(right, "list", "; ".join(map(" ".join, listed)))
    said = head_phrase(said) if head == reference else said
    words = normalized_words(reference, asked)
    name = _name(phrases(reference, asked), reference) or _name_of_question(question, reference)
    if name or len(words) < 2:
        right = bool(name) and contains_phrase(name, said)
        return _Decision(right, "name", " ".join(name) or reference)
    enough = 2 if len(words) == 2 else len(words) / 2
    right = len(words & normalized_words(said)) >= enough
    return _Decision(right, "prose", ", ".join(sorted(words)))


def _stances(question: str, reference: str, answer: str, wanted: str) -> set[str]:
    """ "yes" and "no" as the answer's conclusion, or else the whole answer, has them.
    An answer without either denies, has all numbers of the reference's reason, or repeats the
    question's words as a statement.
    """
    last = conclusion(answer)
    for text in (last, answer):
        if found := {word or "yes" for word in _YES_OR_NO.findall(text.lower())}:
            return found
    if has_negation(last):
        return {"no"}
    reasons, numbers = new_numbers(reference, question, words=False), numbers_in(last, words=False)
    if reasons and all(number.is_among(numbers) for number in reasons):
        return {wanted}
    stated = normalized_words(question)
    return {"yes"} if stated and stated <= normalized_words(last) else set()


def _has_other_reason(question: str, reference: str, answer: str) -> bool:
    """Whether an answer has a number of a dimension of the reference or question that neither
    has, or another name than the reference behind the same two words.
    """
    known = [*numbers_in(reference, words=False), *numbers_in(question, words=False)]
    for number in numbers_in(answer, words=False):
        alike = [each for each in known if each.dimension == number.dimension]
        if alike and not number.is_among(alike):
            return True
    names = {words.lower(): name for words, name in _NAMED.findall(reference)}
    said = _NAMED.findall(answer)
    return any(names.get(words.lower(), name) != name for words, name in said)


def _lists(wanted: list[list[str]], said: str, asked: Collection[str]) -> bool:
    """Whether a text has each phrase, and each of its listed items has a wanted word."""
    text = _MONTH_RANGE.sub(_months_of_range, said)
    words = normalized_words(" ".join(map(" ".join, wanted)))
    items = [normalized_words(item, asked) for item in _SEPARATOR.split(text)]
    found = all(contains_phrase(phrase, text) for phrase in wanted)
    return found and all(item & words for item in items if item)


def _months_of_range(match: re.Match[str]) -> str:
    """ "April, May, June" for "from April to June"."""
    first, last = (_MONTHS.index(month.capitalize()) for month in match.groups())
    return ", ".join((_MONTHS * 2)[first : last + 1 + 12 * (last < first)])


def _name(wanted: list[list[str]], reference: str) -> list[str]:
    """The first name inside the reference, with the words after it; or its only word."""
    first = text_words(reference)[:1]
    for phrase in wanted:
        for start, word in enumerate(phrase):
            if word[0].isupper() and [word] != first:
                return phrase[start:]
    return wanted[0] if len(wanted) == 1 and len(wanted[0]) == 1 else []


def _name_of_question(question: str, reference: str) -> list[str]:
    """The longest name of a question that the reference chooses."""
    words = text_words(reference)
    spans = [words[start:end] for start, end in combinations(range(len(words) + 1), 2)]
    names = [span for span in spans if span[0][0].isupper() and contains_phrase(span, question)]
    return max(names, key=len, default=[])
