"""The paper's prompts (A.4, A.5.2), and the same words laid out as its code does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from vrag_kit.generation.wording import Wording, open_wording, read_wording

IMAGE_CHARS = 8_000
WEB_CHARS = 32_000
"""Longest context, in characters: what the paper calls 2k and 8k tokens, as its code
counts them.
"""
_REWRITING = read_wording(Path(__file__).with_name("rewriting.json"))
_PAPER = read_wording(Path(__file__).with_name("wording.json"))
_CODE = replace(_PAPER, settings={arm: {None: f"{arm} as the code"} for arm in _PAPER.settings})
WORDINGS: Mapping[str, Wording] = {"paper": _PAPER, "code": _CODE}
"""By the layout that a parameter names. paper: one user message. code: system, image,
contexts, earlier turns and query as messages of their own. Both know the arms mm_llm,
task_1, task_2 and task_3, and read answers whole.
"""


def wording_of(
    layout: str = "paper", *, image_chars: int = IMAGE_CHARS, web_chars: int = WEB_CHARS
) -> Wording:
    """The prompts in a layout, their contexts in so many characters, headings included; a
    layout may be a JSON file of one's own, which leaves out what it has as the paper.

    Raises `VragError` as `open_wording` does.
    """
    budgets = {"image context": image_chars, "web context": web_chars}
    return open_wording(layout, WORDINGS, "layout").within(budgets)


def rewriting_wording(*, image_chars: int = IMAGE_CHARS) -> Wording:
    """How a model is asked to say a question anew, in the kit's own words: the settings
    image, found, image_history and found_history, with so many characters of entries.
    """
    return _REWRITING.within({"image context": image_chars})
