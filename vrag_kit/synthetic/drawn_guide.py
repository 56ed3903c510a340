"""The Field Guide, drawn where it is needed and not there; no dry run draws for minutes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from vrag_kit.processes import available_cores
from vrag_kit.synthetic.extra_corpora import extra_corpora_exist
from vrag_kit.synthetic.generate import refuse_generation
from vrag_kit.synthetic.generator_version import generator_version
from vrag_kit.synthetic.guide import DRAWN_BY, generate_field_guide

Source = str | Mapping[str, str]
"""A synthetic edition by name (one of `DRAWN`), or a mapping of real files."""
DRAWN = {"field-guide": "full", "field-guide-small": "small"}
"""Name → edition of the Field Guide; it is drawn into data/<name>."""
MEGABYTES = {"full": 300, "small": 10}
"""Edition → what it takes on the disk."""


def field_guide_folder(edition: str, folder: Path) -> Path:
    """The folder, with the edition ("full" or "small") in it.

    Raises `VragError` as `generate_field_guide` does, and in a dry run where the full one
    is not there yet.
    """
    if not _is_there(edition, folder):
        name = "field-guide" if edition == "full" else f"field-guide-{edition}"
        refuse_generation(folder, edition, MEGABYTES[edition], f"vrag draw {name}")
    return generate_field_guide(edition, folder, workers=available_cores())


def _is_there(edition: str, folder: Path) -> bool:
    """Whether nothing would be drawn."""
    try:
        told = json.loads((folder / "guide.json").read_text(encoding="utf-8"))
        done = bool(told["complete"]) and (told["edition"], told["drawn_by"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return done == (edition, generator_version(DRAWN_BY)) and extra_corpora_exist(edition, folder)
