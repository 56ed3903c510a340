"""Does an answer decline to answer? Read from its words."""

from __future__ import annotations

import re

_DECLINES = re.compile(
    r"\b(?:i (?:do not|don't|cannot|can't|am unable to) (?:know|tell|say|see|determine|decide|answer)|(?:do not|don't|not) know"
    r"|(?:cannot|can't|can not|could not|couldn't) (?:be )?(?:determined?|decided?|told|answer(?:ed)?|identif(?:y|ied)|tell|see)"
    r"|(?:not|no|without) (?:enough|sufficient) (?:information|evidence|detail)|insufficient (?:information|evidence)"
    r"|unable to (?:determine|answer|tell|see|identify)|(?:is|are|was|were) not (?:visible|shown|clear|discernible|specified|provided|possible)"
    r"|isn't visible|aren't visible|not possible to|no information|unknown|not sure|unsure|unclear)\b")


def declines(text: str) -> bool:
    """Whether the words say "I don't know", "not enough information" or the like; a guess may follow them all the same."""
    return bool(_DECLINES.search(text.lower().replace("’", "'")))
