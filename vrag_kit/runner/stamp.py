"""Fingerprints of finished runs, by which a rerun detects changes.

Python code counts by its syntax tree: comments, blank lines and formatting change nothing.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from itertools import chain
from modulefinder import ModuleFinder
from pathlib import Path
from typing import Any

from vrag_kit.config import add_project_to_path, custom_spec
from vrag_kit.files import project_path, project_root
from vrag_kit.runner.params import read_cells

_PACKAGE = Path(__file__).parents[1]
_NO_CODE = (".pyc", ".part", ".safetensors", ".md")
"""Suffixes of files of the package that its fingerprint leaves out."""
_LARGE = 64 * 1024 * 1024
"""Larger files, such as WebQA's 51 GB of images, are identified by size and time."""


def run_fingerprint(
    notebook: Path, parameters: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return hashes of a notebook's code and parameters, of the data that its settings name, and of
    its figures.
    """
    cells = [(cell["cell_type"], cell["source"]) for cell in read_cells(notebook)]
    code = json.dumps([cells, parameters, package_hash()], sort_keys=True, default=str)
    return {
        "code": hashlib.sha256(code.encode()).hexdigest(),
        "data": _data_fingerprints(settings),
        "figures": figure_hashes(notebook, settings),
    }


def figure_hashes(notebook: Path, settings: Mapping[str, Any]) -> dict[str, str]:
    """Hash every file in the notebook's figure folder that has its number."""
    root = project_path(settings.get("figures_dir", "figures"))
    folder = (root / notebook.relative_to(project_root() / "notebooks")).parent
    files = sorted(folder.glob(f"{notebook.stem[:2]}_*"))
    return {file.name: file_fingerprint(file) for file in files if file.is_file()}


@cache
def package_hash() -> str:
    """Hash the package's files, except weights and pages; computed once in a process."""
    files = [file for file in sorted(_PACKAGE.rglob("*.*")) if file.suffix not in _NO_CODE]
    prints = [(str(file.relative_to(_PACKAGE)), file_fingerprint(file)) for file in files]
    return hashlib.sha256(json.dumps(prints).encode()).hexdigest()


def _data_fingerprints(settings: Mapping[str, Any]) -> dict[str, str]:
    """What the files and folders that parameters name hold, and the modules with what they
    import of the project's; by convention a name that ends in `_dir` is written, not read.
    """
    keys = {}
    for name, value in settings.items():
        for text in [] if name.endswith("_dir") else texts(value):
            paths = [path for path in custom_files(text) or [project_path(text)] if path.exists()]
            if text and paths:
                keys[f"{name}: {text}"] = " ".join(map(_path_fingerprint, paths))
    return keys


def custom_files(entry: str) -> list[Path]:
    """List the file of the module that an entry names, and the project files that it imports.
    Indirect imports count, the kit's files do not; the list is empty without such a module.
    """
    spec = custom_spec(entry)
    if spec is None:
        return []
    module = spec.partition(":")[0]
    finder = ModuleFinder([str(project_root())], excludes=["vrag_kit"])
    add_project_to_path()
    files = set()
    with suppress(Exception):  # it imports the packages above the module, which may raise anything
        found = find_spec(module)
        files.add(found and found.origin)
    with suppress(ImportError, SyntaxError):  # an installed module, or one with errors
        finder.import_hook(module)
    files.update(each.__file__ for each in finder.modules.values())  # type: ignore[attr-defined]
    return sorted(Path(file) for file in files if file)


def texts(value: object) -> list[str]:
    """Return the texts in a parameter: itself, or those in its list or mapping."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return list(chain.from_iterable(map(texts, value)))
    return [value] if isinstance(value, str) else []


def _path_fingerprint(path: Path) -> str:
    """Of a file its content, of a folder names, sizes and times of its entries: an image
    overwritten in place deeper down goes unnoticed.
    """
    if path.is_file():
        return file_fingerprint(path)
    entries = []
    for entry in sorted(path.iterdir()):
        if not entry.name.startswith("."):
            state = entry.stat()
            entries.append((entry.name, state.st_mtime_ns, state.st_size))
    return hashlib.sha256(repr(entries).encode()).hexdigest()


def file_fingerprint(file: Path) -> str:
    """Return a hash of a file's content, of Python code its syntax tree; of a large file its size
    and time. Raises `OSError` if it cannot be read.
    """
    state = file.stat()
    if state.st_size > _LARGE:
        return f"{state.st_size} bytes of {state.st_mtime_ns}"
    content = file.read_bytes()
    if file.suffix == ".py":
        with suppress(SyntaxError, ValueError):
            content = ast.dump(ast.parse(content)).encode()
    return hashlib.sha256(content).hexdigest()
