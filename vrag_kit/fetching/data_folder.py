"""Find the annotation file and the image folder in a folder of Visual-RAG's data."""

from __future__ import annotations

import json
from pathlib import Path

from vrag_kit.benchmarks.sources import read_lines
from vrag_kit.errors import VragError
from vrag_kit.files import escapes_folder
from vrag_kit.types import Json

_BY_HAND = "Or name both: `vrag check ANNOTATIONS IMAGE_FOLDER`."


def find_data(folder: Path | str) -> tuple[Path, Path]:
    """Find the annotation file and the image folder in `folder`.

    The annotation file is the one `.jsonl` file directly in it that has a row with
    `images` and `question`. The image folder is `folder` itself or a folder in it, the
    one with most images of the first row; it must have the species folder of the first
    image. Otherwise raises `VragError`, which says what was found.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise VragError(
            f"{folder}: no such folder; expected one that holds an annotation file (.jsonl) and the"
            " images."
        )
    rows: dict[Path, Json] = {}
    for path in sorted(folder.glob("*.jsonl")):
        if not path.name.startswith(".") and (row := _first_row(path)):
            rows[path] = row
    if not rows:
        raise VragError(
            f"{folder}: no annotation file. Found {_names(folder)}; expected a .jsonl file whose"
            f" rows have `images` and `question`. {_BY_HAND}"
        )
    if len(rows) > 1:
        names = ", ".join(path.name for path in rows)
        raise VragError(
            f"{folder}: {len(rows)} annotation files: {names}; expected one. {_BY_HAND}"
        )
    ((annotations, row),) = rows.items()
    return annotations, _image_root(folder, annotations, list(row["images"]))


def _first_row(path: Path) -> Json | None:
    """The first row with a question and images; rows before it may be broken.

    None when there is no such row.
    """
    for _, line in read_lines(path):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and "question" in row:
            images = row.get("images")
            if isinstance(images, dict) and images and not any(map(escapes_folder, images)):
                return row
    return None


def _image_root(folder: Path, annotations: Path, images: list[str]) -> Path:
    species = images[0].partition("/")[0]
    places = [place for place in (folder, *sorted(folder.iterdir())) if (place / species).is_dir()]
    if not places:
        raise VragError(
            f"{folder}: no image folder. {annotations.name} begins with the species folder"
            f" {species!r}, which is neither here nor in a folder here; found {_names(folder)}."
            f" {_BY_HAND}"
        )
    return max(places, key=lambda place: sum((place / name).is_file() for name in images))


def _names(folder: Path, most: int = 8) -> str:
    """What a folder holds, folders with a stroke behind."""
    names = sorted(f"{path.name}/" if path.is_dir() else path.name for path in folder.iterdir())
    shown = ", ".join(names[:most]) or "nothing"
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown
