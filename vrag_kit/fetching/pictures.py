"""Image files looked at one by one: which are damaged, and which are odd."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from vrag_kit.benchmarks.images import decode, opened
from vrag_kit.errors import VragError

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
_ORIENTATION = 0x0112  # in EXIF
_TURNED = range(2, 9)  # orientations other than upright
_AT_ONCE = 1024  # images handed to the threads together, so that memory does not grow

_THREADS = 4

Findings = list[tuple[str, str]]
"""(kind, what was found); kind is "damaged" or "odd"."""


def examine(names: Sequence[str], root: Path) -> Iterator[tuple[str, Findings]]:
    """(name, findings) of every image below `root`, in order, each opened once."""
    with ThreadPoolExecutor(_THREADS) as pool:
        for start in range(0, len(names), _AT_ONCE):
            part = names[start : start + _AT_ONCE]
            yield from zip(part, pool.map(_examine, [root / name for name in part]), strict=True)


def _examine(path: Path) -> Findings:
    """What is wrong or odd with one file, read once."""
    try:
        data = path.read_bytes()
    except OSError as error:
        return [("damaged", f"cannot be read ({error.strerror})")]
    try:
        decode(data, str(path))
    except VragError as error:
        return [("damaged", _damage(data, error).removeprefix(f"{path}: "))]
    with opened(data, str(path)) as header:
        oddities = _oddities(header, path.suffix.lower())
    return [("odd", "; ".join(oddities))] if oddities else []


def _damage(data: bytes, error: VragError) -> str:
    cause = error.__cause__
    if not data:
        return "empty file"
    if cause is None:  # too large
        return str(error)
    if isinstance(cause, UnidentifiedImageError):
        return f"no picture of a known format; its {len(data):,} bytes begin with {data[:12]!r}"
    return f"{cause}; the file has {len(data):,} bytes"


def _oddities(picture: Image.Image, suffix: str) -> list[str]:
    found = []
    orientation = picture.getexif().get(_ORIENTATION, 1)
    if orientation in _TURNED:
        found.append(f"EXIF orientation {orientation}")
    if picture.mode != "RGB":
        deep = "16 bits" if picture.mode.startswith("I;") else picture.mode
        found.append(f"{_MODES.get(picture.mode, deep)}, not RGB")
    short, long = sorted(picture.size)
    if short < SMALLEST_SIDE or long > LARGEST_SIDE or long > LARGEST_RATIO * short:
        found.append(f"{picture.width} × {picture.height} pixels")
    written = _FORMATS.get(picture.format or "", picture.format)
    if written != Image.registered_extensions().get(suffix):
        found.append(f"{written} in a file that ends in {suffix or 'nothing'}")
    return found
