"""Draw a whole Field Guide into a folder, in the layout of Visual-RAG over iNaturalist
2021.

    <folder>/annotations.jsonl      v2 rows, one query each
    <folder>/images/NNNNN_Kingdom_…_Genus_species/<uuid>.jpg
                                    the photographs
    <folder>/guide.json             edition, seed, hash of the drawing code
    <folder>/images24, articles, categories.json, webqa
                                    what `companions` adds: a second corpus, and texts

The same edition and seed give the same bytes. Drawing goes species by species: an
interrupted guide goes on where it stopped, and a guide that other code drew is drawn
again (`stamps`).
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
from dataclasses import asdict
from functools import partial
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.files import lock_folder, write_file
from vrag_kit.log import logger, track
from vrag_kit.processes import worker_pool
from vrag_kit.synthetic.extra_corpora import extra_corpora_exist, generate_extra_corpora
from vrag_kit.synthetic.generator_version import generator_version
from vrag_kit.synthetic.page_drawing import generate_species
from vrag_kit.synthetic.pages import EDITIONS, species_slots
from vrag_kit.types import Json

DRAWN_BY = "page_drawing"
"""The module that decides, with all that it imports, what a guide looks like."""


def generate_field_guide(edition: str, folder: Path | str, *, workers: int | None = None) -> Path:
    """Draw an edition ("full" or "small") into `folder` unless it is already there;
    returns the folder.

    `workers` processes draw at once (default: one a core). Raises `VragError` for an
    unknown edition or a folder that cannot be written, and in a script that draws
    without `if __name__ == "__main__":`.
    """
    if edition not in EDITIONS:
        raise VragError(
            f"unknown edition {edition!r} of the Field Guide; expected one of"
            f" {', '.join(map(repr, EDITIONS))}."
        )
    folder = Path(folder)
    wanted = {
        "edition": edition,
        **json.loads(json.dumps(asdict(EDITIONS[edition]))),
        "drawn_by": generator_version(DRAWN_BY),
    }
    if _read_note(folder) == {**wanted, "complete": True} and extra_corpora_exist(edition, folder):
        return folder
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise VragError(
            "the drawing processes run this script again from its top; put its code below `if"
            ' __name__ == "__main__":`.'
        )
    try:
        with lock_folder(folder, "drawing the Field Guide"):
            if _read_note(folder) != {**wanted, "complete": True}:
                _draw(edition, folder, wanted, workers or os.cpu_count() or 1)
            generate_extra_corpora(edition, folder, workers or os.cpu_count() or 1)
    except OSError as error:
        needed = 300 if edition == "full" else 10
        raise VragError(
            f"{folder}: the Field Guide cannot be drawn there ({error.strerror or error}). Choose a"
            f" folder with write access and {needed} MB free; what was drawn is kept."
        ) from error
    return folder


def _draw(edition: str, folder: Path, wanted: Json, workers: int) -> None:
    note = _read_note(folder)
    if (folder / "images").exists() and {key: note.get(key) for key in wanted} != wanted:
        if not note:
            raise VragError(
                f"{folder}: holds an 'images' folder that is not a Field Guide. Choose another"
                " folder, or remove it."
            )
        logger.info(f"{folder}: drawn by other code or as another edition; drawing it again")
        shutil.rmtree(folder / "images")
    write_file(folder / "guide.json", json.dumps(wanted, indent=2))
    (folder / "images").mkdir(exist_ok=True)
    found = species_slots(EDITIONS[edition])
    draw = partial(generate_species, EDITIONS[edition], folder / "images")
    with worker_pool(workers) as pool:
        drawn = pool.map(draw, range(len(found)), found)
        rows = list(track(drawn, f"drawing the Field Guide ({edition})", len(found), "species"))
    write_file(folder / "annotations.jsonl", "".join(rows))
    write_file(folder / "guide.json", json.dumps({**wanted, "complete": True}, indent=2))


def _read_note(folder: Path) -> Json:
    try:
        return dict(json.loads((folder / "guide.json").read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError):
        return {}
