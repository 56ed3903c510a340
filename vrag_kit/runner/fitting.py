"""Validation of parameter values: types, ranges, and required items."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

ENTRIES = (
    *("tour_model", "checker", "extractor", "filter_model", "judge"),
    *("image_service", "retriever", "rewriter", "text_retriever", "web_service", "question_writer"),
)
"""Parameters that name a model: a name, or a mapping with "model" and options."""
_SOURCES = ("articles", "data", "second_corpus", "image_source", "mrag_suite", "webqa")
"""Parameters that name data, and may be a mapping of files or data sets."""
_FROM_ONE = frozenset(
    (
        *("draws", "example_draws", "counterfactual_draws"),
        *("batch_size", "chunk_tokens", "image", "image_k", "judge_samples", "max_new_tokens"),
        *("max_clues", "samples", "text", "min_votes", "web_k"),
    )
)
"""Whole numbers of at least 1."""
_FROM_NOUGHT = frozenset(("equivalence_margin", "region_margin"))
"""Numbers of at least 0."""
_ASKED = {"models": "what models answer", "retrievers": "what retrievers find"}
"""Lists that need at least one item in a notebook whose default has some → what it shows of them.
"""
_ALL = frozenset(
    (
        *("per_dataset", "per_scenario", "questions_per_dataset", "questions_per_scenario"),
        *("max_questions", "mismatched_conversations", "mismatched_questions"),
        *("panel_questions_per_scenario", "web_questions"),
    )
)
"""Numbers of questions; null means all, as it does for the lists `datasets` and `prompts`."""
_WITHOUT = ("33_mrag_retrievers", "36_mrag_choice_reader", "37_mrag_human_panel")
"""Notebooks that need no `models`: searches, labelled answers, human answers."""


def invalid_value_reason(name: str, value: Any, default: Any, notebook: str = "") -> str:
    """Return why a parameter cannot be `value` if a notebook has `default`; "" if it can. An
    example is "is 0; expected a whole number from 1 on.".
    """
    # Any: parameters are of any type
    if name in _ALL and not isinstance(default, dict):
        fits = value is None or _is_count(value)
        return "" if fits else f"is {value!r}; expected a whole number from 1 on, or null for all."
    if name in ("datasets", "prompts") and not isinstance(default, dict):
        named = value and isinstance(value, list) and all(isinstance(each, str) for each in value)
        fits = value is None or bool(named)
        return "" if fits else f"is {value!r}; expected a list of names, or null for all."
    if _counts(default) and isinstance(value, list):
        return "" if _counts(value) else _no_counts(name, value, default)
    if name in _FROM_ONE and type(value) is int and value < 1:
        return f"is {value}; expected a whole number from 1 on."
    if name in _FROM_NOUGHT and isinstance(value, int | float) and not 0 <= value < math.inf:
        return f"is {value}; expected a number from 0 on."
    if name in _ASKED and value == [] and default and not _goes_without(name, notebook):
        others = f" (those that need none: {', '.join(_WITHOUT)})" if name == "models" else ""
        return (
            f"is [], but {notebook} takes one at least, as in {name} = {default!r}: it shows"
            f" {_ASKED[name]}, and nothing else{others}."
        )
    if _fits(name, value, default):
        return ""
    if name in ENTRIES and isinstance(value, dict):
        return (
            f"is {value!r}, which names no model; expected a name, as in {name} = {default!r}, or"
            " {model: <name>, <option>: …}."
        )
    who = f"{notebook} expects" if notebook else "expected is"
    list_hint = (
        " In YAML each item of a list begins with '- '." if isinstance(default, list) else ""
    )
    if _counts(default):
        list_hint = f" Its items are {_COUNTS}.{list_hint}"
    mapping_hint = (
        f" In YAML: {name}: {{{next(iter(default))}: …}}." if isinstance(default, dict) else ""
    )
    return (
        f"is {value!r} ({type(value).__name__}), but {who} {type(default).__name__}, as in"
        f" {name} = {default!r}.{list_hint}{mapping_hint}"
    )


def _goes_without(name: str, notebook: str) -> bool:
    return name == "models" and notebook.removesuffix(".ipynb") in _WITHOUT


def invalid_clue_position(values: Mapping[str, Any]) -> str:
    """Return why `clue_position` is out of range for the smallest of `ks` above 1; "" if it is in
    range or not set.
    """
    among = [k for k in values.get("ks", ()) if k > 1]
    place = values.get("clue_position")
    if place is None or not among or -min(among) <= place < min(among):
        return ""
    last = min(among) - 1
    return (
        f"clue_position is {place}; expected a whole number from {-min(among)} to {last}, as a"
        f" clue is shown among {min(among)} images (ks): 0 is the first place, -1 the last."
    )


_COUNTS = "whole numbers from 1 on, each once, one at least"


def _no_counts(name: str, value: list[Any], default: Any) -> str:
    """Why a list is none of numbers such as `ks` are."""
    wrong = [each for each in value if not _is_count(each)]
    what = f", and {wrong[0]!r} is no whole number from 1 on" if wrong else ""
    if value and not wrong:
        twice = next(each for each, times in Counter(value).items() if times > 1)
        what = f", and {twice} stands there more than once"
    return f"is {value!r}{what}. Its items are {_COUNTS}, as in {name} = {default!r}."


def _fits(name: str, value: Any, default: Any) -> bool:
    if isinstance(value, dict):
        if name in ENTRIES:
            return isinstance(value.get("model"), str)
        return name in _SOURCES or isinstance(default, dict) or name == "decoding"
    if name in ENTRIES and isinstance(value, str):
        return True
    if isinstance(value, bool) or isinstance(default, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    if isinstance(default, float):
        return isinstance(value, int | float)
    return isinstance(value, type(default))


def _counts(value: Any) -> bool:
    """Whether a parameter is a list of numbers from 1 on, as `ks` are."""
    whole = isinstance(value, list) and value and all(map(_is_count, value))
    return bool(whole) and len(set(value)) == len(value)


def _is_count(value: Any) -> bool:
    return type(value) is int and value > 0
