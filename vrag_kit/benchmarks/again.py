"""How to get a file again that is missing or damaged."""

from __future__ import annotations

import json
from pathlib import Path

_NOTES = ("guide.json", "edition.json")
"""What drawing leaves in the folder of an edition."""


def get_again(where: Path | str, fetch: str) -> str:
    """What to do about a file, given its path, perhaps with more words behind it: `fetch`,
    or where it lies in a drawn edition, how that is drawn again.
    """
    for folder in Path(where).parents:
        for note in _NOTES:
            if edition := _edition(folder / note):
                drawn = f"{edition} {folder}" if note == _NOTES[0] else f"… {folder}"
                return f"It was drawn: remove {folder} and run `vrag draw {drawn}`."
    return fetch


def _edition(note: Path) -> str:
    try:
        told = json.loads(note.read_text(encoding="utf-8"))
        return str(told["edition"]) if "drawn_by" in told else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""
