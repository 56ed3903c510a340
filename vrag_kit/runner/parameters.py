"""Parameter files: flat YAML, each name declared by at least one notebook, each value
of the declared type.
"""

from __future__ import annotations

import ast
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from papermill import inspect_notebook

from vrag_kit.errors import VragError

_ENTRIES = ("answerer", "filter_model", "judge", "retriever", "text_retriever", "writer")
"""Parameters that name a model, and so may be a mapping with "model" and options."""


class _UniqueNames(yaml.SafeLoader):
    """YAML in which a name stands once in a mapping."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping; raises an error that yaml marks with its line for a name that is
        given twice.
        """
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"{key.value!r} is given twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_parameters(path: Path) -> dict[str, Any]:
    """Read a flat YAML file of parameters; raises `VragError` when it is missing, not
    YAML, or not flat.
    """
    try:
        values = yaml.load(path.read_text(encoding="utf-8"), _UniqueNames) or {}  # a SafeLoader
    except IsADirectoryError as error:
        raise VragError(f"{path}: this is a folder; expected a YAML file of parameters.") from error
    except UnicodeDecodeError as error:
        raise VragError(
            f"{path}: not UTF-8 text ({error.reason} at byte {error.start}). Save it as UTF-8."
        ) from error
    except FileNotFoundError as error:
        near = (
            sorted(str(file) for file in path.parent.glob("*.yaml")) if path.parent.is_dir() else []
        )
        raise VragError(
            f"{path}: no such parameter"
            f" file.{' Found here: ' + ', '.join(near) + '.' if near else ''}"
        ) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise VragError(
            f"{path}{f' line {mark.line + 1}' if mark else ''}: not YAML"
            f" ({getattr(error, 'problem', None) or error}); expected lines 'name: value'. Check"
            " the indentation."
        ) from error
    if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
        raise VragError(f"{path}: expected lines 'name: value', found a {type(values).__name__}.")
    return values


def declared(notebook: Path) -> dict[str, Any]:
    """The parameters a notebook declares in its `parameters` cell, with their defaults."""
    try:
        found = inspect_notebook(str(notebook))
    except ValueError as error:
        raise VragError(
            f"{notebook}: its metadata names no kernel. Open it in JupyterLab once and save it."
        ) from error
    return {name: ast.literal_eval(about["default"]) for name, about in found.items()}


def subsets(
    notebooks: list[Path], values: dict[str, Any], where: Path
) -> dict[Path, dict[str, Any]]:
    """The part of `values` that each notebook declares.

    Raises `VragError` for a name that no notebook declares, with the names that are,
    and for a value of another type than the notebook's default.
    """
    defaults = {notebook: declared(notebook) for notebook in notebooks}
    known = sorted({name for names in defaults.values() for name in names})
    if unknown := sorted(set(values) - set(known)):
        near = [
            f" Did you mean {match[0]!r}?"
            for name in unknown
            if (match := get_close_matches(name, known, 1))
        ]
        raise VragError(
            f"{where}: no notebook declares {', '.join(map(repr, unknown))}.{''.join(near)}"
            f" Declared are: {', '.join(known)}."
        )
    for notebook, names in defaults.items():
        for name in names.keys() & values.keys():
            if not _fits(name, values[name], names[name]):
                raise VragError(
                    f"{where}: {name} is {values[name]!r} ({type(values[name]).__name__}), but"
                    f" {notebook.name} expects {type(names[name]).__name__}, as in {name} ="
                    f" {names[name]!r}."
                    + (
                        " In YAML each item of a list begins with '- '."
                        if isinstance(names[name], list)
                        else ""
                    )
                )
    return {
        notebook: {name: value for name, value in values.items() if name in names}
        for notebook, names in defaults.items()
    }


def _fits(name: str, value: Any, default: Any) -> bool:
    if isinstance(value, dict) and name in _ENTRIES:
        return isinstance(value.get("model"), str)
    if isinstance(value, dict) and name == "decoding":
        return True  # sampling fields, which the model's loader reads
    if isinstance(value, bool) or isinstance(default, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    return (
        isinstance(value, int)
        if isinstance(default, float) and isinstance(value, int)
        else isinstance(value, type(default))
    )
