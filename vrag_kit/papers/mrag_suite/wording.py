"""The paper's prompts as a model is sent them: pictures and passages, then the question;
the layout is ours.
"""

from __future__ import annotations

import json
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.generation.reading import READERS
from vrag_kit.generation.slots import Slot
from vrag_kit.generation.wording import Template, Wording
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
"""All are worded alike; what is not shown is not announced."""
LAYOUT = "paper"
"""What a sweep calls the layout of `suite_wording`, beside words that a model knows."""
ANSWERS = ("short", "long")
"""Both are asked for at once, and each can be read of the same reply."""


def suite_wording(
    prompt: str = "expert-ex3-direct",
    *,
    domain: str,
    answer: str = "short",
    captions: bool = False,
    options: bool = False,
) -> Wording:
    """One of `PROMPTS`, for an expert in `domain` (`domain_of`), who gives a short and a
    long answer on two labelled lines; `answer` says which of them is read.

    Pictures come before texts (Table 10), first the one that is asked about. With
    `captions` each picture's text, such as a caption or what a page says, is shown below
    it, and every picture needs one; with `options` a question's options. Raises
    `VragError` for an unknown prompt or answer.
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
    return Wording(
        templates={prompt: Template(prompt, slots)},
        settings={setting: {None: prompt} for setting in SETTINGS},
        read=READERS[answer],
    )


def _text(words: str) -> Slot:
    return Slot(kind="text", text=words)
