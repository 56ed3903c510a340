"""Check Visual-RAG's files: a table of unusable rows and of missing, damaged or odd images."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pandas as pd

from vrag_kit.benchmarks.json_lines import read_lines
from vrag_kit.benchmarks.visual_rag import Listing, image_name_problem, make_folder_lister
from vrag_kit.benchmarks.visual_rag_rows import empty_file_error, parse_row
from vrag_kit.errors import VragError
from vrag_kit.fetching.images import inspect_images
from vrag_kit.log import track

KINDS = ("row", "missing", "damaged", "odd")
"""The kinds of findings, worst first; all but "odd" are faults."""
FINDING_COLUMNS = ["kind", "where", "image", "found"]

_NO_QUESTION = "HOLD"  # stands in some rows of v1, as the authors' page says
_LEFT_OUT = "the authors' mark for a row without one; v2 leaves these rows out"

Finding = tuple[str, str, str, str]
"""A row of the table: the values of `FINDING_COLUMNS`."""


def check_visual_rag(annotations: Path | str, image_root: Path | str) -> pd.DataFrame:
    """Check annotations and their images; returns one row per finding, empty without any.

    Columns: kind; where ("line 2", or all the lines that name the image: "line 1, 3");
    image ("" for a whole row); found. Kinds, in this order: `row`, a row that
    `load_visual_rag` would refuse (its images are checked only after it is corrected);
    `missing`, an image that does not exist; `damaged`, one that cannot be decoded; `odd`,
    unusual but usable. Odd are an EXIF orientation other than upright and any mode but RGB
    (the kit rotates and converts both), a shorter side under 32 pixels, a longer one over
    8,000, sides of more than 5 to 1, a format that contradicts the file's suffix, a
    duplicate of species and question, and the question "HOLD".

    Each image is opened once, however many rows name it, by four threads: some
    1,000 photographs of 500 pixels a second on two cores. Raises `VragError` if the
    file or the folder is missing, or if the file has no rows.
    """
    annotations = Path(annotations)
    root = Path(image_root)
    if not root.is_dir():
        raise VragError(
            f"{root}: no such image folder. Give the folder that holds the species folders (for"
            " iNaturalist archives usually 'train')."
        )
    found, lines = _read(annotations)
    present: dict[str, str] = {}
    listing = make_folder_lister(root)
    for name, where in lines.items():
        if problem := image_name_problem(name, root):
            found.append(("row", where, name, problem))
        elif problem := _absence(name, listing):
            found.append(("missing", where, name, problem))
        else:
            present[name] = where
    results = inspect_images(list(present), root)
    for name, findings in track(results, annotations.name, len(present), "images"):
        found += [(kind, present[name], name, text) for kind, text in findings]
    rows = sorted(found, key=lambda finding: KINDS.index(finding[0]))
    return pd.DataFrame(rows, columns=FINDING_COLUMNS)


def _read(annotations: Path) -> tuple[list[Finding], dict[str, str]]:
    """(findings about rows, image → the lines that name it)."""
    found: list[Finding] = []
    lines: dict[str, str] = {}
    first: dict[tuple[str, str], str] = {}
    where = ""
    for where, line in read_lines(annotations):
        place = where.removeprefix(f"{annotations} ")
        try:
            row = parse_row(line, where)
        except VragError as error:
            found.append(("row", place, "", str(error).removeprefix(f"{where}: ")))
            continue
        before = first.setdefault((row["sn"], row["question"]), place)
        if before != place:
            found.append(("odd", place, "", f"the same species and question as {before}"))
        if row["question"].strip().upper() == _NO_QUESTION:
            found.append(("odd", place, "", f"the question is {row['question']!r}, {_LEFT_OUT}"))
        number = place.removeprefix("line ")
        for name in row["images"]:
            lines[name] = f"{lines[name]}, {number}" if name in lines else place
    if not where:
        raise empty_file_error(annotations)
    return found, lines


def _absence(name: str, listing: Listing) -> str:
    """What is there in place of an image; "" when it is there."""
    path = PurePosixPath(name)
    there = listing(str(path.parent))
    if there is None:
        return "no such species folder"
    if path.name in there:
        return ""
    absence = f"not among the {len(there):,} files of its folder"
    stem = path.stem.lower()
    alike = [other for other in sorted(there) if PurePosixPath(other).stem.lower() == stem]
    return f"{absence}, but {alike[0]} is" if alike else absence
