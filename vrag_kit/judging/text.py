"""Split texts into the parts that rules compare: conclusion, asserted clauses, content words,
phrases and numbers.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from vrag_kit.judging.rule_judge import canonical_trait

_NEGATION = re.compile(r"\b(?:not|never|neither|nor|cannot|without|\w+n['’]t)\b", re.IGNORECASE)
_CLAUSE = re.compile(r"[.;:!?,](?:\s|$)|\s(?:but|yet|although|while)\s")
_COMPARISON = re.compile(
    r"\b(?:than|mistaken for|confused with|instead of|rather than|unlike|similar to)\b[^.,;:!?]*"
    r"|\b(?:over|under|above|below|before|after|at (?:least|most))\s+[$€£¥]?\d\S*",
    re.IGNORECASE,
)
_MODIFIER = re.compile(r"\b(?:with|where|which|who|whose|when|because|since|so that)\b[^.;:!?]*")
_RETRACTED = re.compile(r"^.*[.;!]\s+(?:No|Sorry|Correction|Actually|Rather)\b,?\s+", re.DOTALL)
_WORD = re.compile(r"[A-Za-zÀ-ÿ0-9]+(?:['-][A-Za-zÀ-ÿ0-9]+)*")
_STOP_WORDS = """
    a about also an and approximately are around as at be because been being by called can could
    did do does for from had has have he her here his how i in is it it's its mostly named no of
    on one or roughly shall she should so sorry that the their them then there these they this
    those to too used usually very was were what when where which who whom whose why will with
    would yes you
