"""What models were told in training, as far as that was written beside their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from vrag_kit.options import Entry
from vrag_kit.tables import read_rows
from vrag_kit.workspace import path as project_path

TOLD_FILE = "told.csv"
"""Beside weights: a column `about`, a row for each thing whose facts were taught. It is
no part of the checkpoint, whose answers it does not change.
"""


def told_facts(models: Sequence[Entry]) -> dict[str, frozenset[str]]:
    """Model's name in tables → what it was told about, by the names that are `group` of
    the questions (species); only for models whose folder holds a `told.csv`.

    `models` as `ask_models` takes them; nothing is loaded. Raises `VragError` for a
    file that cannot be read.
    """
    told = {}
    for entry in models:
        spec = str(entry["model"]) if isinstance(entry, Mapping) else entry
        folder = project_path(spec)
        if (folder / TOLD_FILE).is_file():
            name = entry.get("name") if isinstance(entry, Mapping) else None
            told[str(name or Path(spec).name)] = _read(folder / TOLD_FILE)
    return told


def _read(path: Path) -> frozenset[str]:
    advice = "It has one column, `about`, and a row for each thing that was told."
    return frozenset(row["about"] for _, row in read_rows(path, ["about"], "what was told", advice))
