"""Entries of models in parameters: a name, or a name with options."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from vrag_kit.errors import VragError
from vrag_kit.plain import Json

Entry = str | Mapping[str, Any]  # each option has a type of its own, which its reader checks
"""A model as parameters name it: "<name>", or {"model": "<name>", option: value, …}."""


def read_entry(entry: Entry, allowed: Collection[str], where: str) -> tuple[str, Json]:
    """(model, options) of an entry; `where` ("retriever") begins the message.

    Raises `VragError` for an entry without a model, and for an option that is not among
    `allowed`.
    """
    if isinstance(entry, str):
        return entry, {}
    if not isinstance(entry, Mapping) or not isinstance(entry.get("model"), str):
        raise VragError(
            f'{where}: found {entry!r}, expected a name, or a mapping with "model" and options.'
        )
    options = {str(name): value for name, value in entry.items() if name != "model"}
    if unknown := sorted(set(options) - set(allowed)):
        raise VragError(
            f"{where} {entry['model']!r}: unknown option {unknown[0]!r}; expected"
            f" {', '.join(sorted(allowed)) or 'no options'}."
        )
    return entry["model"], options
