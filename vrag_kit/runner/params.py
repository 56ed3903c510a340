"""Parameter files: flat YAML whose names and value types are declared by notebooks."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from vrag_kit.config import Decoding, Hardware
from vrag_kit.errors import VragError, did_you_mean
from vrag_kit.runner.books import parse_parameters_cell, read_notebook
from vrag_kit.workspace import path as project_path

SERVES = "notebooks"
"""Reserved key of a parameter file that lists its notebooks."""
PARTIAL = {"decoding": Decoding().model_dump(), "hardware": Hardware().model_dump()}
"""Parameters that may be given in part → their keys with defaults."""
_NAMED = 3
"""Maximum number of notebooks named if more declare a parameter."""
Values = Mapping[str, Any]
"""Parameters by name."""


class _UniqueNames(yaml.SafeLoader):
    """A YAML loader that rejects duplicate keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Construct a mapping; raises a YAML error with the line of a duplicate key."""
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"{key.value!r} is given twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_parameters(path: Path) -> dict[str, Any]:
    """Read a flat YAML file of parameters; raises `VragError` when it cannot be read, is not YAML,
    or is not flat.
    """
    if path.suffix == ".ipynb":
        raise VragError(
            f"{path}: this is a notebook; expected a YAML file of parameters, such as one with the"
            f" line `{SERVES}: [{path.stem}]`."
        )
    try:
        values = yaml.load(path.read_text(encoding="utf-8"), _UniqueNames) or {}  # a SafeLoader
    except OSError as error:
        near = ", ".join(sorted(str(file) for file in path.parent.glob("*.yaml"))) or "no other"
        reason = "this is a folder" if path.is_dir() else f"no such parameter file; found {near}"
        raise VragError(f"{path}: {reason}; expected a YAML file of parameters.") from error
    except UnicodeDecodeError as error:
        raise VragError(
            f"{path}: byte {error.start} is not UTF-8 text; save it as UTF-8."
        ) from error
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        expected = "lines 'name: value' with even indentation"
        raise VragError(f"{path}: not YAML ({reason}); expected {expected}.") from error
    if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
        raise VragError(f"{path}: expected lines 'name: value', found a {type(values).__name__}.")
    return values


def declared_parameters(notebook: Path) -> dict[str, Any]:
    """Return the parameters that a notebook declares in its `parameters` cell, with defaults."""
    try:
        return parse_parameters_cell(read_notebook(notebook))
    except ValueError as error:
        raise VragError(f"{notebook}: cannot be run as it is ({error}).") from error


def split_by_notebook(
    notebooks: Sequence[Path], values: Values, where: Path, others: Sequence[Path] = ()
) -> dict[Path, dict[str, Any]]:
    """Return the part of `values` that each notebook declares.

    A value replaces the notebook's default, a mapping as a whole, as in papermill. Raises
    `VragError` with all faults, one per line: names that no notebook declares, with the nearest
    that is declared, or with the notebooks among `others` that declare them; unknown and missing
    keys of a mapping; and values of another type than the default.
    """
    declared = {notebook: declared_parameters(notebook) for notebook in notebooks}
    faults = _unknown(values, declared, others)
    for notebook, names in declared.items():
        for name in names.keys() & values.keys():
            if reason := _misfit(name, values[name], names[name], f"{notebook.stem} expects"):
                faults.append(f"{name} {reason}")
    for name, value in values.items():
        if isinstance(value, Mapping):
            faults += _wrong_keys(name, value, declared, others)
    if faults:
        raise VragError("\n".join(f"{where}: {fault}" for fault in dict.fromkeys(faults)))
    return {
        notebook: {name: value for name, value in values.items() if name in names}
        for notebook, names in declared.items()
    }


def unwritable_folders(folders: Collection[tuple[str, str]]) -> list[str]:
    """Return one line for each (parameter, folder) that cannot be written. A file is written on
    trial in the nearest parent that exists, and removed.
    """
    lines = []
    for name, folder in folders:
        parent = project_path(folder)
        while not os.path.lexists(parent):
            parent = parent.parent
        try:
            with tempfile.TemporaryFile(dir=parent):
                pass
        except OSError as error:
            reason = f"{parent} takes no file ({error.strerror})"
            lines.append(f"{name} is {folder!r}; expected a folder to write to, but {reason}.")
    return lines


def _misfit(name: str, value: Any, default: Any, expects: str) -> str:
    """Why a value does not have the type of a default, which it may have in another shape: a model
    or data may be a name or a mapping, and null means all; "" if it fits.
    """
    such_as = f"such as {name} = {default!r}"
    if value is None or (isinstance(value, Mapping) and isinstance(default, str | Mapping)):
        return ""
    an_entry = isinstance(default, Mapping) and "model" in default
    if an_entry or (default is None and _is_count(value)):
        return ""
    if default is None:
        named = isinstance(value, list) and value
        return (
            "" if named else f"is {value!r}; expected a number from 1 on or names, or null for all."
        )
    if _is_count(default) and not name.endswith("_index") and not _is_count(value):
        return f"is {value!r}; {expects} a whole number from 1 on, {such_as}."
    if _are_counts(default) and not _are_counts(value):
        return f"is {value!r}; {expects} a list of different whole numbers from 1 on, {such_as}."
    number = type(default) is float and type(value) is int
    if type(value) is type(default) or number:
        return ""
    return f"is {value!r}; {expects} a {type(default).__name__}, {such_as}."


def _is_count(value: object) -> bool:
    return type(value) is int and value > 0


def _are_counts(value: object) -> bool:
    """Whether a value is a list of different numbers from 1 on, as `ks` are."""
    if not isinstance(value, list) or not value:
        return False
    return all(map(_is_count, value)) and len(set(value)) == len(value)


def _wrong_keys(
    name: str, given: Values, declared: Mapping[Path, Values], others: Sequence[Path]
) -> list[str]:
    """The faults in the keys of a mapping whose default is one too, and in their values."""
    needed: dict[str, Any] = {}
    for names in declared.values():
        needed |= names[name] if isinstance(names.get(name), Mapping) else {}
    if not needed or "model" in needed:
        return []
    needed = PARTIAL.get(name, needed)
    faults = _unknown(given, {Path(): needed}, others, within=name)
    for key, default in needed.items():
        if key in given and not (name in PARTIAL and default is None):
            reason = _misfit(key, given[key], default, "expected")
            faults += [f"{name}: {key} {reason}"] if reason else []
        elif key not in given and name not in PARTIAL:
            faults.append(f"{name} lacks {key!r}; expected all keys, as in {needed!r}.")
    return faults


def _unknown(
    values: Values, declared: Mapping[Path, Values], others: Sequence[Path], *, within: str = ""
) -> list[str]:
    """What to say of names that none of a file's notebooks declares, `within` a mapping."""
    known = sorted(set().union(*declared.values()))
    unknown = values.keys() - set(known)
    elsewhere: dict[str, list[str]] = {name: [] for name in sorted(unknown)}
    for notebook in others if unknown else ():
        names = declared_parameters(notebook)
        keys = names.get(within) if within else names
        for name in unknown & set(keys if isinstance(keys, Mapping) else ()):
            elsewhere[name].append(notebook.stem)
    faults = []
    for name, books in elsewhere.items():
        fault = f"no notebook declares {name!r}.{did_you_mean(name, [*known, SERVES])}"
        if books:
            more = f" and {len(books) - _NAMED} more" if len(books) > _NAMED else ""
            fault = (
                f"{name} is a parameter of {', '.join(books[:_NAMED])}{more}, which this file is"
                f" not for. Name it under `{SERVES}`, or remove the line."
            )
        elif not within:
            fault += f" Declared are: {', '.join(known)}."
        faults.append(f"{within}: {fault}" if within else fault)
    return faults
