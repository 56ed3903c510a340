"""Fingerprints of finished runs, by which a rerun detects changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from vrag_kit.custom import custom_files
from vrag_kit.runner.books import read_notebook
from vrag_kit.runner.copies import problems
from vrag_kit.runner.plan import notebook_name
from vrag_kit.workspace import path as project_path

_PACKAGE = Path(__file__).parents[1]
_SMALL = 64 * 1024 * 1024
"""Larger files, such as WebQA's 51 GB of images, are identified by size and time."""


def run_fingerprint(
    notebook: Path, parameters: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return hashes of a notebook's code and parameters, of the data that its settings name, and of
    its figures.
    """
    return {
        "code": _code_key(notebook, parameters),
        "data": _data_key(settings),
        "figures": figure_hashes(notebook, settings),
    }


def is_finished(
    notebook: Path, parameters: Mapping[str, Any], settings: Mapping[str, Any], copy: Path
) -> bool:
    """Return whether the run that left `copy` succeeded, and nothing has changed, including the
    copy. It is False if failed calls are to be retried.
    """
    if settings.get("hardware", {}).get("retry_failures") or not copy.is_file():
        return False
    try:
        note = json.loads(copy.with_suffix(".json").read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return False
    same = note == run_fingerprint(notebook, parameters, settings)
    return same and not problems(copy, notebook, parameters)


def figure_hashes(notebook: Path, settings: Mapping[str, Any]) -> dict[str, str]:
    """Hash every file in the notebook's figure folder that has its number."""
    root = project_path(settings.get("figures_dir", "figures"))
    folder = (root / notebook_name(notebook)).parent
    files = sorted(folder.glob(f"{notebook.stem[:2]}_*"))
    return {file.name: file_fingerprint(file) for file in files if file.is_file()}


def _code_key(notebook: Path, parameters: Mapping[str, Any]) -> str:
    cells = [(cell.cell_type, cell.source) for cell in read_notebook(notebook).cells]
    all_of_it = [cells, parameters, _kit_key()]
    return hashlib.sha256(json.dumps(all_of_it, sort_keys=True, default=str).encode()).hexdigest()


def package_hash() -> str:
    """Hash the package's files."""
    digest = hashlib.sha256()
    for file in sorted(_PACKAGE.rglob("*")):
        if file.is_file() and file.suffix not in (".pyc", ".part"):
            digest.update(file.relative_to(_PACKAGE).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()


_kit_key = cache(package_hash)
"""The same, once a process."""


def _data_key(settings: Mapping[str, Any]) -> dict[str, str]:
    """What the files and folders that parameters name hold, and the modules with what they
    import of the project's; by convention a name that ends in `_dir` is written, not read.
    """
    keys = {}
    for name, value in settings.items():
        if name.endswith("_dir"):
            continue
        for text in _texts(value):
            paths = [path for path in custom_files(text) or [project_path(text)] if path.exists()]
            if text and paths:
                keys[f"{name}: {text}"] = " ".join(_path_key(path) for path in paths)
    return keys


def _texts(value: object) -> list[str]:
    """The texts in a parameter: itself, or those in its list or mapping."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return _texts(list(value.values()))
    texts: list[str] = []
    if isinstance(value, list):
        for each in value:
            texts += _texts(each)
    return texts


def _path_key(path: Path) -> str:
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
    """Return the hash of a file, or the size and time of a large one."""
    state = file.stat()
    if state.st_size > _SMALL:
        return f"{state.st_size} bytes of {state.st_mtime_ns}"
    return hashlib.sha256(file.read_bytes()).hexdigest()
