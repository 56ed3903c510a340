"""Detect abstentions by a regular expression."""

from __future__ import annotations

import re

_TELL = r"(?:know|tell|say|see|determine|decide|answer|identify|make out|confirm)"
_DECLINES = re.compile(
    r"\b(?:(?:do not|don't|does not|doesn't|not) know|(?:cannot|can't|can not|could"
    rf" not|couldn't|unable to|not able to) (?:\w+ly )?{_TELL}"
    r"|(?:cannot|can't|can not|could not|couldn't) be (?:\w+ly"
    r" )?(?:determined|decided|told|answered|identified|seen|made out|confirmed)"
    r"|(?:not|no|without|isn't|aren't) (?:enough|sufficient)"
    r" (?:information|evidence|details?)|insufficient (?:information|evidence)"
    r"|(?:is not|isn't|are not|aren't|was not|wasn't|were not|weren't) (?:\w+ly"
    r" )?(?:visible|shown|clear|discernible|specified|provided|possible)"
    r"|not possible to|no information|idk|unknown|not sure|unsure|unclear)\b"
)


def is_abstention(text: str) -> bool:
    """Return whether a text abstains ("I don't know", "not enough information" or similar).
    A guess may follow the abstention.
    """
    return bool(_DECLINES.search(text.lower().replace("’", "'")))
