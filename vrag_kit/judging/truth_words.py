"""What an answer asserts, in the pieces that rules compare: its conclusion, the clauses
that are not denied, its content words, and names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from vrag_kit.judging.rule_judge import canonical

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
    """What is answered in the end: what stands after the last colon, as in "A red moth,
    Talia ensis: Norland.", and after a "No, …" that takes back what was said before.
    """
    text = answer.replace("’", "'").strip()
    text = _TAKEN_BACK.sub("", text)
    pieces = text.rstrip(" :").rsplit(": ", 1)
    return pieces[-1] if pieces[0].strip() and _WORD.search(pieces[-1]) else text


def asserted(text: str) -> str:
    """The clauses of a text without a negation, and without what is only compared with
    ("than Talia osa").
    """
    clauses = _CLAUSE.split(_ASIDE.sub(" ", text.replace("’", "'")))
    kept = [clause for clause in clauses if not _NEGATION.search(clause.lower())]
    return ", ".join(clause.strip() for clause in kept if clause.strip())


def main_part(text: str) -> str:
    """A text without what goes with its main words: "banded" of "banded with red"."""
    return _WITH.sub(" ", text)


def denies(text: str) -> bool:
    """Whether there is a negation ("not", "isn't") in a text."""
    return bool(_NEGATION.search(text.lower().replace("’", "'")))


def words_of(text: str) -> list[str]:
    """The words of a text, in order, as they stand; of "Barlow's pupil" not the first."""
    return [word for word in _WORD.findall(text.replace("’", "'")) if not word.endswith("'s")]


def plain(word: str) -> str:
    """A word so that its forms are equal: lower case, without the s of a plural, and
    colours and patterns that mean nearly the same by one name.
    """
    word = canonical(word.lower())
    return word[:-1] if len(word) > 3 and word.endswith("s") else word


def content(text: str, without: Collection[str] = ()) -> list[str]:
    """The words of a text that mean something, in order, as they stand, but for those
    whose `plain` form is in `without`.
    """
    found = [word for word in words_of(text) if word.lower() not in _EMPTY]
    return [word for word in found if plain(word) not in without]


def plain_words(text: str) -> frozenset[str]:
    """The `plain` forms of the content words of a text."""
    return frozenset(plain(word) for word in content(text))


def phrase_in(phrase: Sequence[str], text: str) -> bool:
    """Whether the words of a phrase stand together and in order in a text, and are no
    part of a longer name ("East Norland").

    A capitalised word must be so in the text too, unless the text has no capitals: "May"
    is not "may".
    """
    words = words_of(text)
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


def _same(wanted: str, said: str, cased: bool) -> bool:
    if cased and wanted[0].isupper() and not said[0].isupper():
        return False
    return plain(wanted) == plain(said)


def _adjacent(first: str, second: str, text: str) -> bool:
    """Whether only a space is between two words."""
    return f"{first} {second}" in text.replace("’", "'")
