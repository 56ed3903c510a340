"""What parameters name that is no drawn edition: a folder, or a data set of the hub."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from vrag_kit.errors import VragError, did_you_mean
from vrag_kit.workspace import path as project_path


def resolve_rows(parameter: str, name: str, drawn: Collection[str]) -> Path | str:
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
    hint = did_you_mean(name, drawn)
    raise VragError(
        f"{parameter} is {name!r}; expected {' or '.join(map(repr, drawn))}, a folder of rows, or a"
        f" data set of the hub (<owner>/<name>).{hint}"
    )
