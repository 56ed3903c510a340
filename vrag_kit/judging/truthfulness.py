"""Truthfulness: a correct answer scores 1, a missing one 0, an incorrect one −1.
Some answers need no judge.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

import pandas as pd

from vrag_kit.judging.abstention import is_abstention
from vrag_kit.judging.rubric import DECLINING, Verdict, verdict_label
from vrag_kit.judging.scale import TRUTH, no_reference_failure
from vrag_kit.judging.text import (
    Number,
    asserted_clauses,
    conclusion,
    contains_phrase,
    content_words,
    has_negation,
    head_phrase,
    normalize_word,
    normalized_words,
    numbers_in,
    text_words,
)
from vrag_kit.types import Benchmark, Judgment, Query

EQUAL = "equal"
"""Mark of an answer that equals an accepted one, ignoring case."""
Declines = Callable[[str], bool]
"""Whether an answer abstains."""


def precheck(query: Query, answer: str, declines: Declines) -> Verdict | None:
    """Return the verdict of an answer that needs no judge; None for all others.
    One that abstains is missing (mark "abstention"). One that equals an accepted answer, ignoring
    case and white space at its ends, is correct (mark "equal").

    Where the accepted answer itself abstains, an equal answer is correct.
    """
    said = _plain(answer)
    if said in map(_plain, query.answers):
        return Verdict(TRUTH.best, frozenset({EQUAL}))
    if declines(answer):
        return Verdict(TRUTH.nothing, frozenset({"abstention"}))
    return None


def truth_verdict(right: bool, marks: frozenset[str] = frozenset()) -> Verdict:
    """Return the verdict of an answer that is not missing."""
    return Verdict(TRUTH.best if right else TRUTH.worst, marks)


def _plain(text: str) -> str:
    return text.strip().lower()


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
_YES_OR_NO = re.compile(r"\b(yes|no)\b(?=\s*(?:[.,;:!?]|$)|\s+(?:and|but)\b)")
_SURE = re.compile(r"^\W*(?:certainly|indeed|definitely|of course|correct|true|sure)\b")
_COUNTS = re.compile(r"\bhow (?:many|much)\b")
_BOUND = re.compile(
    r"\b(?:more|less|longer|shorter|larger|smaller|higher|lower|older|later|earlier|over|under"
    r"|above|below|before|after|at (?:least|most))\s+(?:than\s+)?(?=[$€£¥]?\s*\w)",
    re.IGNORECASE,
)
_AND_OTHER = re.compile(r"\W*and\b", re.IGNORECASE)
"""A question that asks again what was asked before, of another one: "And Talia osa?"."""
_SMALL_WORD = re.compile(r"\b(?:is|are|was|were|in|on|of|by|to|at|for|as|it)\b", re.IGNORECASE)
_RANGE = re.compile(r"\bfrom (\w+) (?:to|until|through) (\w+)", re.IGNORECASE)
_MONTHS = tuple(month.lower() for month in calendar.month_name[1:])


class TruthfulnessRuleJudge:
    """Judges by rule whether an answer is correct, missing or incorrect; implements `Judge`.

    A verdict's marks name its rule, one of `RULES`; its raw text says what was compared ("right by
    name: Norland").
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
        pairs = zip(answers["query_id"], answers["answer"], strict=True)
        return [(self.verdict(benchmark.queries[name], answer),) for name, answer in pairs]

    def verdict(self, query: Query, answer: str) -> Judgment:
        """Return the best verdict over the accepted answers.
        A query whose answers are hidden gets a failure.
        """
        if not query.answers:
            return no_reference_failure(query)
        found = precheck(query, answer, self._declines)
        if found is not None:
            return _judgment(found, "")
        tried = [_by_rule(query.text, reference, answer) for reference in query.answers]
        best = max(tried, key=lambda ruling: ruling.right)
        return _judgment(truth_verdict(best.right, frozenset({best.rule})), best.wanted)


@dataclass(frozen=True, slots=True)
class RuleDecision:
    """A rule's decision on an answer that is neither missing nor equal."""

    right: bool
    rule: str
    wanted: str
    """What the rule searched for."""


def _judgment(verdict: Verdict, wanted: str) -> Judgment:
    word = {TRUTH.best: "correct", TRUTH.nothing: "missing"}.get(verdict.score, "incorrect")
    raw = f"{word} by {', '.join(verdict.marks)}"
    if wanted:
        raw += f": {wanted}"
    label = verdict_label(verdict, TRUTH)
    return Judgment(answer_id="", label=label, score=verdict.score, marks=verdict.marks, raw=raw)


def _by_rule(question: str, reference: str, answer: str) -> RuleDecision:
    said = asserted_clauses(conclusion(answer))
    if re.search(r"\bor\b", said) and not re.search(r"\bor\b", reference):
        return RuleDecision(False, "two answers", reference)
    if match := re.match(r"\W*(yes|no)\b", reference.lower()):
        return _yes_or_no(question, reference, answer, match[1])
    asked = normalized_words(question)
    counted = bool(_COUNTS.search(question.lower()))
    numbers = _new_numbers(reference, question, words=counted)
    if numbers:
        return RuleDecision(_number(numbers[0], answer), "number", reference)
    and_other = bool(_AND_OTHER.match(question))
    items = _items(reference, asked, last=and_other)
    if len(items) > 1:
        listed = "; ".join(" ".join(item) for item in items)
        return RuleDecision(_list(items, said, asked), "list", listed)
    wanted = items[0] if items else []
    if not and_other:
        wanted = _proper(reference, content_words(reference, asked)) or _choice(question, reference)
    return _name(wanted, said, reference)


def _new_numbers(text: str, question: str, *, words: bool) -> list[Number]:
    """The numbers of a text that the question does not name."""
    asked = numbers_in(question, words=words)
    told = numbers_in(text, words=words)
    return [each for each in told if not any(each.equals(other) for other in asked)]


