"""Parse numbers with units from texts: "4.3 cm" equals "43 mm"."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

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
