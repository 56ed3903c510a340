"""The paper's prompts (Table 11), and ours where it gives none: which wording each
setting uses, and how question, images and passages are put into it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.types import Context, LazyImage, Message, Prompt

PAPER = json.loads(
    (Path(__file__).parent / "visual_rag_templates.json").read_text(encoding="utf-8")
)
"""The protocol's wording, verbatim, with its source."""
_OWN = json.loads((Path(__file__).parent / "our_templates.json").read_text(encoding="utf-8"))
_WORDING: dict[str, str] = {**PAPER["images"], "text_passages": _OWN["text_passages"]}

TEMPLATE_OF = {
    "zero_shot": "no_image",
    "gt_clue": "clue_image",
    "non_clue": "one_image",
    "top_k": "several_images",  # k ≥ 2; see below for k = 1
    "one_in_k": (
        "several_images"
        # k ≥ 2; k = 1 is gt_clue to the paper, and the same images under this wording in the
        # controlled arm
    ),
    "m_in_k": "several_images",
    "m_gt": (
        "several_images"
    ),  # ours for m ≥ 2: no wording of the paper says that all images are clues; m = 1 is gt_clue
    "one_in_k_easy": (
        "several_images"
        # ours: its "all of them are regarding that organism" is not so here, but the wording must
        # not differ from one_in_k's
    ),
    "text_rag": "text_passages",  # ours
}
"""Setting → template, as in the paper but where marked."""

OURS = {("top_k", 1): "one_image", ("m_gt", 1): "clue_image"}
"""(setting, k) → template where the paper is silent; the choice is ours: a single
retrieved image is announced as neutrally as a non-clue, and 1 GT is the GT clue.
"""


def template_of(context: Context) -> str:
    """The name of the template that a context is asked with; raises `VragError` for a
    setting that has none.
    """
    if context.setting not in TEMPLATE_OF:
        raise VragError(
            f"no template for the setting {context.setting!r}; expected one of"
            f" {', '.join(TEMPLATE_OF)}."
        )
    return OURS.get((context.setting, context.k), TEMPLATE_OF[context.setting])


def render(
    template: str, question: str, images: Sequence[LazyImage] = (), passages: Sequence[str] = ()
) -> Prompt:
    """One user message: task, announcement of what is shown, answer format, question,
    then the passages, numbered, and the images, in order.
    """
    if template not in _WORDING:
        raise VragError(f"unknown template {template!r}; expected one of {', '.join(_WORDING)}.")
    opening = " ".join(
        part for part in (PAPER["task"], _WORDING[template], PAPER["format"]) if part
    )
    shown = "".join(
        f"Passage {number}: {passage}\n" for number, passage in enumerate(passages, start=1)
    )
    return (
        Message(
            role="user",
            parts=(f"{opening}\n{PAPER['question'].format(question=question)}\n{shown}", *images),
        ),
    )