"""
_EMPTY = frozenset(_STOP_WORDS.split())


def conclusion(answer: str) -> str:
    """Return the final statement of an answer: what follows the last colon, as in "A red car:
    Volvo.", and a "No, …" that retracts what came before.
    """
    text = _RETRACTED.sub("", answer.strip())
    pieces = text.rstrip(" :").rsplit(": ", 1)
    return pieces[-1] if pieces[0].strip() and _WORD.search(pieces[-1]) else text


def asserted_clauses(text: str) -> str:
    """Return the clauses of a text without a negation.
    Mere comparisons ("than a Saab") and bounds ("at least 43") are removed.
    """
    clauses = _CLAUSE.split(_COMPARISON.sub(" ", text))
    return ", ".join(part.strip() for part in clauses if part.strip() and not has_negation(part))


def head_phrase(text: str) -> str:
    """Return a text without modifiers of its main words: "banded" of "banded with red"."""
    return _MODIFIER.sub(" ", text)


def has_negation(text: str) -> bool:
    """Return whether a text has a negation ("not", "isn't")."""
    return bool(_NEGATION.search(text))


def text_words(text: str) -> list[str]:
    """Return the words of a text, in order, unchanged; possessives ("Darwin's") are left out."""
    return [word for word in _WORD.findall(text.replace("’", "'")) if not word.endswith("'s")]


def normalize_word(word: str) -> str:
    """Normalise a word: lower case, without the s of a plural.
    Near synonyms of a colour or pattern get one name.
    """
    word = canonical_trait(word.lower())
    return word[:-1] if len(word) > 3 and word.endswith("s") else word


def is_content_word(word: str, without: Collection[str] = ()) -> bool:
    """Return whether a word says something by itself, and its `normalize_word` form is not in
    `without`.
    """
    return word.lower() not in _EMPTY and normalize_word(word) not in without


def normalized_words(text: str, without: Collection[str] = ()) -> frozenset[str]:
    """Return the `normalize_word` forms of the content words of a text, less `without`."""
    words = [word for word in text_words(text) if word.lower() not in _EMPTY]
    return frozenset(map(normalize_word, words)).difference(without)


def phrases(text: str, without: Collection[str] = ()) -> list[list[str]]:
    """Return the runs of adjacent content words of a text, in order, unchanged."""
    found = []
    for piece in re.split(r"[^\w\s'’-]", text):
        runs = groupby(text_words(piece), lambda word: is_content_word(word, without))
        found += [list(run) for has_content, run in runs if has_content]
    return found


def contains_phrase(phrase: Sequence[str], text: str) -> bool:
    """Return whether the words of a phrase are adjacent and in order in a text.
    A part of a longer name ("North Korea") does not count.

    A capitalised word must be capitalised in the text too, unless the text has no capitals: "May"
    is not "may".
    """
    words = text_words(text)
    cased = any(word[0].isupper() for word in words[1:])
    for start in range(len(words) - len(phrase) + 1):
        part = words[start : start + len(phrase)]
        if list(map(normalize_word, part)) != list(map(normalize_word, phrase)):
            continue
        if start == 0:
            return True
        pairs = zip(phrase, part, strict=True)
        lower = any(wanted[0].isupper() and not found[0].isupper() for wanted, found in pairs)
        before = f"{words[start - 1]} {part[0]}"
        longer = before[0].isupper() and phrase[0][0].isupper() and before in text
        if not (cased and lower) and not (longer and is_content_word(words[start - 1])):
            return True
    return False


_DATA = json.loads((Path(__file__).parent / "numbers.json").read_text(encoding="utf-8"))
_UNITS: dict[str, tuple[str, float]] = {}
for _dimension, _units in _DATA["units"].items():
    for _factor, _names in _units.items():
        _UNITS.update(dict.fromkeys(_names, (_dimension, float(_factor))))
_ONES: dict[str, int] = {word: number for number, word in enumerate(_DATA["ones"])}
_TENS: dict[str, int] = {word: 10 * tens for tens, word in enumerate(_DATA["tens"], start=2)}
_MULTIPLES: dict[str, int] = _DATA["times"]
NUMBER_WORDS = {**_ONES, **_TENS, **_MULTIPLES}
"""Lower-case word → the whole number that it means, such as "twelve" or "hundred"."""
_DIGITS = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_SPELLED = rf"(?:{'|'.join([*_TENS, *_ONES])})(?:[- ](?:{'|'.join(_ONES)}))?"
_UNIT_NAMES = "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True))
_NUMBER = re.compile(
    rf"(?<![\w.])(?P<sign>[$€£¥]\s*)?(?:(?P<digits>{_DIGITS})|\b(?P<spelled>{_SPELLED})\b)"
    rf"(?:\s*(?P<times>{'|'.join(_MULTIPLES)})\b)?"
    rf"(?:[\s-]*(?P<unit>{_UNIT_NAMES})(?!\w))?"
    r"(?![\w]|[.,]\d)"
)


@dataclass(frozen=True, slots=True)
class Number:
    """A number with its unit, as written in a text."""

    figure: float
    dimension: str = ""
    """ "length", "dollars", …; "" without a unit."""
    factor: float = 1.0
    """Of the unit, in the base unit of its dimension."""

    def equals(self, other: Number) -> bool:
        """Return whether two numbers are equal; in different units within 1 %.
        If either has no unit, only the figures are compared.
        """
        if not self.dimension or not other.dimension:
            return self.figure == other.figure
        tolerance = 1e-9 if self.factor == other.factor else 0.01
        values = self.figure * self.factor, other.figure * other.factor
        return self.dimension == other.dimension and math.isclose(*values, rel_tol=tolerance)

    def is_among(self, others: Iterable[Number]) -> bool:
        """Return whether the number equals one of the others."""
        return any(self.equals(other) for other in others)


def numbers_in(text: str, *, words: bool) -> list[Number]:
    """Return the numbers in a text, in order; with `words` also those in words ("two").
    Decades ("1830s") and ordinals are left out.
    """
    found = []
    for match in _NUMBER.finditer(text.lower()):
        if digits := match["digits"]:
            figure = float(digits.replace(",", ""))
        elif words:
            figure = float(sum(NUMBER_WORDS[word] for word in re.split("[- ]", match["spelled"])))
        else:
            continue
        unit = (match["sign"] or match["unit"] or "").strip()
        figure *= _MULTIPLES.get(match["times"] or "", 1)
        found.append(Number(figure, *_UNITS.get(unit, ("", 1.0))))
    return found


def new_numbers(text: str, question: str, *, words: bool) -> list[Number]:
    """Return the `numbers_in` a text that a question does not have."""
    known = numbers_in(question, words=words)
    return [number for number in numbers_in(text, words=words) if not number.is_among(known)]
