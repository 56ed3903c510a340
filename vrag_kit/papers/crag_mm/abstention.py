"""Three rules that decide whether an answer abstains."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pandas as pd

from vrag_kit.judging import is_abstention
from vrag_kit.judging.truthfulness import Declines
from vrag_kit.types import Status

_DROPPED = re.compile(r"[^a-z0-9 ]")
_SAID = ("i dont know", "i do not know")


def is_abstention_code(answer: str) -> bool:
    """Abstention rule of the authors' code of 2026: "I don't know" or "I do not know", ignoring all
    but letters, digits and spaces. "Sorry, I can't tell" is an answer.
    """
    words = _DROPPED.sub("", answer.lower())
    return any(said in words for said in _SAID)


def is_abstention_challenge(answer: str) -> bool:
    """Abstention rule of the challenge's evaluator of 2025: "I don't know" with a straight
    apostrophe.
    """
    return "i don't know" in answer.lower()


READINGS: Mapping[str, Declines] = {
    "code": is_abstention_code,
    "challenge": is_abstention_challenge,
    "vrag_kit": is_abstention,
}
"""Maps a rule's name to its function; vrag_kit's also covers "I cannot tell" and the like."""


def with_abstention_rules(answers: pd.DataFrame) -> pd.DataFrame:
    """Adds the columns abstains_code, abstains_challenge and abstains_vrag_kit to a table of
    answers: 1.0, 0.0, or NaN where the call failed; an empty answer abstains by none.
    """
    said = answers["answer"].where(answers["status"].map(lambda each: Status(each).is_answer))
    columns = {}
    for name, reading in READINGS.items():
        found = [float(reading(each)) if isinstance(each, str) else float("nan") for each in said]
        columns[f"abstains_{name}"] = found
    return answers.assign(**columns)
