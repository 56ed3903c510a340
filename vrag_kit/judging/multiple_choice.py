"""Parse which option an answer chooses, by the first of eight rules that applies.
No letter is ever guessed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_uppercase

from vrag_kit.errors import VragError
from vrag_kit.judging.abstention import is_abstention
from vrag_kit.types import Query

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


RULES = {
    "empty": "nothing was said",
    "whole answer": "all of it is a letter, or an option's text",
    "tagged": 'a letter directly after the last "answer", "choice" or "option"',
    "leading letter": "it begins with a letter, set apart",
    "letter in text": "a capital alone or in brackets",
    "option text": "an option's text",
    "declined": "it says that it cannot tell",
    "unparsed": "none of these",
}
"""Rule → when it applies, in the order in which they are tried."""

_BEFORE = r"(?<![A-Za-zÀ-ÿ0-9_'])(?<![A-Za-z]\.)(?<![A-Za-z0-9]-)"
_AFTER = r"(?![A-Za-zÀ-ÿ0-9_]|'[A-Za-z]|-[A-Za-z0-9]|\.[A-Za-z])"
_TAG = re.compile(r"\b(?:answer|choice|option)\b(?:\s+is\b)?\s*(?P<colon>[:=-]?)\s*", re.IGNORECASE)
_ARTICLE = re.compile(r"[ \t]+(?!(?:or|and|is|because|but|not|nor)\b)[A-Za-zÀ-ÿ]")
_VERB = re.compile(
    r"[ \t]*(?P<word>[a-z]+(?:s|ed|n't)|are|had|did|do|can|cannot|could|would|will|should|may"
    r"|might|must|fit|match)\b"
)
_JOINS = "(?i:no|wait|actually|sorry|rather|maybe|perhaps|possibly|or|and)"
_REJECTED = re.compile(
    r"[)\]}]?\s*(?:is|was|does|do|did|can|could|would|should|has)?\s*"
    r"(?:n't|not|never|cannot|wrong|incorrect|false|(?:ruled|left) out|excluded)\b",
    re.IGNORECASE,
)
_APPOSED = re.compile(r"[)\]}]?\s*[,(:–—-]?\s*(?:(?:the|an?)\s+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ParsedChoice:
    """The option that an answer chooses, and the rule that found it."""

    rule: str
    """One of `RULES`: the first that applied."""
    letters: str = ""
    """The letter; all candidates where it is ambiguous; "" where there is none."""
    options_are_letters: bool = False
    """Whether the options themselves are single letters.
    They may be confused with the letters of the choice.
    """

    @property
    def letter(self) -> str | None:
        """The chosen letter; None unless exactly one was chosen."""
        return self.letters if len(self.letters) == 1 else None

    def __str__(self) -> str:
        """ "B whole answer", "ambiguous A, B (tagged)" or "declined"."""
        marked = ", options are letters" if self.options_are_letters else ""
        if len(self.letters) > 1:
            return f"ambiguous {', '.join(self.letters)} ({self.rule}){marked}"
        return f"{self.letters} {self.rule}".strip() + marked


def read_choice(raw: str, choices: Sequence[str]) -> ParsedChoice:
    """Return the option that an answer chooses, by the first rule that applies.

    empty. whole answer: without quotes, marks, brackets and final stops it is a letter of any case,
    or exactly one option's text. tagged: a letter directly after the last "answer", "choice" or
    "option" ("is", ":"), a lower-case one only at the end. leading letter: it begins with a letter
    and a bracket, stop, colon, comma, dash or line break, and the letter is no verb's subject; it
    is ambiguous where the text names exactly one option, another one. letter in text: capitals in
    brackets or alone; "A" before a word is an article unless a word such as "or" or "is" follows.
    option text: options' texts. Options in a negated clause do not count. Several are ambiguous,
    also "A or B" after a tag, and a letter next to another option's name ("B, the tiger lily").
    declined and unparsed have no letter.

    Raises `VragError` without 2 to 26 options.
    """
    if not 2 <= len(choices) <= len(ascii_uppercase):
        raise VragError(f"{len(choices)} options; expected 2 to {len(ascii_uppercase)}.")
    marked = all(len(choice.strip()) == 1 and choice.strip().isalpha() for choice in choices)
    said = _Said.of(raw, tuple(choices))
    if not said.text:
        return ParsedChoice("empty", "", marked)
    for rule, read in _IN_ORDER.items():
        if letters := read(said):
            return ParsedChoice(rule, "".join(sorted(set(letters))), marked)
    return ParsedChoice("declined" if is_abstention(said.text) else "unparsed", "", marked)


def correct_letters(query: Query) -> str:
    """Return the letters of the options that are accepted answers; usually one."""
    texts = zip(ascii_uppercase, query.choices, strict=False)
    return "".join(letter for letter, choice in texts if choice in query.answers)


@dataclass(frozen=True, slots=True)
class _Said:
    """An answer without quotes and marks, and what of it is known beforehand."""

    text: str
    choices: tuple[str, ...]
    letters: str
    denied: list[range]
    named: list[OptionMention]

    @classmethod
    def of(cls, raw: str, choices: tuple[str, ...]) -> _Said:
        text = unicodedata.normalize("NFKC", raw).replace("’", "'").replace("‘", "'")
        text = re.sub(r"[*`#$\"“”«»]", "", text)
        text = re.sub(r"(?<![A-Za-z0-9])'|'(?![A-Za-z0-9])", "", text).strip()
        letters = ascii_uppercase[: len(choices)]
        return cls(text, choices, letters, negated_spans(text), find_options(text, choices))

    def options(self) -> str:
        """The letters of the options that are named and not denied."""
        return "".join(self.letters[each.place] for each in self.named if not each.denied)

    def also(self, end: int) -> str:
        """The letters that belong to the one which ends here, after "or", "and", a comma,
        "no, wait", or on a line of their own.
        """
        letters = ""
        while found := _also(self.letters).match(self.text, end):
            letters += next(filter(None, found.groups()))
            end = found.end()
        return letters

    def with_apposition(self, end: int) -> str:
        """What `also` finds, and the letter of an option named in apposition."""
        apposed = _APPOSED.match(self.text, end)
        start = apposed.end() if apposed else end
        at = [each for each in self.named if each.start == start and not each.denied]
        return self.also(end) + "".join(self.letters[each.place] for each in at)


def _whole(answer: _Said) -> str:
    core = re.sub(r"^[\W_]+|[\W_]+$", "", answer.text)
    if len(core) == 1 and core.upper() in answer.letters:
        return core.upper()
    same = [
        letter
        for letter, choice in zip(answer.letters, answer.choices, strict=True)
        if core and normalize_option(choice) == normalize_option(core)
    ]
    return same[0] if len(same) == 1 else ""


def _tagged(answer: _Said) -> str:
    tags = list(_TAG.finditer(answer.text))
    if not tags:
        return ""
    found = _after_tag(answer.letters).match(answer.text, tags[-1].end())
    if not found or is_negated(found.start("letter"), answer.denied):
        return ""
    letter, end = found["letter"], found.end("letter")
    if letter.islower() and re.search(r"[^\W_]", answer.text[end:]):
        return ""
    loose = bool(tags[-1]["colon"]) and not found["open"]
    if letter == "A" and loose and _ARTICLE.match(answer.text, end):
        return ""
    return letter.upper() + answer.with_apposition(end)


def _led(answer: _Said) -> str:
    found = _lead_in_brackets(answer.letters).match(answer.text)
    found = found or _lead(answer.letters).match(answer.text)
    if not found:
        return ""
    if "\n" not in found["apart"] and _is_verb(answer, found.end()):
        return ""
    named = set(answer.options())
    other = next(iter(named)) if len(named) == 1 else ""
    line_end = answer.text.find("\n", found.end("letter"))
    if line_end >= 0 and "\n" not in found["apart"]:  # a list of options, each on its line
        following = _lead(answer.letters).match(answer.text[line_end:].lstrip())
        other += following["letter"].upper() if following else ""
    return found["letter"].upper() + answer.also(found.end("letter")) + other


def _is_verb(answer: _Said, place: int) -> bool:
    """Whether a verb stands here, and no word of an option."""
    found = _VERB.match(answer.text, place)
    if not found:
        return False
    return not any(found.start("word") in range(each.start, each.end) for each in answer.named)


def _elsewhere(answer: _Said) -> str:
    candidates = []
    for found in _alone(answer.letters).finditer(answer.text):
        place = found.start("letter")
        bracketed = found["bracketed"] is not None
        article = found["letter"] == "A" and _ARTICLE.match(answer.text, place + 1)
        if is_negated(place, answer.denied) or (article and not bracketed):
            continue
        if any(place in range(each.start, each.end) for each in answer.named):
            continue
        candidates.append(place)
    letters = {answer.text[place] for place in candidates}
    if len(letters) != 1:
        return "".join(letters)
    if all(_REJECTED.match(answer.text, place + 1) for place in candidates):
        return ""
    (letter,) = letters
    texts = zip(answer.letters, answer.choices, strict=True)
    own = "".join(other for other, choice in texts if choice.strip() == letter)
    return letter + own + "".join(answer.with_apposition(place + 1) for place in candidates)


def _named(answer: _Said) -> str:
    return answer.options()


_IN_ORDER = {
    "whole answer": _whole,
    "tagged": _tagged,
    "leading letter": _led,
    "letter in text": _elsewhere,
    "option text": _named,
}


@lru_cache(maxsize=32)
def _after_tag(letters: str) -> re.Pattern[str]:
    """A letter of any case, perhaps in brackets."""
    return re.compile(rf"(?P<open>[(\[{{]?)\s*(?P<letter>[{letters}{letters.lower()}]){_AFTER}")


@lru_cache(maxsize=32)
def _lead(letters: str) -> re.Pattern[str]:
    """A letter and what sets it apart; a small one not by a comma or dash."""
    any_case = f"[{letters}{letters.lower()}]"
    apart = rf"[).:]|[ \t]*\n|(?<=[{letters}])(?:,|[ \t]*[–—]|[ \t]*-(?=\s))"
    return re.compile(rf"(?P<letter>{any_case}){_AFTER}(?P<apart>{apart})")


@lru_cache(maxsize=32)
def _lead_in_brackets(letters: str) -> re.Pattern[str]:
    return re.compile(rf"[(\[{{](?P<letter>[{letters}{letters.lower()}])(?P<apart>[)\]}}])")


@lru_cache(maxsize=32)
def _alone(letters: str) -> re.Pattern[str]:
    """A capital alone or in brackets."""
    bracketed = rf"(?P<bracketed>(?<=[(\[{{])(?=[{letters}][)\]}}]))"
    return re.compile(rf"{bracketed}?{_BEFORE}(?P<letter>[{letters}]){_AFTER}")


@lru_cache(maxsize=32)
def _also(letters: str) -> re.Pattern[str]:
    """Another letter that belongs to the one before: joined to it, or on a line or in a
    sentence of its own.
    """
    before = rf"[)\]}}.]?(?:\s*(?:[,/&]|\b{_JOINS}\b))*"
    any_letter = rf"[(\[{{]?([{letters}]){_AFTER}"
    no_article = rf"[(\[{{]?([{letters[1:]}]){_AFTER}"
    goes_on = r"(?![ \t]+(?!(?:or|and|is|because|but|not|nor)\b)[a-z])"
    after_or = rf"{before}\s*\b(?i:or|and)\s+{no_article}"
    joined = rf"{before}\s*(?:[,/&]|\b{_JOINS}\b)\s*{any_letter}{goes_on}"
    listed = rf"[)\]}}]?\s*[.\n]\s*{any_letter}(?=[ \t]*(?:[).:,\n]|$))"
    return re.compile("|".join((after_or, joined, listed)))
