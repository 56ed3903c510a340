"""Copies of a notebook that lie beside it and save the same figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path


def twins(names: Iterable[str], known: Mapping[str, Path]) -> dict[str, str]:
    """Name of a notebook that saves figures under another's name, and none under its own,
    as a copy of that other does → the other's; both in one folder, and among `known`.
    """
    found = {}
    for name in names:
        words = known[name].read_text(encoding="utf-8")
        if _quoted(name) in words:
            continue
        for other in known:
            beside = other != name and other.rpartition("/")[0] == name.rpartition("/")[0]
            if beside and _quoted(other) in words:
                found[name] = other
    return found


def _quoted(name: str) -> str:
    """How a notebook's file holds a name that its code puts in quotation marks."""
    return f'\\"{name}\\"'
