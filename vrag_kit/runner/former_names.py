"""How parameters that once stood alone are written now: as keys of one mapping; and what
there is in place of those that no notebook takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

_NOW = {
    "k_images": ("k", "image"),
    "k_texts": ("k", "text"),
    "votes": ("rules", "votes"),
    "confidence": ("rules", "confidence"),
    "drop_share": ("rules", "drop_share"),
    "claim_labels": ("labelling", "files"),
    "per_arm": ("labelling", "per_arm"),
    "labeller": ("labelling", "labeller"),
    "assessed_questions": ("assess", "questions"),
    "left_out": ("assess", "left_out"),
    "prompts": ("sweep", "prompts"),
    "swept_questions": ("sweep", "questions"),
    "as_printed": ("sweep", "as_printed"),
    "filter_model": ("coarse_filter", "filter_model"),
    "filter_wording": ("coarse_filter", "wording"),
    "position_ks": ("positions", "ks"),
    "position_draws": ("positions", "draws"),
    "evidence_ks": ("evidence", "ks"),
    "evidence_draws": ("evidence", "draws"),
    "largest_description": ("largest", "description"),
    "largest_clue_rate": ("largest", "clue_rate"),
    "seed": ("questions", "seed"),
}
"""Former name → the mapping, and the key in it."""
_ELSEWHERE = {
    "rubric": "a rubric is an option of its judge: judge: {model: <model>, rubric: <words>}.",
    "abstention": (
        "abstention is no parameter any more: CRAG-MM's answers are missing as in its authors'"
        " code, and 52 and 56 show the other readings beside it."
    ),
}
"""What no notebook takes as a parameter of that name → what there is instead."""


def former_names(values: Mapping[str, Any], known: set[str]) -> dict[str, str]:
    """Name that no notebook declares (any more) → how it is written now, as in "k_images,
    k_texts are written k: {image: 5, text: 5} now."; names of one mapping have one line.
    Only mappings among `known`, the names that are declared, take any.
    """
    # Any: parameters are of any type
    told = {name: _ELSEWHERE[name] for name in values if name in _ELSEWHERE.keys() - known}
    groups: dict[str, dict[str, str]] = {}
    for name in values:
        mapping, key = _NOW.get(name, ("", ""))
        if name not in known and mapping in known:
            groups.setdefault(mapping, {})[name] = key
    for mapping, names in groups.items():
        entry = {mapping: {key: values[name] for name, key in names.items()}}
        words = yaml.safe_dump(entry, default_flow_style=True, width=10_000, sort_keys=False)
        are = "is" if len(names) == 1 else "are"
        line = f"{', '.join(names)} {are} written {words.strip()[1:-1]} now."
        told |= dict.fromkeys(names, line)
    return told