def _number(wanted: Number, answer: str) -> bool:
    """Whether the number is asserted; not as a bound ("more than 43 mm")."""
    for text in (conclusion(answer), answer):  # "two moons: Phobos and Deimos"
        free = _BOUND.sub("bound", asserted_clauses(text))
        found = numbers_in(free, words=True)
        if found or numbers_in(text, words=True):
            return any(each.equals(wanted) for each in found)
    return False


def _yes_or_no(question: str, reference: str, answer: str, wanted: str) -> RuleDecision:
    last = conclusion(answer)
    said = set(_YES_OR_NO.findall(last.lower())) or set(_YES_OR_NO.findall(answer.lower()))
    if not said:
        said = {_without_the_word(question, reference, last)}
    right = said == {wanted} and not _other_reason(question, reference, answer)
    return RuleDecision(right, "yes or no", wanted)


def _without_the_word(question: str, reference: str, answer: str) -> str:
    """ "yes", "no" or "" of an answer that says neither: sure, a denial, the question's own
    words as a statement, or the numbers of the reason.
    """
    if _SURE.match(answer.lower()):
        return "yes"
    if has_negation(answer):
        return "no"
    stated = normalized_words(question) - normalized_words("this moth")
    reasons = _new_numbers(reference, question, words=False)
    numbers = numbers_in(answer, words=False)
    if reasons and all(any(each.equals(number) for number in numbers) for each in reasons):
        return "yes" if reference.lower().startswith("yes") else "no"
    return "yes" if stated and stated <= normalized_words(answer) else ""


def _other_reason(question: str, reference: str, answer: str) -> bool:
    """Whether an answer tells another number of the same kind than the reference and the
    question do, or another name behind the same two words.
    """
    known = [*numbers_in(reference, words=False), *numbers_in(question, words=False)]
    if known:
        for number in numbers_in(answer, words=False):
            alike = [each for each in known if each.dimension == number.dimension]
            if alike and not any(number.equals(each) for each in alike):
                return True
    told, said = _names_behind(reference), _names_behind(answer)
    return any(told[words] != name for words, name in said.items() if words in told)


def _names_behind(text: str) -> dict[tuple[str, str], str]:
    """Two words → the capitalised word that follows them."""
    words, found = text_words(text), {}
    for place, name in enumerate(words[2:]):
        if name[0].isupper():
            found[words[place].lower(), words[place + 1].lower()] = name
    return found


def _items(reference: str, asked: frozenset[str], *, last: bool) -> list[list[str]]:
    """The things that a reference lists, one where it is no list; with `last` the first is
    what follows its last small word, or its first word where nothing does.
    """
    pieces = [reference]
    if re.search(r",|\band\b|&", reference):
        pieces = re.split(r",|;|\band\b|&", head_phrase(reference))
    if last:
        tail = _SMALL_WORD.split(pieces[0])[-1]
        pieces[0] = tail if content_words(tail) else text_words(reference)[0]
    items = [content_words(piece, asked) for piece in pieces]
    return [item for item in items if item]


def _proper(reference: str, words: list[str]) -> list[str]:
    """Of content words the first name inside the sentence, with what belongs to it; all
    where there is none.
    """
    first = text_words(reference)[:1]
    start = next((n for n, word in enumerate(words) if word[0].isupper() and [word] != first), None)
    if start is None:
        return words
    end = start + 1
    while end < len(words) and f"{words[end - 1]} {words[end]}" in reference:
        end += 1
    return words[start:end]


def _list(items: list[list[str]], answer: str, asked: frozenset[str]) -> bool:
    """Whether each item is said, and nothing else is listed."""
    text = _RANGE.sub(_months_between, head_phrase(answer))
    if not all(contains_phrase(item, text) for item in items):
        return False
    wanted = {normalize_word(word) for word in chain.from_iterable(items)}
    pieces = [content_words(piece, asked) for piece in re.split(r",|;|/|\band\b|&", text)]
    others = [piece for piece in pieces if piece and not wanted & set(map(normalize_word, piece))]
    return not others


def _months_between(match: re.Match[str]) -> str:
    """ "April, May, June" for "from April to June"; other ranges as they are."""
    first, last = match[1].lower(), match[2].lower()
    if first not in _MONTHS or last not in _MONTHS:
        return match[0]
    start = _MONTHS.index(first)
    count = (_MONTHS.index(last) - start) % 12 + 1
    return ", ".join(_MONTHS[(start + step) % 12].capitalize() for step in range(count))


def _choice(question: str, reference: str) -> list[str]:
    """The name that a reference chooses among those of the question: the most words in a
    row, the first a capital, that stand in both.
    """
    words, best = text_words(reference), list[str]()
    for start, word in enumerate(words):
        for end in range(start + len(best) + 1, len(words) + 1):
            if word[0].isupper() and contains_phrase(words[start:end], question):
                best = words[start:end]
    return best


def _name(wanted: list[str], answer: str, reference: str) -> RuleDecision:
    """One thing: a name or a word together and in order, or several words of prose."""
    if not wanted:
        return RuleDecision(False, "name", reference)
    named = any(word[0].isupper() for word in wanted)
    text = (
        answer
        if re.search(r"\b(?:with|where|which|who|because)\b", reference)
        else head_phrase(answer)
    )
    if named or len(wanted) == 1:
        return RuleDecision(contains_phrase(wanted, text), "name", " ".join(wanted))
    words = {normalize_word(word) for word in wanted}
    found = len(words & normalized_words(answer))
    needed = len(words) if len(words) <= 2 else len(words) / 2
    return RuleDecision(found >= needed, "prose", ", ".join(sorted(words)))
