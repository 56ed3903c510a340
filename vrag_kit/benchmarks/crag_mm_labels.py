"""CRAG-MM's label names, taken from the features in a parquet file, never from fixed numbers.

The single-turn and the multi-turn data number the same names differently.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from vrag_kit.errors import VragError, short_repr

NAMES = {
    "domain": (
        "animal",
        "other",
        "shopping",
        "book",
        "general object recognition",
        "local",
        "vehicle",
        "plants and gardening",
        "style and fashion",
        "food",
        "text understanding",
        "sports and games",
        "math and science",
    ),
    "query_category": (
        "simple-recognition",
        "simple-knowledge",
        "multi-hop",
        "comparison",
        "aggregation",
        "reasoning",
    ),
    "dynamism": ("static", "slow-changing", "fast-changing", "real-time"),
    "image_quality": ("normal", "low light", "blurred", "truncated", "occluded", "rotated"),
}
"""Column → its label names (from the multi-turn data card)."""


def label_names(metadata: Mapping[bytes, bytes] | None) -> dict[str, tuple[str, ...]]:
    """Map each column to its label names in numerical order, from the metadata of a parquet file
    that `datasets` wrote; columns without names are absent.
    """
    told = (metadata or {}).get(b"huggingface")
    found: dict[str, tuple[str, ...]] = {}
    try:
        features = json.loads(told or b"{}").get("info", {}).get("features", {})
    except (ValueError, AttributeError):
        return found
    _collect(features, "", found)
    return found


def read_label(column: str, value: object, names: Sequence[str] | None, where: str) -> str:
    """Return the name of a label, spelled as in `NAMES`; `value` is a number or a name.

    Raises `VragError`, which begins with `where`, for a number if the file has no names, a
    number out of range, and a name that is not in `NAMES`.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        value = _named(column, value, names, where)
    spelled = {_plain(name): name for name in NAMES[column]}
    if not isinstance(value, str) or _plain(value) not in spelled:
        raise VragError(
            f"{where}: {column} is {short_repr(value)}, an unknown label; expected one of"
            f" {', '.join(NAMES[column])}. `vrag check` lists all such rows."
        )
    return spelled[_plain(value)]


def _named(column: str, number: int, names: Sequence[str] | None, where: str) -> str:
    if names is None:
        raise VragError(
            f"{where}: {column} is the number {number}, and the file does not carry the names of"
            " its labels, which the single-turn and the multi-turn data number differently;"
            f" expected a ClassLabel, or a name. Fetch the hub's own parquet files: `vrag fetch"
            " crag-mm`."
        )
    if not 0 <= number < len(names):
        raise VragError(
            f"{where}: {column} is {number}, an unknown label; the file names {len(names)}:"
            f" {', '.join(names)}. Fetch it again: `vrag fetch crag-mm`."
        )
    return names[number]


def _plain(name: str) -> str:
    """A name without regard to case, "&" for "and", underscores and hyphens for spaces."""
    return " ".join(re.sub("[_-]", " ", name.replace("&", " and ")).casefold().split())


def _collect(feature: object, column: str, found: dict[str, tuple[str, ...]]) -> None:
    """Note the names of every ClassLabel in a feature, whatever it is nested in."""
    if isinstance(feature, list):
        for each in feature:
            _collect(each, column, found)
    if not isinstance(feature, dict):
        return
    names = feature.get("names")
    if feature.get("_type") == "ClassLabel" and isinstance(names, list):
        found[column] = tuple(map(str, names))
        return
    for key, value in feature.items():
        _collect(value, column if key == "feature" else key, found)
