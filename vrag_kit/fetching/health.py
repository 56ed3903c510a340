"""What is wrong with a benchmark's files, as one table: bad rows, images that are
missing or damaged, and odd ones.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd
from PIL import Image, UnidentifiedImageError

from vrag_kit.benchmarks.images import decode
from vrag_kit.benchmarks.visual_rag import file_names, name_problem
from vrag_kit.benchmarks.visual_rag_rows import CHANGES_V2, parse_row, read_lines
from vrag_kit.errors import VragError
from vrag_kit.progress import track

KINDS = ("row", "missing", "damaged", "odd")
"""What a finding can be, worst first; all but "odd" are faults."""
SMALLEST_SIDE = 32
"""Pixels: with a shorter side below this, hardly anything can be seen (encoders read
224 and more).
"""
LARGEST_SIDE = 8000
"""Pixels: above this, decoding takes seconds and hundreds of megabytes (photographs of
iNaturalist have 800 at most).
"""
LARGEST_RATIO = 5
"""Longer side to shorter: beyond this, an encoder's square cuts most of the picture
away, or squeezes it flat.
"""

_COLUMNS = ["kind", "where", "image", "found"]
_MODES = {
    "1": "black and white",
    "L": "grey",
    "LA": "grey with alpha",
    "La": "grey with alpha",
    "P": "palette",
    "PA": "palette with alpha",
    "RGBA": "alpha",
    "RGBa": "alpha",
    "F": "floating point",
    "I": "16 bits or more",
}
_FORMATS = {"MPO": "JPEG"}  # a JPEG with further pictures behind it, as telephones write them
_TURNED = range(2, 9)  # EXIF orientations other than upright
_NO_QUESTION = "HOLD"  # stands in some rows of v1, as the authors' page says
_AT_ONCE = (
    1024  # images handed to the threads together, so that memory does not grow with the benchmark
)


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
    annotations, root = Path(annotations), Path(image_root)
    if not root.is_dir():
        raise VragError(
            f"{root}: no such image folder. Give the folder that holds the species folders (for"
            " iNaturalist archives usually 'train')."
        )
    found, lines = _read(annotations)
    present, folders = {}, {}
    for name, where in lines.items():
        if problem := name_problem(name, root):
            found.append(("row", where, name, problem))
        elif problem := _absence(name, root, folders):
            found.append(("missing", where, name, problem))
        else:
            present[name] = where
    results = _examine_all(list(present), root, workers)
    for name, findings in track(results, annotations.name, len(present), "images"):
        found += [(kind, present[name], name, text) for kind, text in findings]
    return pd.DataFrame(
        sorted(found, key=lambda finding: KINDS.index(finding[0])), columns=_COLUMNS
    )


def claim_problems(images: Mapping[str, int], claims: Mapping[str, Any]) -> list[str]:
    """What is wrong with what a row of v2 says of itself; what is not claimed is not
    wrong.

    `is_changed_v2` has to be one of three words, `y_count` the number of clues,
    `y_rate` that of clues among images, to three decimals.
    """
    clues = sum(label == 1 for label in images.values())
    says, count, rate = (claims.get(key) for key in ("is_changed_v2", "y_count", "y_rate"))
    problems = []
    if says is not None and says not in CHANGES_V2:
        problems.append(f"is_changed_v2 is {says!r}, expected {', '.join(CHANGES_V2)}")
    if count is not None and (isinstance(count, bool) or count != clues):
        problems.append(
            f"y_count is {_number(count)}, but {clues} of {len(images)} images are clues"
        )
    if (
        rate is not None
        and images
        and not (_is_share(rate) and abs(rate - clues / len(images)) <= 0.0005)
    ):
        problems.append(
            f"y_rate is {_number(rate)}, but {clues} of {len(images)} images are"
            f" {clues / len(images):.4g}"
        )
    return problems


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _number(value: object) -> str:
    """A number to four digits; anything else, and what is far too large, as it is."""
    return f"{value:.4g}" if isinstance(value, float) else repr(value)[:60]


def _read(annotations: Path) -> tuple[list[tuple[str, str, str, str]], dict[str, str]]:
    """(findings about rows, image → the lines that name it)."""
    found: list[tuple[str, str, str, str]] = []
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
        if (before := first.setdefault((row["sn"], row["question"]), place)) != place:
            found.append(("odd", place, "", f"the same species and question as {before}"))
        if row["question"].strip().upper() == _NO_QUESTION:
            found.append(
                (
                    "odd",
                    place,
                    "",
                    (
                        f"the question is {row['question']!r}, the authors' mark for a row without"
                        " one; v2 leaves these rows out"
                    ),
                )
            )
        found += [("odd", place, "", problem) for problem in claim_problems(row["images"], row)]
        for name in row["images"]:
            lines[name] = (
                f"{lines[name]}, {place.removeprefix('line ')}" if name in lines else place
            )
    if not where:
        raise VragError(
            f"{annotations}: no queries found, expected one JSON object a line. Check that this is"
            " the annotation file."
        )
    return found, lines


def _absence(name: str, root: Path, folders: dict[str, frozenset[str] | None]) -> str:
    """What is there in place of an image; "" when it is there."""
    path = PurePosixPath(name)
    there = file_names(str(path.parent), root, folders)
    if there is None:
        return "no such species folder"
    if path.name in there:
        return ""
    alike = next(
        (
            other
            for other in sorted(there)
            if PurePosixPath(other).stem.lower() == path.stem.lower()
        ),
        "",
    )
    return f"not among the {len(there):,} files of its folder" + (
        f", but {alike} is" if alike else ""
    )


def _examine_all(
    names: Sequence[str], root: Path, workers: int
) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """(name, findings) of every image, in order."""
    with ThreadPoolExecutor(workers) as pool:
        for start in range(0, len(names), _AT_ONCE):
            part = names[start : start + _AT_ONCE]
            yield from zip(part, pool.map(_examine, [root / name for name in part]), strict=True)


def _examine(path: Path) -> list[tuple[str, str]]:
    """(kind, what was found) of one file, read once."""
    try:
        data = path.read_bytes()
    except OSError as error:
        return [("damaged", f"cannot be read ({error.strerror})")]
    try:
        decode(data, str(path))
    except VragError as error:
        return [("damaged", _damage(data, error.__cause__))]
    with Image.open(io.BytesIO(data)) as header:
        oddities = _oddities(header, path.suffix.lower())
    return [("odd", "; ".join(oddities))] if oddities else []


def _damage(data: bytes, cause: BaseException | None) -> str:
    if not data:
        return "empty file"
    if isinstance(cause, UnidentifiedImageError):
        return f"no picture of a known format; its {len(data):,} bytes begin with {data[:12]!r}"
    return f"{cause}; the file has {len(data):,} bytes"


def _oddities(picture: Image.Image, suffix: str) -> list[str]:
    found = []
    orientation = picture.getexif().get(0x0112, 1)
    if orientation in _TURNED:
        found.append(f"EXIF orientation {orientation}")
    if picture.mode != "RGB":
        found.append(
            f"{_MODES.get(picture.mode, '16 bits' if picture.mode.startswith('I;') else picture.mode)},"
            " not RGB"
        )
    short, long = sorted(picture.size)
    if short < SMALLEST_SIDE or long > LARGEST_SIDE or long > LARGEST_RATIO * short:
        found.append(f"{picture.width} × {picture.height} pixels")
    written = _FORMATS.get(picture.format or "", picture.format)
    if written != Image.registered_extensions().get(suffix):
        found.append(f"{written} in a file that ends in {suffix or 'nothing'}")
    return found
