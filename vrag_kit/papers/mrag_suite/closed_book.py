"""Closed-book prompts, without evidence, with a stated confidence: the input of the filter."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd

from vrag_kit.generation.parsers import READERS
from vrag_kit.generation.prompts import PromptSet, Template
from vrag_kit.generation.slots import Slot

CLOSED_BOOK = "zero_shot"
"""Setting of closed-book answers."""
_WORDS: dict[str, str] = json.loads(
    Path(__file__).with_name("closed_book.json").read_text(encoding="utf-8")
)
_FORM = re.compile(r"\s*Answer:(?P<answer>.*)\n\s*Confidence:\s*(?P<sure>\S+)\s*", re.DOTALL)
_SHARE = re.compile(r"0?\.\d+|0\.?|1(?:\.0*)?")


def closed_book_prompts() -> PromptSet:
    """Returns prompts without evidence that ask for an answer and a confidence: a line "Answer: …"
    and a line "Confidence: …", from 0 to 1; ours, as the paper has none.

    Answers are not split; `with_confidence` does that.
    """
    slots = (
        Slot(kind="query_image", item="{image}"),
        Slot(kind="question", item=_WORDS["question"]),
        Slot(kind="choices", header=_WORDS["options"], item=_WORDS["option"]),
        Slot(kind="text", text=_WORDS["form"]),
    )
    name = "closed book"
    template = Template(name, slots)
    return PromptSet(
        templates={name: template}, settings={CLOSED_BOOK: {None: name}}, read=READERS["whole"]
    )


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
