"""Entries of models in parameters: a name, or a name with options."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from vrag_kit.errors import VragError, short
from vrag_kit.own_classes import own_spec
from vrag_kit.plain import Json
from vrag_kit.workspace import own_models
from vrag_kit.workspace import path as project_path

Entry = str | Mapping[str, Any]  # each option has a type of its own, which its reader checks
"""A model as parameters name it: "<name>", or {"model": "<name>", option: value, …}."""


def read_entry(entry: object, allowed: Collection[str], where: str) -> tuple[str, Json]:
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


def check_list(entries: object, what: str) -> None:
    """Raise `VragError` for one name, mapping or object where a list of them is expected;
    `what` ("models") begins the message.
    """
    if isinstance(entries, str | Mapping) or not isinstance(entries, Iterable):
        shown = short(entries)
        raise VragError(f"{what} is {shown}; expected a list, such as [{shown}].")


def check_word(entry: object, words: Collection[str], what: str) -> None:
    """Raise `VragError` for a single word that is neither one of `words`, which name what
    is no model, nor a model that is here: it is mistyped, and no hub is asked for it.
    """
    if not isinstance(entry, str) or set(entry) & set("/@\\") or own_spec(entry):
        return
    if entry in words or project_path(entry).is_dir():
        return
    near = get_close_matches(entry, [*words, *own_models()], 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    told = "".join(f"{word!r}, " for word in words if word)
    raise VragError(
        f"{what} is {entry!r}; expected {told}the name of a model that comes with the kit, a"
        f" folder, <owner>/<name> on the hub, or <model>@<endpoint>.{hint}"
    )
