"""Draws the photographs of one species of the guide."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from vrag_kit.synthetic.pages import FieldGuideEdition, annotation_rows, plan_species
from vrag_kit.synthetic.views import draw_photograph

_QUALITY = 88  # of the JPEG files


def generate_species(
    edition: FieldGuideEdition, images: Path, index: int, slot: tuple[str, int]
) -> str:
    """Draw one species below `images` unless it is there; returns its annotation rows, a
    line of JSON each.
    """
    page = plan_species(edition, index, *slot)
    target, part = images / page.folder, images / f".{page.folder}.part"
    if not target.exists():
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        for photo, name in zip(page.photos, page.files, strict=True):
            picture = draw_photograph(page.species, photo.view, edition.size)
            picture.save(part / name, quality=_QUALITY, subsampling=0)
        part.rename(target)
    return "".join(f"{json.dumps(row)}\n" for row in annotation_rows(page))
