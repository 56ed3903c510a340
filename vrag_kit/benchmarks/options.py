"""Multiple-choice options and the correct one, which an answer names by letter or text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_uppercase

from vrag_kit.errors import short_repr

_LETTERED = re.compile(r"[\s-]*\(?([A-Z])\s*[).:]\s*(.*)", re.DOTALL)
_LETTER = re.compile(r"\s*\(?([A-Z])\s*[).:]?\s*")


def option_texts(options: Sequence[str]) -> tuple[str, ...]:
    """Strip the letters from options if they run from A without gaps ("A) 12", "B) 15"); other
    options only lose surrounding white space.
    """
    found = [_LETTERED.fullmatch(option) for option in options]
    letters = "".join(match[1] for match in found if match)
    if len(letters) == len(options) and ascii_uppercase.startswith(letters):
        return tuple(match[2].strip() for match in found if match)
    return tuple(option.strip() for option in options)


def correct_option(answer: str, options: Sequence[str]) -> tuple[str, str]:
    """Return (text of the correct option, "") for an answer that is a letter ("B", "(B)", "B."),
    an option ("B) 15") or its text; ("", reason) if it is none of the options.
    """
    texts = option_texts(options)
    plain = [_plain(text) for text in texts]
    if _plain(answer) in plain:
        return texts[plain.index(_plain(answer))], ""
    lettered = _LETTERED.fullmatch(answer)
    if lettered and _plain(lettered[2]) in plain:
        return texts[plain.index(_plain(lettered[2]))], ""
    letter = _LETTER.fullmatch(answer)
    if letter and letter[1] in ascii_uppercase[: len(texts)]:
        text = texts[ascii_uppercase.index(letter[1])]
        return (text, "") if text else ("", f"option {letter[1]}, the right one, is empty")
    return "", f"the answer {short_repr(answer)} is none of the options {', '.join(texts)}"


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
