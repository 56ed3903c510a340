"""Stamps of the code that draws: what other code drew is drawn again, and nothing else.

A stamp is of a module and of all of the guide's that it imports, directly or not, as
Python understands them: other comments, docstrings and line breaks leave it as it is. So
what draws lies in modules of its own, apart from what opens, locks, tells and refuses.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

_GUIDE = Path(__file__).parent
_IMPORT = re.compile(r"^\s*from vrag_kit\.synthetic\.([\w.]+) import ([\w, ]*)", re.MULTILINE)


@cache
def generator_version(*modules: str) -> str:
    """The stamp of modules of the guide, such as "views" or "crag_mm/indexes"."""
    return source_hash(_GUIDE, modules)


def source_hash(guide: Path, modules: Sequence[str]) -> str:
    """The same, 16 hexadecimal digits, of the source that lies in the folder `guide`."""
    digest = hashlib.sha256()
    for file in imported_files(guide, modules):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        _drop_words(tree)
        digest.update(f"{file.relative_to(guide).as_posix()} {ast.dump(tree)}\n".encode())
    return digest.hexdigest()[:16]


def imported_files(guide: Path, modules: Sequence[str]) -> list[Path]:
    """The files of modules, and of all in `guide` that they import, directly or not."""
    found: set[Path] = set()
    todo = [_file(guide, module) for module in modules]
    while todo:
        file = todo.pop()
        if file not in found:
            found.add(file)
            todo += _imported(guide, file.read_text(encoding="utf-8"))
    return sorted(found)


def _imported(guide: Path, source: str) -> Iterator[Path]:
    """The files of the modules that a source imports, or imports names of."""
    for module, names in _IMPORT.findall(source):
        place = guide / module.replace(".", "/")
        within = [place / f"{name.strip()}.py" for name in names.split(",")]
        modules = [file for file in within if file.is_file()]
        yield from modules or [_file(guide, module.replace(".", "/"))]


def _file(guide: Path, module: str) -> Path:
    file = guide / f"{module}.py"
    return file if file.is_file() else guide / module / "__init__.py"


def _drop_words(block: ast.Module | ast.ClassDef | ast.FunctionDef) -> None:
    """Leave out texts that stand alone, and those of the blocks within."""
    block.body = [each for each in block.body if not _is_text(each)]
    for each in block.body:
        if isinstance(each, ast.ClassDef | ast.FunctionDef):
            _drop_words(each)


def _is_text(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
        return False
    return isinstance(statement.value.value, str)
