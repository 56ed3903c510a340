"""Prompt templates of the paper's prompts: images and passages, then the question; the layout is
ours.
"""

from __future__ import annotations

import json
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.generation.parsers import READERS
from vrag_kit.generation.slots import Slot
from vrag_kit.generation.wording import PromptSet, Template
from vrag_kit.papers.mrag_suite.prompts import EXAMPLES, REASONING, prompt_design

_WORDS: dict[str, str] = json.loads(
    Path(__file__).with_name("wording.json").read_text(encoding="utf-8")
)
SETTINGS = (
    "zero_shot",
    "image",
    "text",
    "both",
    "top_k",
    "distractors_only",
    "gt_plus_distractors",
    "gt_only",
)
"""Settings, all with the same template; evidence that is not shown is not announced."""
LAYOUT = "paper"
"""Name of the layout of `suite_prompts` in a sweep, as opposed to a model's training prompt."""
ANSWERS = ("short", "long")
"""Kinds of answer: both are requested at once, and each can be parsed from the same reply."""


def suite_prompts(
    prompt: str = "expert-ex3-direct",
    *,
    domain: str,
    answer: str = "short",
    captions: bool = False,
    options: bool = False,
) -> PromptSet:
    """Returns one of `PROMPTS`, for an expert in `domain` (`domain_of`), that requests a short and
    a long answer on two labelled lines; `answer` selects the one to parse.

    Images come before texts (Table 10), the question's own first. With `captions` each image's
    text, such as a caption or a page's content, is shown below it, and every image needs one; with
    `options` a question's options. Raises `VragError` for an unknown prompt or answer.
    """
    design = prompt_design(prompt)
    if answer not in ANSWERS:
        raise VragError(f"answer is {answer!r}; expected one of {', '.join(ANSWERS)}.")
    picture = "{image}\n" + _WORDS["caption"] if captions else "{image}"
    pictures = Slot(kind="documents", modality="image", item=picture)
    texts = Slot(
        kind="documents", modality="text", header=_WORDS["passages"], item=_WORDS["passage"]
    )
    reasoning = REASONING[design.reasoning]
    asked = [Slot(kind="question", item=_WORDS["question"])]
    if options:
        asked.append(Slot(kind="choices", header=_WORDS["options"], item=_WORDS["option"]))
    slots = (
        Slot(kind="text", role="system", text=design.opening(domain)),
        Slot(kind="query_image", item="{image}"),
        pictures,
        texts,
        _text(_WORDS["example"].replace("{example}", EXAMPLES[design.example])),
        _text(f"{reasoning}\n" if reasoning else ""),
        *asked,
        _text(_WORDS["form"]),
    )
    return PromptSet(
        templates={prompt: Template(prompt, slots)},
        settings={setting: {None: prompt} for setting in SETTINGS},
        read=READERS[answer],
    )


def _text(words: str) -> Slot:
    return Slot(kind="text", text=words)
