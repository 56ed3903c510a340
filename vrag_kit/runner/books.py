"""Fast reading of notebooks as plain JSON.

nbformat validates each against a schema, with libraries that take seconds to import.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vrag_kit.types import Json


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a notebook."""

    cell_type: str  # "code", "markdown" or "raw"
    source: str
    metadata: Json
    outputs: list[Json]  # as in the file
    execution_count: int | None  # the number in brackets, of one that was run

    @property
    def tags(self) -> set[str]:
        """The cell's tags."""
        return set(self.metadata.get("tags", []))


@dataclass(frozen=True, slots=True)
class Notebook:
    """The cells and metadata of a notebook."""

    cells: list[Cell]
    metadata: Json


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that a notebook declares."""

    name: str
    default: Any  # parameters are of any type
    meaning: str  # the comment behind it


def read_notebook(path: Path) -> Notebook:
    """Read a notebook. Raises `OSError`, and `ValueError` for a file that is not a notebook of
    format 4, which JupyterLab writes.
    """
    found = json.loads(path.read_text(encoding="utf-8"))
    try:
        if found["nbformat"] != 4:
            raise ValueError(f"{path}: no notebook of format 4; save it in JupyterLab")
        return Notebook([_cell(each) for each in found["cells"]], found["metadata"])
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: a notebook without its {error}") from error


def _cell(source: Json) -> Cell:
    text, outputs = source["source"], source.get("outputs", [])
    text = "".join(text) if isinstance(text, list) else text
    count = source.get("execution_count")
    return Cell(source["cell_type"], text, source["metadata"], outputs, count)


def parse_parameters_cell(book: Notebook) -> Iterator[Parameter]:
    """Yield the parameters that the first cell with the tag "parameters" assigns, in order; nothing
    without such a cell. Raises `ValueError` for a value that is no literal, and for invalid Python.
    """
    source = next((cell.source for cell in book.cells if "parameters" in cell.tags), "")
    lines = source.split("\n")
    try:
        statements = ast.parse(source).body
    except SyntaxError as error:
        raise ValueError(f"its parameters, line {error.lineno}: {error.msg}") from error
    for each in statements:
        targets = each.targets if isinstance(each, ast.Assign) else []
        if isinstance(each, ast.AnnAssign):
            targets = [each.target]
        value = each.value if isinstance(each, ast.Assign | ast.AnnAssign) else None
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if value is None or not names:
            continue
        try:
            default = ast.literal_eval(value)
        except ValueError as error:
            found = ast.unparse(value)
            words = f"its parameter {names[0]} is {found}; expected a plain value, such as 3"
            raise ValueError(words) from error
        behind = lines[(each.end_lineno or 1) - 1].encode()[each.end_col_offset :].decode()
        meaning = behind.partition("#")[2].strip()
        for name in names:
            yield Parameter(name, default, meaning)


def has_kernel(metadata: Mapping[str, Any]) -> bool:
    """Return whether a notebook's metadata name its kernel and its language."""
    kernel = metadata.get("kernelspec", {})
    language = metadata.get("language_info", {}).get("name") or kernel.get("language")
    return bool(kernel.get("name") and language)
