"""Split answers into the parts that rules compare: conclusion, asserted clauses, content words and
names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from vrag_kit.judging.rule_judge import canonical_trait

_NEGATION = re.compile(r"\b(?:not|never|neither|nor|cannot|without|\w+n't)\b")
_CLAUSE = re.compile(r"[.;:!?,](?:\s|$)|\s(?:but|yet|although|while)\s")
_ASIDE = re.compile(
    r"\b(?:than|mistaken for|confused with|instead of|rather than|unlike|similar to)\b[^.,;:!?]*",
    re.IGNORECASE,
)
_WITH = re.compile(r"\b(?:with|where|which|who|whose|when|because|since|so that)\b[^.;:!?]*")
_TAKEN_BACK = re.compile(r"^.*[.;!]\s+(?:No|Sorry|Correction|Actually|Rather)\b,?\s+", re.DOTALL)
_WORD = re.compile(r"[A-Za-zÀ-ÿ0-9]+(?:['-][A-Za-zÀ-ÿ0-9]+)*")
_EMPTY_WORDS = """
    a about also an and approximately are around as at be because been being by called can could
    did do does for from had has have he her here his how i in is it it's its mostly named no of
    on one or roughly shall she should so sorry that the their them then there these they this
    those to too used usually very was were what when where which who whom whose why will with
    would yes you
