"""Detects checkpoints whose architecture is built into the kit, by their config.json."""

from __future__ import annotations

import json
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.files import escapes_folder

KINDS = ("magiclens", "vista")
"""Values of "model_type" in config.json that denote a built-in architecture."""


def builtin_architecture(folder: Path) -> str | None:
    """Returns which of `KINDS` the checkpoint in a folder is; None for all others."""
    try:
        stated = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        kind = stated.get("model_type")
    except (OSError, ValueError, AttributeError):
        return None
    return kind if kind in KINDS else None


def base_encoder(folder: Path) -> str:
    """Returns the retriever named as "base" in config.json: a subfolder, or a name.

    Raises `VragError` if it names none.
    """
    stated = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    base = stated.get("base")
    if not isinstance(base, str) or not base:
        raise VragError(
            f"{folder / 'config.json'}: base is {base!r}; expected the name of a folder in"
            f" {folder}, or of a retriever."
        )
    there = not escapes_folder(base) and (folder / base).is_dir()
    return str(folder / base) if there else base
