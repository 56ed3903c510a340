"""A damaged or missing file of a drawn edition is drawn again; any other one is fetched."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from vrag_kit.benchmarks import ImageFile, load_visual_rag
from vrag_kit.errors import VragError


@pytest.mark.parametrize("drawn", [True, False])
def test_what_to_do_about_a_photograph_depends_on_where_it_came_from(
    drawn: bool, guide_folder: Path, tmp_path: Path
) -> None:
    if drawn:
        shutil.copy(guide_folder / "guide.json", tmp_path)
    advice = rf"remove {tmp_path} and run `vrag draw small {tmp_path}`" if drawn else "Fetch"
    first = next(guide_folder.glob("images/*/*.jpg"))
    species = tmp_path / "images" / first.parent.name
    species.mkdir(parents=True)
    photograph = species / first.name
    photograph.write_bytes(first.read_bytes()[:99])
    with pytest.raises(VragError, match=advice):
        ImageFile(photograph).open()
    for folder in (guide_folder / "images").iterdir():
        (tmp_path / "images" / folder.name).mkdir(exist_ok=True)
    with pytest.raises(VragError, match=f"files there.*{advice}"):
        load_visual_rag(guide_folder / "annotations.jsonl", tmp_path / "images", name="lost")
