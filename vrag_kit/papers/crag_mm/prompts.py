"""Prompts of the paper (A.4, A.5.2), in its layout and in that of its code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from vrag_kit.generation.prompts import PromptSet, open_prompt_set, read_prompts

IMAGE_CHARS = 8_000
WEB_CHARS = 32_000
"""Longest context in characters: the paper's 2k and 8k tokens, as counted by its code."""
_REWRITING = read_prompts(Path(__file__).with_name("rewriting.yaml"))
_PAPER = read_prompts(Path(__file__).with_name("prompts.yaml"))
_CODE = replace(_PAPER, settings={arm: {None: f"{arm}, code"} for arm in _PAPER.settings})
PROMPT_SETS: Mapping[str, PromptSet] = {"paper": _PAPER, "code": _CODE}
"""Maps a layout's name to its prompts. paper: one user message. code: system, image, contexts,
earlier turns and query as separate messages. Both have the settings mm_llm, task_1, task_2 and
task_3, and do not shorten answers.
"""


def load_prompts(
    layout: str = "paper", *, image_chars: int = IMAGE_CHARS, web_chars: int = WEB_CHARS
) -> PromptSet:
    """Returns the prompts in a layout, with contexts of `image_chars` and `web_chars` characters at
    most. A layout may be a custom YAML file, which defaults to the paper's prompts.

    Raises `VragError` as `open_prompt_set` does.
    """
    budgets = {"image_chars": image_chars, "web_chars": web_chars}
    return open_prompt_set(layout, PROMPT_SETS, "layout").with_values(budgets)


def rewriting_prompts(*, image_chars: int = IMAGE_CHARS) -> PromptSet:
    """Returns the prompts for query rewriting, written for the kit: the settings image, retrieved,
    image_history and retrieved_history, with entries limited to `image_chars` characters.
    """
    return _REWRITING.with_values({"image_chars": image_chars})
