"""Parameter files: flat YAML whose names and value types are declared by notebooks."""

from __future__ import annotations

import ast
import json
import os
from collections import ChainMap
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from vrag_kit.config import Decoding, StrictModel, read_settings
from vrag_kit.errors import VragError, did_you_mean
from vrag_kit.files import project_path
from vrag_kit.types import Json
from vrag_kit.workspace import Hardware

SERVES = "notebooks"
"""Reserved key of a parameter file that lists its notebooks."""
PARTIAL: dict[str, type[StrictModel]] = {"decoding": Decoding, "hardware": Hardware}
"""Parameters that may be given in part, with their settings."""
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
    """Read a flat YAML file of parameters; raises `VragError` when it is not YAML, or not flat, and
    `OSError` when it cannot be read.
    """
    try:
        values = yaml.load(path.read_text(encoding="utf-8"), _UniqueNames) or {}  # a SafeLoader
    except UnicodeDecodeError as error:
        raise VragError(f"{path}: byte {error.start} is not UTF-8 text.") from error
    except yaml.YAMLError as error:
        raise VragError(f"{path}: not YAML ({' '.join(str(error).split())}).") from error
    if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
        raise VragError(f"{path}: expected lines 'name: value', found a {type(values).__name__}.")
    return values


def read_cells(notebook: Path) -> list[Json]:
    """Read a notebook's cells as plain JSON, each with its source as one text: nbformat takes
    seconds to import. Raises `OSError`, and `ValueError` for a file that is not a notebook.
    """
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        return [{**cell, "source": "".join(cell["source"])} for cell in cells]
    except (KeyError, TypeError) as error:
        raise ValueError(f"{notebook}: not a notebook of format 4 ({error})") from error


def cell_tags(cell: Json) -> set[str]:
    """Return the tags of a cell."""
    return set(cell["metadata"].get("tags", []))


def declared_parameters(notebook: Path) -> dict[str, Any]:
    """Return the parameters that a notebook's first cell with the tag "parameters" assigns, with
    their defaults, in order; empty without such a cell. Raises `VragError` for a value that is no
    literal, and for invalid Python.
    """
    try:
        tagged = [cell for cell in read_cells(notebook) if "parameters" in cell_tags(cell)]
        statements = ast.parse(tagged[0]["source"]).body if tagged else []
        assigned = [each for each in statements if isinstance(each, ast.Assign)]
        return {ast.unparse(each.targets[0]): ast.literal_eval(each.value) for each in assigned}
    except (ValueError, SyntaxError) as error:
        raise VragError(f"{notebook}: its parameters cannot be read ({error}).") from error


def split_by_notebook(
    notebooks: Sequence[Path], values: Values, where: Path
) -> dict[Path, dict[str, Any]]:
    """Return the part of `values` that each notebook declares.

    A value replaces the notebook's default, a mapping as a whole, as in papermill. Raises
    `VragError` with all faults, one per line: names that no notebook declares, with the nearest
    that is declared; unknown and missing keys of a mapping; and values of another type than the
    default.
    """
    declared = {notebook: declared_parameters(notebook) for notebook in notebooks}
    faults = _unknown(values, {SERVES}.union(*declared.values()))
    for name, value in values.items():
        defaults = [names[name] for names in declared.values() if name in names]
        faults += [_misfit(name, value, default) for default in defaults]
        if isinstance(value, Mapping):
            faults += _key_faults(name, value, defaults)
    if found := dict.fromkeys(filter(None, faults)):
        raise VragError("\n".join(f"{where}: {fault}" for fault in found))
    return {
        notebook: {name: value for name, value in values.items() if name in names}
        for notebook, names in declared.items()
    }


def entries(values: Values, above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (name, entry) of each text, and of each mapping with a "model", that parameters hold at
    any depth. A name in a mapping is "web_search.rewriter".
    """
    for name, value in values.items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Mapping) and "model" not in each:
                yield from entries(each, f"{above}{name}.")
            elif isinstance(each, str | Mapping):
                yield f"{above}{name}", each


def unwritable_folders(folders: Collection[tuple[str, str]]) -> list[str]:
    """Return one line for each (parameter, folder) that cannot be written."""
    lines = []
    for name, folder in folders:
        parent = project_path(folder)
        while not os.path.lexists(parent):
            parent = parent.parent
        if not (parent.is_dir() and os.access(parent, os.W_OK)):
            lines.append(f"{name} is {folder!r}; expected a folder, but {parent} takes no file.")
    return lines


def _unknown(given: Values, known: Collection[str]) -> list[str]:
    """A fault for each unknown name."""
    listed = ", ".join(sorted(known))
    return [
        f"no notebook declares {name!r}.{did_you_mean(name, known)} Declared are: {listed}."
        for name in sorted(given.keys() - set(known))
    ]


def _misfit(name: str, value: Any, default: Any) -> str:
    """Why a value does not have the type of a default; "" if it has. A model or data may be a name
    or a mapping, and null means all.
    """
    mapping = isinstance(value, Mapping) and isinstance(default, str | Mapping)
    if value is None or mapping or (isinstance(default, Mapping) and "model" in default):
        return ""
    fits = type(value) is type(default) or (type(default) is float and type(value) is int)
    expected = f"a {type(default).__name__}"
    if default is None:
        fits = _is_count(value) or (isinstance(value, list) and bool(value))
        expected = "a number from 1 on, names, or null for all"
    elif _is_count(default) and not name.endswith("_index"):
        fits, expected = _is_count(value), "a whole number from 1 on"
    elif _are_counts(default):
        fits, expected = _are_counts(value), "a list of different whole numbers from 1 on"
    return "" if fits else f"{name} is {value!r}; expected {expected}, such as {default!r}."


def _is_count(value: object) -> bool:
    return type(value) is int and value > 0


def _are_counts(value: object) -> bool:
    """Whether a value is a list of different numbers from 1 on, as `ks` are."""
    if not isinstance(value, list) or not value:
        return False
    return all(map(_is_count, value)) and len(set(value)) == len(value)


def _key_faults(name: str, given: Values, defaults: Sequence[Any]) -> list[str]:
    """The faults in a mapping's keys, which must be those of the notebooks' defaults, where these
    are mappings.
    """
    if name in PARTIAL:
        try:
            read_settings(PARTIAL[name], given, name)
        except VragError as error:
            return [str(error)]
        return []
    needed = ChainMap(*(dict(each) for each in defaults if isinstance(each, Mapping)))
    if not needed or "model" in needed:
        return []
    faults = _unknown(given, needed)
    for key, default in needed.items():
        if key in given:
            faults.append(_misfit(key, given[key], default))
        else:
            faults.append(f"lacks {key!r}; expected all of {', '.join(needed)}.")
    return [f"{name}: {fault}" for fault in faults if fault]
