"""What lies beside a guide's images: a second corpus in another style, a list of all
species, and an article for each.

    <folder>/images24/NNNNN_Kingdom_…_Genus_species/<uuid>.jpg
                                    coloured plates, some species missing (standing for
                                    iNaturalist 2024)
    <folder>/categories.json        scientific and common names, as iNaturalist lists them
    <folder>/articles/<number>.md   one a species; none tells what is hidden (standing for
                                    Wikipedia)
    <folder>/webqa/…                captions in the layout of WebQA
    <folder>/companions.json        edition and hashes of the code; complete once all is
                                    written

The same edition gives the same bytes. The plates are chosen like the guide's
photographs, but by other streams: they are other pictures of the same species.
"""

from __future__ import annotations

import json
import shutil
import uuid
from functools import partial
from pathlib import Path
from typing import NamedTuple

from vrag_kit.fieldguide.album import album, invent_named
from vrag_kit.fieldguide.articles import article, as_markdown
from vrag_kit.fieldguide.captions import write_captions
from vrag_kit.fieldguide.organisms import KINDS
from vrag_kit.fieldguide.pages import EDITIONS, Edition, hash_of_modules, slots
from vrag_kit.fieldguide.plates import plate
from vrag_kit.fieldguide.questions import hidden_parts
from vrag_kit.fieldguide.traits import stream
from vrag_kit.files import write_file
from vrag_kit.processes import new_workers
from vrag_kit.progress import track

PLATES = {"full": (100, 140), "small": (26, 34)}
"""Fewest and most plates of a species, by edition."""
MISSING = 1 / 6
"""Share of the species without plates."""


class Slot(NamedTuple):
    """The place of a species in the guide."""

    place: int  # its index
    kind: str
    number: int  # among those of its kind


def draw_companions(edition: str, folder: Path, workers: int) -> None:
    """Draw and write all companions of the guide in `folder` unless they are there;
    what an interrupted run drew stays.
    """
    if companions_are_there(edition, folder):
        return
    seed, note = EDITIONS[edition].seed, _note(edition)
    every = [Slot(index, *slot) for index, slot in enumerate(slots(EDITIONS[edition]))]
    pages, before = folder / "images24", _read(folder)
    if any(before.get(name) != note[name] for name in ("edition", "plates")):
        shutil.rmtree(pages, ignore_errors=True)
    write_file(folder / "companions.json", json.dumps({**note, "complete": False}))
    pages.mkdir(exist_ok=True)
    chosen = [slot for slot in every if stream(seed, "24", *slot).random() >= MISSING]
    with new_workers(workers) as pool:
        drawn = pool.map(partial(_draw_plates, EDITIONS[edition], PLATES[edition], pages), chosen)
        list(track(drawn, f"drawing the second corpus ({edition})", len(chosen), "species"))
    categories = json.dumps([_category(seed, slot) for slot in every], indent=1)
    write_file(folder / "categories.json", categories + "\n")
    shutil.rmtree(folder / "articles", ignore_errors=True)
    for slot in every:
        species = invent_named(seed, slot.kind, slot.number)
        title, sections = article(species, f"{seed}/{slot.kind}/{slot.number}")
        write_file(folder / "articles" / f"{slot.place:05d}.md", as_markdown(title, sections))
    write_captions(edition, folder)
    write_file(folder / "companions.json", json.dumps({**note, "complete": True}))


def companions_are_there(edition: str, folder: Path) -> bool:
    """Whether all companions were written by this code."""
    return _read(folder) == {**_note(edition), "complete": True}


def _draw_plates(edition: Edition, plates: tuple[int, int], images: Path, slot: Slot) -> None:
    """Draw the plates of one species unless they are there."""
    name = f"{edition.seed}/24/{slot.kind}/{slot.number}"
    species = invent_named(edition.seed, slot.kind, slot.number)
    rng = stream(name, "page")
    # numbered otherwise than in the guide, as in iNaturalist 2024
    lineage = (*KINDS[slot.kind].lineage, species.genus, species.epithet)
    target = images / "_".join([f"{slot.place + 5000:05d}", *lineage])
    if target.exists():
        return
    part = images / f".{target.name}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    asked = tuple(part.name for part in hidden_parts(species))
    n_plates = int(rng.integers(plates[0], plates[1] + 1))
    for photo in album(species, asked, n_plates, name):
        picture = plate(species, photo.view, edition.size)
        file = part / f"{uuid.UUID(bytes=rng.bytes(16), version=4)}.jpg"
        picture.save(file, quality=88, subsampling=0)
    part.rename(target)


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


def _note(edition: str) -> dict[str, object]:
    """Edition, and hashes of the modules that decide what the plates are, and what the
    texts are.
    """
    drawing = ("shapes", "traits", "views", "album", "plates", "pages", "companions")
    writing = (*drawing, "questions", "guide", "articles", "captions")
    return {
        "edition": edition,
        "plates": hash_of_modules(drawing),
        "texts": hash_of_modules(writing),
    }


def _read(folder: Path) -> dict[str, object]:
    try:
        return dict(json.loads((folder / "companions.json").read_text(encoding="utf-8")))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
