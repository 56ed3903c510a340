"""What an OCR program makes of a printed page: some words come out wrong, on a bad scan
most of them.
"""

from __future__ import annotations

import numpy as np

from vrag_kit.synthetic.traits import stream

_LOOK_ALIKE = {
    "a": "o",
    "c": "e",
    "e": "c",
    "g": "q",
    "h": "b",
    "i": "j",
    "l": "1",
    "m": "n",
    "n": "m",
    "o": "0",
    "r": "f",
    "s": "5",
    "t": "f",
    "u": "v",
    "B": "8",
    "S": "5",
    "O": "0",
    "I": "l",
}
_LETTERS = 0.35
"""Share of the letters of a misread word that are taken for others."""


def add_ocr_errors(text: str, name: str) -> str:
    """The text as it was read; the same name gives the same errors.

    Each page has a share of misread words of its own, anywhere from none to all.
    """
    rng = stream(name, "ocr")
    share = float(rng.random())
    lines = []
    for line in text.split("\n"):
        words = [_wrong(word, rng) if rng.random() < share else word for word in line.split(" ")]
        lines.append(" ".join(words))
    return "\n".join(lines)


def _wrong(word: str, rng: np.random.Generator) -> str:
    """The word with at least one letter taken for another, where it has such a letter."""
    can = [place for place, letter in enumerate(word) if letter in _LOOK_ALIKE]
    if not can:
        return word
    sure = int(rng.choice(can))
    wrong = {place for place in can if rng.random() < _LETTERS} | {sure}
    return "".join(_LOOK_ALIKE[x] if i in wrong else x for i, x in enumerate(word))
