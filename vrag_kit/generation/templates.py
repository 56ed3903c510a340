"""The paper's prompts (Table 11): which wording each setting uses, and how question and images are put into it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.types import Context, LazyImage, Message, Prompt

PAPER = json.loads((Path(__file__).parent / "visual_rag_templates.json").read_text(encoding="utf-8"))
"""The protocol's wording, verbatim, with its source."""

TEMPLATE_OF = {
    "zero_shot": "no_image",
    "gt_clue": "clue_image",
    "non_clue": "one_image",
    "top_k": "several_images",      # k ≥ 2; see below for k = 1
    "one_in_k": "several_images",   # k ≥ 2; k = 1 is gt_clue to the paper, and the same images under this wording in the controlled arm
}
"""Setting → template, as in the paper."""

OURS = {("top_k", 1): "one_image"}
"""(setting, k) → template where the paper is silent; the choice is ours: a single retrieved image is announced as neutrally as a non-clue."""


def template_of(context: Context) -> str:
    """The name of the template that a context is asked with; raises `VragError` for a setting that has none."""
    if context.setting not in TEMPLATE_OF:
        raise VragError(f"no template for the setting {context.setting!r}; expected one of {', '.join(TEMPLATE_OF)}.")
    return OURS.get((context.setting, context.k), TEMPLATE_OF[context.setting])


def render(template: str, question: str, images: Sequence[LazyImage] = ()) -> Prompt:
    """One user message: task, announcement of the images, answer format, question, then the images in order."""
    if template not in PAPER["images"]:
        raise VragError(f"unknown template {template!r}; expected one of {', '.join(PAPER['images'])}.")
    opening = " ".join(part for part in (PAPER["task"], PAPER["images"][template], PAPER["format"]) if part)
    return (Message(role="user", parts=(f"{opening}\n{PAPER['question'].format(question=question)}\n", *images)),)
