"""Inspect image files one by one for damage and oddities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from vrag_kit.benchmarks.images import decode, open_image
from vrag_kit.errors import VragError

SMALLEST_SIDE = 32
"""Minimum pixels of the shorter side: a smaller image shows hardly anything (encoders read
224 and more).
"""
LARGEST_SIDE = 8000
"""Maximum pixels of the longer side: above it, decoding takes seconds and hundreds of megabytes
(photographs of iNaturalist have 800 at most).
"""
LARGEST_RATIO = 5
"""Maximum ratio of the longer to the shorter side: beyond it, an encoder's square crops most
of the image or flattens it.
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
"""(kind, description) pairs; kind is "damaged" or "odd"."""


def inspect_images(names: Sequence[str], root: Path) -> Iterator[tuple[str, Findings]]:
    """Yield (name, findings) of every image below `root`, in order, opening each once."""
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
    with open_image(data, str(path)) as header:
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
