"""Where things are: relative paths in parameters start at the project's root.

So they mean the same wherever a notebook's kernel was started.
"""

from __future__ import annotations

from pathlib import Path


def project_root() -> Path:
    """The nearest folder, from the current one upward, that holds `notebooks` and
    `params`; else the current folder.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "notebooks").is_dir() and (folder / "params").is_dir():
            return folder
    return here


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
