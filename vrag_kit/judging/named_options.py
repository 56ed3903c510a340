"""Where the options of a question are named in a text, and what in it is denied."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

_WORD = "A-Za-zÀ-ÿ0-9"
_DENIED = re.compile(
    r"(?:\b(?:no(?! doubt)|not(?! only| just)|neither|nor|never|rather than|instead of"
    r"|rul(?:e|es|ed|ing) out|exclud(?:e|es|ed|ing)|eliminat(?:e|es|ed|ing)|except)\b"
    r"|n't\b)"
    r"(?:(?!\b(?:but|yet|so|because|since|while|whereas|though|although)\b)[^.,;:!?()\n])*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Named:
    """An option where it is named in a text."""

    place: int
    """Of the option, from 0."""
    start: int
    end: int
    denied: bool


def plain_option(text: str) -> str:
    """An option's text without what spelling may change: case, `_`, `-`, spaces, and
    signs at its ends.
    """
    return re.sub(r"[\s_-]+", "", text.strip(" \t\n.,;:!?")).casefold()


def denied_parts(text: str) -> list[range]:
    """Where a clause is denied: from "not", "no", "neither", "nor", "never", "rather
    than", "instead of" or a word that rules out, to its end.
    """
    return [range(*found.span()) for found in _DENIED.finditer(text)]


def is_denied(place: int, parts: Sequence[range]) -> bool:
    """Whether a place of the text lies in one of the denied parts."""
    return any(place in part for part in parts)


def named_options(text: str, choices: Sequence[str]) -> list[Named]:
    """Every place where an option of two letters or more is named, in order.

    Whole words count, whatever their case and whether `_`, `-`, a space or nothing
    stands between them; of a scientific name also "D. plexippus". What lies inside a
    longer option's name does not count.
    """
    denied = denied_parts(text)
    found = []
    for place, choice in enumerate(choices):
        pattern = _pattern(choice)
        for hit in pattern.finditer(text) if pattern else ():
            found.append(Named(place, hit.start(), hit.end(), is_denied(hit.start(), denied)))
    kept = [each for each in found if not any(_inside(each, other) for other in found)]
    return sorted(kept, key=lambda each: (each.start, each.place))


def _inside(one: Named, other: Named) -> bool:
    longer = other.end - other.start > one.end - one.start
    return longer and other.start <= one.start and one.end <= other.end


@lru_cache(maxsize=4096)
def _pattern(choice: str) -> re.Pattern[str] | None:
    """What names an option; None for one of fewer than two letters."""
    if sum(letter.isalpha() for letter in choice) < 2:
        return None
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", choice.strip())  # EastAsia
    words = [re.escape(word) for word in re.split(r"[\s_-]+", apart) if word]
    whole = r"[\s_-]*".join(words)
    if len(words) == 2 and re.fullmatch(r"[A-Z][a-z]+ [a-z]{3,}", apart):
        whole += rf"|{apart[0]}\.\s*{words[1]}"
    return re.compile(rf"(?<![{_WORD}])(?:{whole})(?![{_WORD}])", re.IGNORECASE)
