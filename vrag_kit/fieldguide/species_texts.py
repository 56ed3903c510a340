"""Writes what is told of the guide's species: the list of all, and an article for each."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from vrag_kit.fieldguide.album import invent_named
from vrag_kit.fieldguide.articles import article, as_markdown
from vrag_kit.fieldguide.organisms import KINDS
from vrag_kit.fieldguide.pages import EDITIONS
from vrag_kit.fieldguide.plate_drawing import Slot, every_slot
from vrag_kit.files import write_file


def write_texts(edition: str, folder: Path) -> None:
    """Write both into the guide's folder, anew."""
    seed, every = EDITIONS[edition].seed, every_slot(edition)
    categories = json.dumps([_category(seed, slot) for slot in every], indent=1)
    write_file(folder / "categories.json", categories + "\n")
    shutil.rmtree(folder / "articles", ignore_errors=True)
    for slot in every:
        species = invent_named(seed, slot.kind, slot.number)
        title, sections = article(species, f"{seed}/{slot.kind}/{slot.number}")
        write_file(folder / "articles" / f"{slot.place:05d}.md", as_markdown(title, sections))


def _category(seed: str, slot: Slot) -> dict[str, object]:
    species, lineage = invent_named(seed, slot.kind, slot.number), KINDS[slot.kind].lineage
    ranks = dict(zip(("kingdom", "phylum", "class", "order", "family"), lineage, strict=True))
    return {
        "id": slot.place,
        "name": species.scientific_name,
        "common_name": species.common_name,
        **ranks,
        "genus": species.genus,
    }
