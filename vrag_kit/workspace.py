"""Paths of the project: relative paths in parameters start at the project root.

They mean the same wherever a notebook's kernel was started.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


def project_root() -> Path:
    """Return the nearest folder, from the current one upward, that holds `notebooks` and `params`;
    else the current folder.
    """
    return _project_of(Path.cwd()) or Path.cwd()


def _project_of(place: Path) -> Path | None:
    for folder in (place, *place.parents):
        if (folder / "notebooks").is_dir() and (folder / "params").is_dir():
            return folder
    return None


def enter_project(files: Sequence[Path]) -> list[Path]:
    """Change to the project root, and return the files relative to it. Files may be given relative
    to the current folder or to the root, which lets commands work in any folder. Outside a project,
    the root is that of the first file.
    """
    root = _project_of(Path.cwd())
    if root is None and files:
        root = _project_of(files[0].absolute().parent)
    root = root or Path.cwd()
    found = []
    for file in files:
        place = root / file if not file.exists() and (root / file).exists() else file
        found.append(Path(os.path.normpath(place.absolute())))
    os.chdir(root)
    return [Path(display_path(file)) for file in found]


_WEIGHTS = Path(__file__).parent / "synthetic" / "weights"


def path(name: Path | str) -> Path:
    """Return the path that a parameter gives, relative to the project root unless absolute or below
    "~". The name of a model shipped with the kit, such as "field-guide-vlm-few", gives its folder.
    """
    there = project_root() / Path(name).expanduser()
    bundled = _WEIGHTS / name
    ours = name and "/" not in str(name) and bundled.is_dir() and not there.exists()
    return bundled if ours else there


def shipped_models() -> list[str]:
    """Return the names of the models shipped with the kit."""
    return sorted(folder.name for folder in _WEIGHTS.iterdir() if folder.is_dir())


def display_path(place: Path) -> str:
    """Return a path as parameters give it: relative to the project root if it lies below."""
    absolute = place.absolute()
    root = project_root()
    return str(absolute.relative_to(root) if absolute.is_relative_to(root) else place)


def portable_path(part: str) -> str:
    """Return a path for sharing: relative to the project, or the file name alone. Text that is not
    an absolute path is unchanged.
    """
    place = Path(part)
    if not place.is_absolute():
        return part
    told = display_path(place)
    return place.name if Path(told).is_absolute() else told