"""
_EMPTY = frozenset(_EMPTY_WORDS.split())
"""Words that say nothing by themselves."""


def conclusion(answer: str) -> str:
    """Return the final statement of an answer: what follows the last colon, as in "A red moth,
    Talia ensis: Norland.", and a "No, …" that retracts what came before.
    """
    text = answer.replace("’", "'").strip()
    text = _TAKEN_BACK.sub("", text)
    pieces = text.rstrip(" :").rsplit(": ", 1)
    return pieces[-1] if pieces[0].strip() and _WORD.search(pieces[-1]) else text


def asserted_clauses(text: str) -> str:
    """Return the clauses of a text without a negation.
    Mere comparisons ("than Talia osa") are removed.
    """
    clauses = _CLAUSE.split(_ASIDE.sub(" ", text.replace("’", "'")))
    kept = [clause for clause in clauses if not _NEGATION.search(clause.lower())]
    return ", ".join(clause.strip() for clause in kept if clause.strip())


def head_phrase(text: str) -> str:
    """Return a text without modifiers of its main words: "banded" of "banded with red"."""
    return _WITH.sub(" ", text)


def has_negation(text: str) -> bool:
    """Return whether a text has a negation ("not", "isn't")."""
    return bool(_NEGATION.search(text.lower().replace("’", "'")))


def text_words(text: str) -> list[str]:
    """Return the words of a text, in order, unchanged; possessives ("Barlow's") are left out."""
    return [word for word in _WORD.findall(text.replace("’", "'")) if not word.endswith("'s")]


def normalize_word(word: str) -> str:
    """Normalise a word: lower case, without the s of a plural.
    Near synonyms of a colour or pattern get one name.
    """
    word = canonical_trait(word.lower())
    return word[:-1] if len(word) > 3 and word.endswith("s") else word


def content_words(text: str, without: Collection[str] = ()) -> list[str]:
    """Return the content words of a text, in order, unchanged.
    Words whose `normalize_word` form is in `without` are left out.
    """
    found = [word for word in text_words(text) if word.lower() not in _EMPTY]
    return [word for word in found if normalize_word(word) not in without]


def normalized_words(text: str) -> frozenset[str]:
    """Return the `normalize_word` forms of the content words of a text."""
    return frozenset(normalize_word(word) for word in content_words(text))


def contains_phrase(phrase: Sequence[str], text: str) -> bool:
    """Return whether the words of a phrase are adjacent and in order in a text.
    A part of a longer name ("East Norland") does not count.

    A capitalised word must be capitalised in the text too, unless the text has no capitals: "May"
    is not "may".
    """
    words = text_words(text)
    cased = any(word[0].isupper() for word in words[1:])
    for start in range(len(words) - len(phrase) + 1):
        part = words[start : start + len(phrase)]
        if all(_same(a, b, cased and start > 0) for a, b in zip(phrase, part, strict=True)):
            before = words[start - 1] if start else ""
            longer = (
                before[:1].isupper() and before.lower() not in _EMPTY and phrase[0][0].isupper()
            )
            if not (longer and _adjacent(before, part[0], text)):
                return True
    return False


def _same(wanted: str, found: str, cased: bool) -> bool:
    if cased and wanted[0].isupper() and not found[0].isupper():
        return False
    return normalize_word(wanted) == normalize_word(found)


def _adjacent(first: str, second: str, text: str) -> bool:
    """Whether only a space is between two words."""
    return f"{first} {second}" in text.replace("’", "'")


_DATA = json.loads((Path(__file__).parent / "numbers.json").read_text(encoding="utf-8"))
_UNITS: dict[str, tuple[str, float]] = {}
for _dimension, _units in _DATA["units"].items():
    for _factor, _names in _units.items():
        _UNITS.update(dict.fromkeys(_names, (_dimension, float(_factor))))
_SMALL: dict[str, int] = {word: number for number, word in enumerate(_DATA["ones"])}
_TENS: dict[str, int] = {word: 10 * tens for tens, word in enumerate(_DATA["tens"], start=2)}
_TIMES: dict[str, float] = _DATA["times"]
_ONE_WORD = {**_SMALL, **_TENS, **{word: int(factor) for word, factor in _TIMES.items()}}
_DIGITS = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_NAMED = r"(?:" + "|".join([*_TENS, *_SMALL]) + r")(?:[- ](?:" + "|".join(_SMALL) + r"))?"
_UNIT_NAMES = sorted(map(re.escape, _UNITS), key=len, reverse=True)
_NUMBER = re.compile(
    rf"(?<![\w.])(?P<sign>[$€£¥]\s*)?(?P<number>{_DIGITS}|\b{_NAMED}\b)"
    rf"(?:\s*(?P<times>{'|'.join(_TIMES)})\b)?"
    rf"(?:[\s-]*(?P<unit>{'|'.join(_UNIT_NAMES)})(?!\w))?"
    r"(?![\w]|[.,]\d)"
)
_CLOSE = 0.01
"""How far two numbers may be apart that stand in different units."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number with its unit, as written in a text."""

    value: float
    """In the base unit of its dimension."""
    dimension: str
    """ "length", "$", …; "" without a unit."""
    unit: str
    """As written."""

    def equals(self, other: Number) -> bool:
        """Return whether two numbers are equal; in different units within 1 %.
        If either has no unit, only the figures are compared.
        """
        if not self.dimension or not other.dimension:
            return self._figure == other._figure
        if self.dimension != other.dimension:
            return False
        apart = abs(self.value - other.value)
        exact = _UNITS.get(self.unit) == _UNITS.get(other.unit)
        return apart <= (1e-9 if exact else _CLOSE) * abs(other.value)

    @property
    def _figure(self) -> float:
        return round(self.value / _UNITS.get(self.unit, ("", 1.0))[1], 9)


def numbers_in(text: str, *, words: bool) -> list[Number]:
    """Return the numbers in a text, in order; with `words` also those in words ("two").
    Decades ("1830s") and ordinals are left out.
    """
    found = []
    for match in _NUMBER.finditer(text.lower()):
        spelled = match["number"]
        if not spelled[0].isdigit() and not words:
            continue
        number = _value(spelled) * _TIMES.get(match["times"] or "", 1.0)
        unit = (match["sign"] or match["unit"] or "").strip()
        dimension, factor = _UNITS.get(unit, ("", 1.0))
        found.append(Number(number * factor, dimension, unit))
    return found


def number_word(word: str) -> int | None:
    """Return the whole number that a lower-case word means, such as "twelve" or "hundred".
    None for any other word.
    """
    return _ONE_WORD.get(word)


def _value(spelled: str) -> float:
    if spelled[0].isdigit():
        return float(spelled.replace(",", ""))
    return float(sum({**_SMALL, **_TENS}[word] for word in re.split(r"[- ]", spelled)))
