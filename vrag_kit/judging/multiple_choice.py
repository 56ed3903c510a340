"""Parse which option an answer chooses, by the first of eight rules that applies.
No letter is ever guessed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from vrag_kit.errors import VragError
from vrag_kit.judging.abstention import is_abstention
from vrag_kit.types import Query

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
_DENIED = re.compile(
    r"(\b(?:no(?! doubt)|not(?! only| just)|neither|nor|never|rather than|instead of"
    r"|rul(?:e|es|ed|ing) out|exclud(?:e|es|ed|ing)|eliminat(?:e|es|ed|ing)|except)\b"
    r"|n't\b)"
    r"((?:(?!\b(?:but|yet|so|because|since|while|whereas|though|although)\b)[^.,;:!?()\n])*)",
    re.IGNORECASE,
)
_WORD = "A-Za-zÀ-ÿ0-9"
_BEFORE = rf"(?<![{_WORD}_'])(?<![A-Za-z]\.)(?<![A-Za-z0-9]-)"
_AFTER = rf"(?![{_WORD}_]|'[A-Za-z]|-[A-Za-z0-9]|\.[A-Za-z])"
_NO_ARTICLE = r"(?!(?<=A)[ \t]+(?!(?:or|and|is|because|but|not|nor)\b)[A-Za-zÀ-ÿ#])"
_TAG = re.compile(
    r"\b(?i:answer|choice|option)\b(?:\s+is\b)?\s*(?P<colon>[:=-])?\s*"
    rf"(?:[(\[{{]?\s*(?P<letter>[A-Z]|[a-z](?=[^\w#]*$)){_AFTER}(?(colon){_NO_ARTICLE}))?"
)
_LEAD = re.compile(
    rf"^\s*[(\[{{]?(?P<letter>[A-Za-z]){_AFTER}"
    r"(?:[)\]}.:]|[ \t]*\n|(?<=[A-Z])(?:,|[ \t]*[–—]|[ \t]*-(?=\s)))",
    re.MULTILINE,
)
_ALONE = re.compile(rf"{_BEFORE}[A-Z]{_AFTER}{_NO_ARTICLE}")
_JOINED = re.compile(
    r"[)\]}.]?(?:\s*(?:[,/&]|\b(?i:no|wait|actually|sorry|rather|maybe|perhaps|possibly|or|and)\b)"
    rf")+\s*[(\[{{]?([A-Z]){_AFTER}{_NO_ARTICLE}"
    rf"|[)\]}}]?\s*[.\n]\s*[(\[{{]?([A-Z]){_AFTER}(?=[ \t]*(?:[).:,\n]|$))"
)
_APPOSED = re.compile(r"[)\]}]?\s*[,(:–—-]?\s*(?:(?:the|an?)\s+)?", re.IGNORECASE)
_VERB = re.compile(
    r"[ \t]*(?:[a-z]+(?:s|ed|n't|ould)|are|had|did|do|can|cannot|will|may|might|must|fit)\b"
)
_REJECTED = re.compile(
    r"[)\]}]?\s*(?:is|was|does|do|did|can|could|would|should|has)?\s*"
    r"(?:n't|not|never|cannot|wrong|incorrect|false|(?:ruled|left) out|excluded)\b",
    re.IGNORECASE,
)


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
    and a bracket, stop, colon, comma, dash or line break; it is ambiguous where the text names
    exactly one option, another one, and where other lines begin so with other letters. letter in
    text: capitals in brackets or alone; "A" before a word is an article unless a word such as "or"
    or "is" follows. option text: options' texts; whole words match, whatever their case and whether
    `_`, `-`, a space or nothing separates them, and a scientific name also as "D. plexippus".
    Letters and options in a negated clause do not count. Several are ambiguous, also "A or B" after
    a tag, and a letter next to another option's name ("B, the tiger lily"). declined and unparsed
    have no letter.

    Raises `VragError` without 2 to 26 options.
    """
    if not 2 <= len(choices) <= len(ascii_uppercase):
        raise VragError(f"{len(choices)} options; expected 2 to {len(ascii_uppercase)}.")
    options = dict(zip(ascii_uppercase, choices, strict=False))
    are_letters = all(len(choice.strip()) == 1 and choice.strip().isalpha() for choice in choices)
    text = unicodedata.normalize("NFKC", raw).replace("’", "'").replace("‘", "'")
    text = re.sub(r"[*`#$\"“”«»]|(?<![A-Za-z0-9])'|'(?![A-Za-z0-9])", "", text).strip()
    bare = _DENIED.sub(lambda denied: denied[1] + "#" * len(denied[2]), text)
    named = _find_options(bare, options)
    for _, span in named:
        bare = bare[: span.start] + "#" * len(span) + bare[span.stop :]
    answer = _Answer(text, bare, options, named)
    found = {
        "whole answer": _whole(answer),
        "tagged": _tagged(answer),
        "leading letter": _leading(answer),
        "letter in text": _in_text(answer),
        "option text": "".join(letter for letter, _ in named),
    }
    for rule, letters in found.items():
        if letters:
            return ParsedChoice(rule, "".join(sorted(set(letters))), are_letters)
    rule = "declined" if is_abstention(text) else "unparsed"
    return ParsedChoice(rule if text else "empty", "", are_letters)


