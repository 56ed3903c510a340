"""Closed-book prompts, without evidence, with a stated confidence: the input of the filter."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from vrag_kit.generation.prompts import PromptSet, read_prompts

CLOSED_BOOK = "zero_shot"
"""Setting of closed-book answers."""
_FORM = re.compile(r"\s*Answer:(?P<answer>.*)\n\s*Confidence:\s*(?P<sure>\S+)\s*", re.DOTALL)
_SHARE = re.compile(r"0?\.\d+|0\.?|1(?:\.0*)?")


def closed_book_prompts() -> PromptSet:
    """Returns prompts without evidence that ask for an answer and a confidence: a line "Answer: …"
    and a line "Confidence: …", from 0 to 1; ours, as the paper has none.

    Answers are not split; `with_confidence` does that.
    """
    return read_prompts(Path(__file__).with_name("closed_book.yaml"))


def with_confidence(answers: pd.DataFrame) -> pd.DataFrame:
    """Splits the answers to `closed_book_prompts` into the answer and the column confidence, in [0,
    1].

    It is NaN if none is stated in the requested format; the whole reply is then the answer.
    """
    found = [_in_form(words) if isinstance(words, str) else None for words in answers["answer"]]
    pairs = zip(answers["answer"], found, strict=True)
    told = [words if each is None else each[0] for words, each in pairs]
    sure = [float("nan") if each is None else each[1] for each in found]
    words = pd.Series(told, answers.index, dtype=object)
    return answers.assign(answer=words, confidence=sure)


def _in_form(words: str) -> tuple[str, float] | None:
    """Answer and confidence; None where they are not in the form."""
    match = _FORM.fullmatch(words)
    if match is None or not _SHARE.fullmatch(match["sure"]):
        return None
    return match["answer"].strip(), float(match["sure"])
