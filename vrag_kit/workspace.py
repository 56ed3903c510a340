"""Where things are: relative paths in parameters start at the project's root.

So they mean the same wherever a notebook's kernel was started.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


def project_root() -> Path:
    """The nearest folder, from the current one upward, that holds `notebooks` and
    `params`; else the current folder.
    """
    return _project_of(Path.cwd()) or Path.cwd()


def _project_of(place: Path) -> Path | None:
    for folder in (place, *place.parents):
        if (folder / "notebooks").is_dir() and (folder / "params").is_dir():
            return folder
    return None


def enter_project(files: Sequence[Path]) -> list[Path]:
    """Go to the project's root, that of the first file where the current folder is in no
    project; returns the files as they are named from there. They may have been given from
    the current folder or from the root, and so commands work in any folder.
    """
    root = _project_of(Path.cwd())
    found = []
    for file in files:
        here = file if root is None or file.exists() else root / file
        place = here if here.exists() else file
        found.append(Path(os.path.normpath(place.absolute())))
    if root is None and found:
        root = _project_of(found[0].parent)
    os.chdir(root or Path.cwd())
    return [Path(shown(file)) for file in found]


_WEIGHTS = Path(__file__).parent / "fieldguide" / "weights"


def path(name: str) -> Path:
    """A path given in a parameter: absolute or below "~" as it is, otherwise from the
    project's root; and the name of a model that comes with the kit, such as
    "field-guide-vlm-few", stands for its folder.
    """
    there = project_root() / Path(name).expanduser()
    bundled = _WEIGHTS / name
    ours = name and "/" not in name and bundled.is_dir() and not there.exists()
    return bundled if ours else there


def own_models() -> list[str]:
    """The names of the models that come with the kit."""
    return sorted(folder.name for folder in _WEIGHTS.iterdir() if folder.is_dir())


def shown(place: Path) -> str:
    """A path as parameters give it: from the project's root where it lies below that."""
    absolute = place.absolute()
    root = project_root()
    return str(absolute.relative_to(root) if absolute.is_relative_to(root) else place)


def named_from_project(part: str) -> str:
    """A path as it is told to others: from the project, or by its file alone; what is no
    absolute path stays.
    """
    place = Path(part)
    if not place.is_absolute():
        return part
    told = shown(place)
    return place.name if Path(told).is_absolute() else told