def correct_letters(query: Query) -> str:
    """Return the letters of the options that are accepted answers; usually one."""
    texts = zip(ascii_uppercase, query.choices, strict=False)
    return "".join(letter for letter, choice in texts if choice in query.answers)


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer without quotes and marks."""

    text: str
    bare: str
    """The text with "#" in place of each character of options' texts and of negated clauses."""
    options: Mapping[str, str]
    """Letter → option."""
    named: Sequence[tuple[str, range]]
    """Letter and span of each asserted option's text."""

    def letters_from(self, end: int) -> str:
        """Return the letter that ends at a position, those joined to it ("B, or maybe C"), and
        that of an option in apposition ("B, the tiger lily").
        """
        letters = self.text[end - 1].upper()
        for letter, span in self.named:
            if span.start >= end and _APPOSED.fullmatch(self.text, end, span.start):
                letters += letter
        joined = _JOINED.match(self.text, end)
        while joined and (letter := joined[1] or joined[2]) in self.options:
            letters += letter
            joined = _JOINED.match(self.text, joined.end())
        return letters


def _find_options(text: str, options: Mapping[str, str]) -> list[tuple[str, range]]:
    """Letter and span of each option with two letters or more; none inside a longer one."""
    found = []
    for letter, option in options.items():
        if sum(character.isalpha() for character in option) > 1:
            hits = re.finditer(_option_pattern(option), text, re.IGNORECASE)
            found += [(letter, range(*hit.span())) for hit in hits]
    spans = [set(span) for _, span in found]
    return [(letter, span) for letter, span in found if not any(set(span) < each for each in spans)]


def _option_pattern(option: str) -> str:
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", option.strip())  # EastAsia
    words = [re.escape(word) for word in re.split(r"[\s_-]+", apart) if word]
    whole = r"[\s_-]*".join(words)
    if re.fullmatch(r"[A-Z][a-z]+ [a-z]{3,}", apart):
        whole += rf"|{apart[0]}\.\s*{words[1]}"
    return rf"(?<![{_WORD}])(?:{whole})(?![{_WORD}])"


def _plain(text: str) -> str:
    """A text without case, `_`, `-` and spaces, and punctuation at its ends."""
    return re.sub(r"^[\W_]+|[\W_]+$|[\s_-]+", "", text).casefold()


def _whole(answer: _Answer) -> str:
    core = _plain(answer.text)
    if core.upper() in answer.options:
        return core.upper()
    same = [letter for letter, option in answer.options.items() if core == _plain(option)]
    return same[0] if core and len(same) == 1 else ""


def _tagged(answer: _Answer) -> str:
    tags = list(_TAG.finditer(answer.bare))
    if tags and (tags[-1]["letter"] or "").upper() in answer.options:
        return answer.letters_from(tags[-1].end("letter"))
    return ""


def _leading(answer: _Answer) -> str:
    """The letters that begin a line, unless a verb follows ("A: looks orange")."""
    leads = [
        lead
        for lead in _LEAD.finditer(answer.text)
        if lead["letter"].upper() in answer.options and not _VERB.match(answer.bare, lead.end())
    ]
    if not leads or leads[0].start() > 0:
        return ""
    named = {letter for letter, _ in answer.named}
    letters = "".join(answer.letters_from(lead.end("letter")) for lead in leads)
    return letters + "".join(named if len(named) == 1 else ())


def _in_text(answer: _Answer) -> str:
    found = [each for each in _ALONE.finditer(answer.bare) if each[0] in answer.options]
    letters = {each[0] for each in found}
    if len(letters) == 1 and all(_REJECTED.match(answer.text, each.end()) for each in found):
        return ""
    same = [letter for letter, option in answer.options.items() if option.strip() in letters]
    return "".join([*same, *(answer.letters_from(each.end()) for each in found)])
