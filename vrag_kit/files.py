"""Paths of the project, atomic file writes, exclusive folder locks, and safe joining of names.

Relative paths in parameters start at the project root, wherever a notebook's kernel was started. A
crash, a full disk or a second writer never leaves half a file. Names from data are joined to
folders by `safe_join` only.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from vrag_kit.errors import VragError
from vrag_kit.log import logger

_WEIGHTS = Path(__file__).parent / "synthetic" / "weights"


def project_root() -> Path:
    """Return the project of the current folder (`project_of`); else the current folder."""
    return project_of(Path.cwd()) or Path.cwd()


def project_of(place: Path) -> Path | None:
    """Return the nearest folder, from `place` up, that holds `notebooks` and `params`, if any."""
    for folder in (place, *place.parents):
        if (folder / "notebooks").is_dir() and (folder / "params").is_dir():
            return folder
    return None


def project_path(name: Path | str) -> Path:
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


def escapes_folder(name: str) -> bool:
    """Return whether a file name from data may lead outside the folder that it is joined to. Such a
    name is absolute, contains ".." as a part, or contains a backslash or NUL.
    """
    # for millions of names: no regular expression, and no split without two dots
    odd = name.startswith("/") or "\\" in name or "\0" in name
    return odd or (".." in name and ".." in name.split("/"))


def safe_join(folder: Path, name: str, where: str, *, links: bool = True) -> Path:
    """Return `folder / name` for a name from data. Raises `VragError`, beginning with `where`, if
    the name `escapes_folder`.

    Links in the folder are trusted by default, because a cache of the hub consists of them. With
    `links` false, for folders from strangers, a link that leads outside is refused too.
    """
    found = ""
    if escapes_folder(name):
        found = "points outside"
    elif not (links or Path(os.path.realpath(folder / name)).is_relative_to(folder.resolve())):
        found = "is a link that points outside"
    if found:
        raise VragError(f"{where}: {name!r} {found} {folder}; expected the name of a file in it.")
    return folder / name


def write_file(path: Path, content: str | bytes | Iterable[str]) -> None:
    """Write `content` (text as UTF-8, or pieces of text) to `path` atomically, creating its folder.

    An old file is replaced only when the new one is on the disk. Of concurrent writers (threads,
    processes, machines) one wins, whole. Raises `OSError`, which names `path`, if it cannot be
    written; no partial file is left.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # a process' number is the same in its threads, and in containers that share a disk
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with part.open("xb") as file:
            for piece in [content] if isinstance(content, str | bytes) else content:
                file.write(piece if isinstance(piece, bytes) else piece.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        error.filename = str(path)  # of a full disk Python names no file
        raise
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def lock_folder(folder: Path, *, name: str = ".lock") -> Iterator[None]:
    """Create `folder` and lock the file `name` in it; wait while another process holds it, and say
    so.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / name)
    try:
        held = lock.acquire(timeout=0.5)
    except Timeout:
        logger.info(f"waiting: another process works in {folder}")
        held = lock.acquire()
    with held:
        yield
