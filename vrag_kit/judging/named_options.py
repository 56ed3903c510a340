"""Find where a text names the options of a question, and which parts it negates."""

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
class OptionMention:
    """A mention of an option in a text."""

    place: int
    """Index of the option, from 0."""
    start: int
    end: int
    denied: bool


def normalize_option(text: str) -> str:
    """Normalise an option's text: drops case, `_`, `-`, spaces, and punctuation at its ends."""
    return re.sub(r"[\s_-]+", "", text.strip(" \t\n.,;:!?")).casefold()


def negated_spans(text: str) -> list[range]:
    """Return the spans of negated clauses: from "not", "no", "neither", "nor", "never", "rather
    than", "instead of" or a word that rules out, to the clause's end.
    """
    return [range(*found.span()) for found in _DENIED.finditer(text)]


def is_negated(place: int, parts: Sequence[range]) -> bool:
    """Return whether a position of the text lies in one of the negated spans."""
    return any(place in part for part in parts)


def find_options(text: str, choices: Sequence[str]) -> list[OptionMention]:
    """Return every mention of an option with two letters or more, in order of position.

    Whole words match, whatever their case and whether `_`, `-`, a space or nothing separates them.
    A scientific name also matches as "D. plexippus". A mention inside a longer option's name does
    not count.
    """
    denied = negated_spans(text)
    found = []
    for place, choice in enumerate(choices):
        pattern = _pattern(choice)
        for hit in pattern.finditer(text) if pattern else ():
            found.append(
                OptionMention(place, hit.start(), hit.end(), is_negated(hit.start(), denied))
            )
    kept = [each for each in found if not any(_inside(each, other) for other in found)]
    return sorted(kept, key=lambda each: (each.start, each.place))


def _inside(one: OptionMention, other: OptionMention) -> bool:
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
