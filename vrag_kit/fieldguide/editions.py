"""What parameters name that is no drawn edition: a folder, or a data set of the hub."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.workspace import path as project_path


def rows_of(parameter: str, name: str, drawn: Collection[str]) -> Path | str:
    """The folder that `name` names, as parameters give paths; else the name itself, as
    one of the hub ("<owner>/<name>"), which loading looks up.

    Raises `VragError` for a name that can be neither, as a mistyped one of the `drawn`
    editions; `parameter` begins the message.
    """
    there = project_path(name) if name else None
    if there is not None and there.is_dir():
        return there
    if "/" in name:
        return name
    near = get_close_matches(name, drawn, 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise VragError(
        f"{parameter} is {name!r}; expected {' or '.join(map(repr, drawn))}, a folder of rows, or a"
        f" data set of the hub (<owner>/<name>).{hint}"
    )
