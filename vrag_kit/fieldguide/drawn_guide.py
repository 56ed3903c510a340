"""The Field Guide, drawn where it is needed and not there; no forecast draws for minutes."""

from __future__ import annotations

import json
from pathlib import Path

from vrag_kit.cores import cores
from vrag_kit.fieldguide.companions import companions_are_there
from vrag_kit.fieldguide.guide import DRAWN_BY, draw_field_guide
from vrag_kit.fieldguide.stamps import drawn_by
from vrag_kit.forecast import before_drawing

MEGABYTES = {"full": 300, "small": 10}
"""Edition → what it takes on the disk."""


def drawn_guide(edition: str, folder: Path) -> Path:
    """The folder, with the edition ("full" or "small") in it.

    Raises `VragError` as `draw_field_guide` does, and in a forecast where the full one
    is not there yet.
    """
    if not _is_there(edition, folder):
        before_drawing(folder, edition, MEGABYTES[edition], f"vrag draw {edition}")
    return draw_field_guide(edition, folder, workers=cores())


def _is_there(edition: str, folder: Path) -> bool:
    """Whether nothing would be drawn."""
    try:
        told = json.loads((folder / "guide.json").read_text(encoding="utf-8"))
        done = bool(told["complete"]) and (told["edition"], told["drawn_by"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return done == (edition, drawn_by(DRAWN_BY)) and companions_are_there(edition, folder)
