"""The Field Guide in the layout of Visual-RAG over iNaturalist 2021, and what goes with it.

    <folder>/annotations.jsonl      v2 rows, one query each
    <folder>/images/NNNNN_Kingdom_…_Genus_species/<uuid>.jpg
                                    the photographs
    <folder>/images24/NNNNN_Kingdom_…_Genus_species/<uuid>.jpg
                                    coloured plates, some species missing (standing for
                                    iNaturalist 2024)
    <folder>/categories.json        scientific and common names, as iNaturalist lists them
    <folder>/articles/<number>.md   one a species; a quarter of the questions are answered
                                    there (standing for Wikipedia)
    <folder>/articles_tell.json     these questions
    <folder>/webqa/…                captions in the layout of WebQA
    <folder>/edition.json           edition and version; complete once all is written

The same edition gives the same bytes. The plates are chosen like the photographs, but by other
streams. Drawing goes species by species: an interrupted guide goes on where it stopped.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from vrag_kit.files import write_file
from vrag_kit.log import track
from vrag_kit.synthetic.editions import generate_once, worker_pool
from vrag_kit.synthetic.visual_rag.articles import write_species_texts
from vrag_kit.synthetic.visual_rag.captions import write_webqa
from vrag_kit.synthetic.visual_rag.pages import (
    EDITIONS,
    draw_plates,
    generate_species,
    slots_with_plates,
    species_slots,
)


def generate_field_guide(edition: str, folder: Path | str) -> Path:
    """Generate an edition ("full" or "small") in `folder` unless it exists; returns the folder.
    Raises as `generate_once` does.
    """
    outputs = ("images", "images24")
    return generate_once("field-guide", edition, EDITIONS, folder, _draw, outputs)


def _draw(edition: str, folder: Path) -> None:
    size, with_plates = EDITIONS[edition], slots_with_plates(edition)
    slots = species_slots(size)
    images, plates = folder / "images", folder / "images24"
    images.mkdir(exist_ok=True)
    plates.mkdir(exist_ok=True)
    with worker_pool() as pool:
        drawn = pool.map(partial(generate_species, size, images), slots)
        rows = list(track(drawn, f"drawing the Field Guide ({edition})", len(slots), "species"))
        plated = pool.map(partial(draw_plates, edition, plates), with_plates)
        list(track(plated, f"drawing the plates ({edition})", len(with_plates), "species"))
    write_file(folder / "annotations.jsonl", "".join(rows))
    write_species_texts(edition, folder)
    write_webqa(size, images, folder / "webqa")
