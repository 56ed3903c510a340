"""Parts of the paper's prompts (Tables 10 to 12), the twelve prompts of its sweep, and their
templates: images and passages, then the question; the layout is ours.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.generation.prompts import PARSERS, PromptSet, read_prompts
from vrag_kit.papers.published import published

_DATA = json.loads(Path(__file__).with_name("prompts.json").read_text(encoding="utf-8"))
INIT: dict[str, str] = _DATA["init"]
"""Table 10: initialisation style → its text; <DOMAIN> is replaced by Table 1's domain."""
EXAMPLES: dict[str, str] = _DATA["examples"]
"""Table 11: exemplar style → its template, a hint at the form of an answer."""
REASONING: dict[str, str] = _DATA["reasoning"]
"""Table 12: reasoning pattern → its block; the sweep uses two of the six."""
SWEPT = ("direct", "retrieve_then_reason")
_LAYOUT = read_prompts(Path(__file__).with_name("layout.yaml"))
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


@dataclass(frozen=True, slots=True)
class PromptDesign:
    """One of the prompts that the paper compares."""

    init: str
    """Of `INIT`: "plain" or "expert"."""
    example: str
    """Of `EXAMPLES`: "ex1", "ex3" or "ex6"."""
    reasoning: str
    """Of `REASONING`."""

    def __str__(self) -> str:
        """Name in tables: "expert-ex3-direct"."""
        return f"{self.init}-{self.example}-{self.reasoning}"

    def opening(self, domain: str) -> str:
        """Returns the text of the initialisation, for an expert in `domain`."""
        return INIT[self.init].replace("<DOMAIN>", domain)


PROMPTS: dict[str, PromptDesign] = {
    str(PromptDesign(*parts)): PromptDesign(*parts) for parts in product(INIT, EXAMPLES, SWEPT)
}
"""Maps the names of the sweep's twelve prompts to their designs; the paper's nicknames clash (Table
6 has some that Table 11 does not, and Table 11 maps expert3 to ex6).
"""


def prompt_design(name: str) -> PromptDesign:
    """Returns the design of this name, also for the four reasoning patterns outside of the sweep
    ("plain-ex1-verify"). Raises `VragError` for any other.
    """
    parts = name.split("-")
    known = (INIT, EXAMPLES, REASONING)
    if len(parts) != len(known) or any(
        part not in names for part, names in zip(parts, known, strict=True)
    ):
        raise VragError(
            f"prompt is {name!r}; expected one of {', '.join(PROMPTS)}, or another of"
            f" {', '.join(REASONING)} at its end."
        )
    return PromptDesign(*parts)


def prompt_parts_table(prompts: Sequence[str]) -> pd.DataFrame:
    """Returns the parts of these prompts: the column words, by part ("opens", "style", "reasoning")
    and name. Raises as `prompt_design` does.
    """
    designs = [prompt_design(name) for name in prompts]
    used = {"opens": {each.init: INIT[each.init] for each in designs}}
    used["style"] = {each.example: EXAMPLES[each.example] for each in designs}
    used["reasoning"] = {each.reasoning: REASONING[each.reasoning] for each in designs}
    parts = {part: pd.Series(words) for part, words in used.items()}
    return pd.concat(parts).rename_axis(["part", "name"]).to_frame("words")


def domain_of(dataset: str) -> str:
    """Returns Table 1's domain of a data set, by its name in `DATASETS`; raises `VragError` for
    another.
    """
    domains = published("mrag_suite", 1, metric="n_full").set_index("dataset")["domain"]
    if dataset not in domains.index:
        raise VragError(
            f"the paper names no domain of {dataset!r}; expected one of {', '.join(domains.index)}."
        )
    return str(domains[dataset])


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
    values: dict[str, str | bool] = {
        "opening": design.opening(domain),
        "example": EXAMPLES[design.example],
        "reasoning": REASONING[design.reasoning],
        "captions": captions,
        "options": options,
    }
    template = _LAYOUT.with_values(values).template("layout")
    return PromptSet(
        templates={prompt: replace(template, name=prompt)},
        settings={setting: {None: prompt} for setting in SETTINGS},
        read=PARSERS[answer],
    )
