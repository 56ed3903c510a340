"""How to get a file again that is missing or damaged: fetched, or drawn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Self

_GUIDE, _EDITION = "guide.json", "edition.json"
"""What drawing leaves in the folder of a guide, and of another edition."""


class Place(str):
    """Where a row stands, in words that need not tell the whole path of its file."""

    __slots__ = ("file",)
    file: Path

    def __new__(cls, file: Path, words: str) -> Self:
        """A text like any other, which knows the file."""
        place = super().__new__(cls, words)
        place.file = file
        return place

    def __reduce__(self) -> tuple[type[Place], tuple[Path, str]]:
        """What a copy, or another process, makes it of."""
        return Place, (self.file, str(self))


def also(where: str, words: str) -> str:
    """The same place with more words behind it, as in "a.parquet row 3 (id 7)"."""
    said = f"{where} {words}"
    return Place(where.file, said) if isinstance(where, Place) else said


def get_again(where: Path | str, fetch: str) -> str:
    """What to do about a file: `fetch`, or where it lies in a drawn edition, how that is
    drawn again. `where` is its path, perhaps with words behind it, or a `Place` in it.
    """
    path = Path(where.file if isinstance(where, Place) else where)
    for folder in (path, *path.parents):
        if command := _drawn_by(folder):
            return f"It was drawn: remove {folder} and run `{command} {folder}`."
    return fetch


def is_drawn(where: Path | str) -> bool:
    """Whether a file lies in a drawn edition; `where` as in `get_again`."""
    path = Path(where.file if isinstance(where, Place) else where)
    return any(_drawn_by(folder) for folder in (path, *path.parents))


def _drawn_by(folder: Path) -> str:
    """What is typed to draw what lies in a folder, but for the folder; "" where it was
    not drawn.
    """
    for name in (_GUIDE, _EDITION):
        try:
            told = json.loads((folder / name).read_text(encoding="utf-8"))
            if "drawn_by" in told:
                edition = told["edition"] if name == _GUIDE else "…"
                return str(told.get("again") or f"vrag draw {edition}")
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return ""
