"""What lies beside a guide's images: a second corpus in another style, a list of all
species, and an article for each.

    <folder>/images24/NNNNN_Kingdom_…_Genus_species/<uuid>.jpg
                                    coloured plates, some species missing (standing for
                                    iNaturalist 2024)
    <folder>/categories.json        scientific and common names, as iNaturalist lists them
    <folder>/articles/<number>.md   one a species; a quarter of the questions are answered
                                    there (standing for Wikipedia)
    <folder>/articles_tell.json     these questions
    <folder>/webqa/…                captions in the layout of WebQA
    <folder>/companions.json        edition and hashes of the code; complete once all is
                                    written

The same edition gives the same bytes. The plates are chosen like the guide's
photographs, but by other streams: they are other pictures of the same species.
"""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path

from vrag_kit.files import write_file
from vrag_kit.log import track
from vrag_kit.processes import worker_pool
from vrag_kit.synthetic.captioned import write_caption_data
from vrag_kit.synthetic.generator_version import generator_version
from vrag_kit.synthetic.plate_drawing import draw_plates, slots_with_plates
from vrag_kit.synthetic.species_texts import write_species_texts


def generate_extra_corpora(edition: str, folder: Path, workers: int) -> None:
    """Draw and write all companions of the guide in `folder` unless they are there;
    what an interrupted run drew stays.
    """
    if extra_corpora_exist(edition, folder):
        return
    note = _note(edition)
    pages, before = folder / "images24", _read(folder)
    if any(before.get(name) != note[name] for name in ("edition", "plates")):
        shutil.rmtree(pages, ignore_errors=True)
    write_file(folder / "companions.json", json.dumps({**note, "complete": False}))
    pages.mkdir(exist_ok=True)
    chosen = slots_with_plates(edition)
    with worker_pool(workers) as pool:
        drawn = pool.map(partial(draw_plates, edition, pages), chosen)
        list(track(drawn, f"drawing the second corpus ({edition})", len(chosen), "species"))
    write_species_texts(edition, folder)
    write_caption_data(edition, folder)
    write_file(folder / "companions.json", json.dumps({**note, "complete": True}))


def extra_corpora_exist(edition: str, folder: Path) -> bool:
    """Whether all companions were written by this code."""
    return _read(folder) == {**_note(edition), "complete": True}


def _note(edition: str) -> dict[str, object]:
    """Edition, and stamps of the code that draws the plates, and that writes the texts."""
    return {
        "edition": edition,
        "plates": generator_version("plate_drawing"),
        "texts": generator_version("species_texts", "captions", "page_drawing"),
    }


def _read(folder: Path) -> dict[str, object]:
    try:
        return dict(json.loads((folder / "companions.json").read_text(encoding="utf-8")))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
