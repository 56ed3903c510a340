"""Where annotation files and images lie in a folder of Visual-RAG's data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from vrag_kit.benchmarks.json_lines import read_lines
from vrag_kit.benchmarks.visual_rag_rows import KEYS_V2, Row
from vrag_kit.errors import VragError
from vrag_kit.files import leaves

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
    rows: dict[Path, Row] = {}
    for path in sorted(folder.glob("*.jsonl")):
        if not path.name.startswith(".") and (row := _first_row(path)):
            rows[path] = row
    if not rows:
        raise VragError(
            f"{folder}: no annotation file. Found {_names(folder)}; expected a .jsonl file whose"
            f" rows have `images` and `question`. {_BY_HAND}"
        )
    new = [path for path, row in rows.items() if row.keys() & KEYS_V2.keys()]
    old = [path for path in rows if path not in new]
    if len(old) > 1 or len(new) > 1:
        names = [f"{path.name} (v2)" if path in new else f"{path.name} (v1)" for path in rows]
        raise VragError(
            f"{folder}: {len(rows)} annotation files: {', '.join(names)}; expected one, or a v1"
            f" and a v2. Move the others away. {_BY_HAND}"
        )
    annotations = (new or old)[0]
    return DataFolder(
        annotations=annotations,
        before=old[0] if new and old else None,
        image_root=_image_root(folder, annotations, list(rows[annotations]["images"])),
    )


def _first_row(path: Path) -> Row | None:
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
            if isinstance(images, dict) and images and not any(map(leaves, images)):
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
