"""Find the annotation files and the images in a folder of data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vrag_kit.benchmarks.visual_rag_rows import KEYS_V2, read_lines
from vrag_kit.errors import VragError

_BY_HAND = (
    "Or name them: `vrag check ANNOTATIONS IMAGE_FOLDER`, and `--before V1` for an older version."
)


@dataclass(frozen=True, slots=True)
class DataFolder:
    """What `find_data` found."""

    annotations: Path
    """The annotation file; the v2 one where both are there."""
    before: Path | None
    """The v1 file where both are there."""
    image_root: Path
    """The folder that holds the species folders."""


def find_data(folder: Path | str) -> DataFolder:
    """The annotations and the image folder in `folder`.

    Annotations are the `.jsonl` files directly in it that have a row with `images` and
    `question`: one, or a v1 and a v2 (told apart by the keys of v2). The image folder
    is `folder` itself or a folder in it, the one that holds most images of the first
    row; that species' folder has to be there. Raises `VragError` saying what was found
    otherwise.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise VragError(
            f"{folder}: no such folder; expected one that holds an annotation file (.jsonl) and the"
            " images."
        )
    rows = {
        path: row
        for path in sorted(folder.glob("*.jsonl"))
        if not path.name.startswith(".") and (row := _first_row(path))
    }
    if not rows:
        raise VragError(
            f"{folder}: no annotation file. Found {_names(folder)}; expected a .jsonl file whose"
            f" rows have `images` and `question`. {_BY_HAND}"
        )
    old, new = (
        [path for path, row in rows.items() if bool(row.keys() & KEYS_V2.keys()) == is_v2]
        for is_v2 in (False, True)
    )
    if len(old) > 1 or len(new) > 1:
        versions = ", ".join(f"{path.name} ({'v2' if path in new else 'v1'})" for path in rows)
        raise VragError(
            f"{folder}: {len(rows)} annotation files: {versions}; expected one, or a v1 and a v2."
            f" Move the others away. {_BY_HAND}"
        )
    annotations = (new or old)[0]
    return DataFolder(
        annotations=annotations,
        before=old[0] if new and old else None,
        image_root=_image_root(folder, annotations, list(rows[annotations]["images"])),
    )


def _first_row(path: Path) -> Mapping[str, Any] | None:
    """The first row with a question and images; rows before it may be broken.

    None when there is no such row.
    """
    for _, line in read_lines(path):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if (
            isinstance(row, dict)
            and "question" in row
            and isinstance(row.get("images"), dict)
            and row["images"]
        ):
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
    return (
        ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")
        or "nothing"
    )
