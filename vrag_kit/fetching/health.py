"""What is wrong with Visual-RAG's files, as one table: bad rows, and bad or odd images."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import TypeGuard

import pandas as pd

from vrag_kit.benchmarks.json_lines import read_lines
from vrag_kit.benchmarks.visual_rag import Listing, listing_of, name_problem
from vrag_kit.benchmarks.visual_rag_rows import CHANGES_V2, Row, no_rows, parse_row
from vrag_kit.errors import VragError
from vrag_kit.fetching.pictures import examine
from vrag_kit.progress import track

KINDS = ("row", "missing", "damaged", "odd")
"""What a finding can be, worst first; all but "odd" are faults."""
COLUMNS = ["kind", "where", "image", "found"]

_NO_QUESTION = "HOLD"  # stands in some rows of v1, as the authors' page says

Finding = tuple[str, str, str, str]
"""A row of the table: the values of COLUMNS."""


def check_visual_rag(
    annotations: Path | str, image_root: Path | str, *, workers: int = 4
) -> pd.DataFrame:
    """Everything that is wrong or odd with annotations and their images; one row a
    finding, empty when all is well.

    Columns: kind; where ("line 2", or all the lines that name the image: "line 1, 3");
    image ("" for a whole row); found. Kinds, in this order: `row`, a row that
    `load_visual_rag` would refuse (its images are looked at once it is mended);
    `missing`, an image that is not there; `damaged`, one that cannot be decoded; `odd`,
    worth knowing and not wrong. Odd are an EXIF orientation other than upright and any
    mode but RGB (the kit turns and converts both), a shorter side under 32 pixels, a
    longer one over 8,000, sides of more than 5 to 1, a format other than the file's
    ending says, a species and question that came before, the question "HOLD", a
    `y_count` or `y_rate` that the labels do not give, and an `is_changed_v2` of unknown
    words.

    Each image is opened once, however many rows name it, by `workers` threads: some
    1,000 photographs of 500 pixels a second on two cores. Raises `VragError` when the
    file or the folder is not there, or the file holds no rows.
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
    listing = listing_of(root)
    for name, where in lines.items():
        if problem := name_problem(name, root):
            found.append(("row", where, name, problem))
        elif problem := _absence(name, listing):
            found.append(("missing", where, name, problem))
        else:
            present[name] = where
    results = examine(list(present), root, workers)
    for name, findings in track(results, annotations.name, len(present), "images"):
        found += [(kind, present[name], name, text) for kind, text in findings]
    rows = sorted(found, key=lambda finding: KINDS.index(finding[0]))
    return pd.DataFrame(rows, columns=COLUMNS)


def claim_problems(images: Mapping[str, int], claims: Mapping[str, object]) -> list[str]:
    """What is wrong with what a row of v2 says of itself; what is not claimed is not
    wrong.

    `is_changed_v2` has to be one of three words, `y_count` the number of clues,
    `y_rate` that of clues among images, to three decimals.
    """
    clues = sum(label == 1 for label in images.values())
    problems = []
    says = claims.get("is_changed_v2")
    if says is not None and says not in CHANGES_V2:
        problems.append(f"is_changed_v2 is {says!r}, expected {', '.join(CHANGES_V2)}")
    count = claims.get("y_count")
    if count is not None and (isinstance(count, bool) or count != clues):
        problems.append(
            f"y_count is {_number(count)}, but {clues} of {len(images)} images are clues"
        )
    rate = claims.get("y_rate")
    if rate is not None and images:
        true_rate = clues / len(images)
        if not (_is_share(rate) and abs(rate - true_rate) <= 0.0005):
            problems.append(
                f"y_rate is {_number(rate)}, but {clues} of {len(images)} images are"
                f" {true_rate:.4g}"
            )
    return problems


def _is_share(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _number(value: object) -> str:
    """A number to four digits; anything else, and what is far too large, as it is."""
    return f"{value:.4g}" if isinstance(value, float) else repr(value)[:60]


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
        found += [("odd", place, "", problem) for problem in _oddities(row)]
        number = place.removeprefix("line ")
        for name in row["images"]:
            lines[name] = f"{lines[name]}, {number}" if name in lines else place
    if not where:
        raise no_rows(annotations)
    return found, lines


def _oddities(row: Row) -> list[str]:
    problems = []
    if row["question"].strip().upper() == _NO_QUESTION:
        problems.append(
            f"the question is {row['question']!r}, the authors' mark for a row without one; v2"
            " leaves these rows out"
        )
    return problems + claim_problems(row["images"], row)


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
