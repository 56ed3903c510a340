"""Fast reading of notebooks as plain JSON.

nbformat validates each against a schema, with libraries that take seconds to import.
"""

from __future__ import annotations

import ast
import json
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

    @property
    def tags(self) -> set[str]:
        """The cell's tags."""
        return set(self.metadata.get("tags", []))


@dataclass(frozen=True, slots=True)
class Notebook:
    """The cells and metadata of a notebook."""

    cells: list[Cell]
    metadata: Json


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
    text = "".join(source["source"])  # a text, or its lines
    return Cell(source["cell_type"], text, source["metadata"], source.get("outputs", []))


def parse_parameters_cell(book: Notebook) -> dict[str, Any]:
    """Return the parameters that the first cell with the tag "parameters" assigns, with their
    defaults, in order; empty without such a cell. Raises `ValueError` for a value that is no
    literal, and for invalid Python.
    """
    source = next((cell.source for cell in book.cells if "parameters" in cell.tags), "")
    try:
        statements = ast.parse(source).body
    except SyntaxError as error:
        raise ValueError(f"its parameters, line {error.lineno}: {error.msg}") from error
    found: dict[str, Any] = {}
    for each in statements:
        if isinstance(each, ast.Assign | ast.AnnAssign) and each.value is not None:
            target = each.target if isinstance(each, ast.AnnAssign) else each.targets[0]
            if isinstance(target, ast.Name):
                found[target.id] = _literal(target.id, each.value)
    return found


def _literal(name: str, value: ast.expr) -> Any:
    try:
        return ast.literal_eval(value)
    except ValueError as error:
        words = f"its parameter {name} is {ast.unparse(value)}; expected a plain value, such as 3"
        raise ValueError(words) from error
