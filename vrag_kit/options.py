"""Entries of models in parameters: a name, or a name with options."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from vrag_kit.errors import VragError, short_repr
from vrag_kit.own_classes import custom_spec
from vrag_kit.plain import Json
from vrag_kit.spelling import did_you_mean
from vrag_kit.workspace import path as project_path
from vrag_kit.workspace import shipped_models

Entry = str | Mapping[str, Any]  # each option has a type of its own, which its reader checks
"""A model as parameters name it: "<name>", or {"model": "<name>", option: value, …}."""


def read_entry(entry: object, allowed: Collection[str], where: str) -> tuple[str, Json]:
    """Return (model, options) of an entry; messages begin with `where` ("retriever").

    Raises `VragError` for an entry without a model, and for an option that is not among `allowed`.
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


def check_list(entries: object, what: str) -> None:
    """Raise `VragError` for a single name, mapping or object where a list is expected. The message
    begins with `what` ("models").
    """
    if isinstance(entries, str | Mapping) or not isinstance(entries, Iterable):
        shown = short_repr(entries)
        raise VragError(f"{what} is {shown}; expected a list, such as [{shown}].")


def check_choice(entry: object, words: Collection[str], what: str) -> None:
    """Raise `VragError` for a single word that is neither one of `words` nor a local model. `words`
    are values that name no model. Such a word is a typo, and no hub is contacted.
    """
    if not isinstance(entry, str) or set(entry) & set("/@\\") or custom_spec(entry):
        return
    if entry in words or project_path(entry).is_dir():
        return
    hint = did_you_mean(entry, [*words, *shipped_models()])
    told = "".join(f"{word!r}, " for word in words if word)
    raise VragError(
        f"{what} is {entry!r}; expected {told}the name of a model that comes with the kit, a"
        f" folder, <owner>/<name> on the hub, or <model>@<endpoint>.{hint}"
    )
