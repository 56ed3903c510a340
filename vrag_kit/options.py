"""Entries of models in parameters: a name, or a name with options."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from vrag_kit.config import unknown_option
from vrag_kit.errors import VragError, short_repr
from vrag_kit.own_classes import custom_spec
from vrag_kit.plain import Json
from vrag_kit.spelling import did_you_mean
from vrag_kit.workspace import path as project_path
from vrag_kit.workspace import shipped_models

Entry = str | Mapping[str, Any]  # each option has a type of its own, which its reader checks
"""A model as parameters name it: "<name>", or {"model": "<name>", option: value, …}."""


def split_entry(entry: object, where: str) -> tuple[str, Json]:
    """Return (model, options) of an entry; raises `VragError`, beginning with `where`
    ("retriever"), for an entry without a model.
    """
    if isinstance(entry, str):
        return entry, {}
    if not isinstance(entry, Mapping) or not isinstance(entry.get("model"), str):
        found = list(entry) if isinstance(entry, Mapping) else entry  # values may be secret
        raise VragError(
            f'{where}: found {found!r}; expected a name, or a mapping with "model" and options.'
        )
    return entry["model"], {str(name): entry[name] for name in entry if name != "model"}


def read_entry(entry: object, allowed: Collection[str], where: str) -> tuple[str, Json]:
    """Return (model, options) of an entry, as `split_entry`.

    Raises `VragError` also for an option that is not among `allowed`.
    """
    model, options = split_entry(entry, where)
    if unknown := sorted(set(options) - set(allowed)):
        raise unknown_option(f"{where} {model!r}", unknown[0], allowed)
    return model, options


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
    listed = "".join(f"{word!r}, " for word in words if word)
    raise VragError(
        f"{what} is {entry!r}; expected {listed}the name of a model that comes with the kit, a"
        f" folder, <owner>/<name> on the hub, or <model>@<endpoint>.{hint}"
    )
