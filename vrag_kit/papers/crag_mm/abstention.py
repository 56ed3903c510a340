"""When an answer says that it does not know: three readings, side by side."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pandas as pd

from vrag_kit.judging import declines
from vrag_kit.judging.truthfulness import Declines
from vrag_kit.types import Status

_DROPPED = re.compile(r"[^a-z0-9 ]")
_SAID = ("i dont know", "i do not know")


def declines_in_code(answer: str) -> bool:
    """The reading of the authors' code of 2026: "I don't know" or "I do not know", told
    from letters, digits and blanks alone. "Sorry, I can't tell" is an answer.
    """
    words = _DROPPED.sub("", answer.lower())
    return any(said in words for said in _SAID)


def declines_in_challenge(answer: str) -> bool:
    """The reading of the challenge's evaluator of 2025: "I don't know" with a straight
    apostrophe.
    """
    return "i don't know" in answer.lower()


READINGS: Mapping[str, Declines] = {
    "code": declines_in_code,
    "challenge": declines_in_challenge,
    "kit": declines,
}
"""Reading → whether an answer declines; the kit's knows "I cannot tell" and the like."""


def with_readings(answers: pd.DataFrame) -> pd.DataFrame:
    """The table of answers with the columns declines_code, declines_challenge and
    declines_kit: 1.0, 0.0, or NaN where the call failed; an empty answer declines in
    none.
    """
    said = answers["answer"].where(answers["status"].map(lambda each: Status(each).is_answer))
    columns = {}
    for name, reading in READINGS.items():
        found = [float(reading(each)) if isinstance(each, str) else float("nan") for each in said]
        columns[f"declines_{name}"] = found
    return answers.assign(**columns)
