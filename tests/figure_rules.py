"""What a figure of the kit must keep, read from its SVG. As a program: `figure_rules.py FILE …`."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

PAGE, TALLEST = 183 / 25.4 * 72, 170 / 25.4 * 72  # points
SMALLEST, NOTEBOOK, READABLE = 7.0, 900, 10.0  # points; pixels
_SVG = "{http://www.w3.org/2000/svg}"
_ID = re.compile(r"[A-Za-z0-9]_[A-Za-z0-9]")
_HYPHEN = re.compile(r"(?<![\w.–-])-\d")


@dataclass(frozen=True)
class Text:
    """A drawn line of text and its box: left, top, right, bottom, in points."""

    text: str
    size: float
    box: tuple[float, float, float, float]
    code: bool = False
    """Whether it is set as code is, in a monospaced font."""


def texts(root: ElementTree.Element) -> list[Text]:
    """Every line of text with the box that it fills, measured with matplotlib's own font."""
    found = []
    for element in root.iter(f"{_SVG}text"):
        line, style = "".join(element.itertext()), element.get("style", "")
        if not line.strip():
            continue
        size = float((re.search(r"font-size: ([\d.]+)px", style) or ["", "10"])[1])
        weight = "bold" if "font-weight: 700" in style else "normal"
        font = FontProperties(family="DejaVu Sans", weight=weight, size=size)
        width = float(TextPath((0, 0), line, prop=font).get_extents().width)
        anchor = 0.5 if "anchor: middle" in style else 1.0 if "anchor: end" in style else 0.0
        moved = re.search(r"translate\(([-\d.]+) ([-\d.]+)\)", element.get("transform", ""))
        x, y = map(float, moved.groups() if moved else (element.get("x", 0), element.get("y", 0)))
        turned = re.search(r"rotate\(-?(90|270)", element.get("transform", ""))
        along, up, down = anchor * width, 0.73 * size, 0.2 * size
        box = (
            (x - up, y - width + along, x + down, y + along)
            if turned
            else (x - along, y - up, x - along + width, y + down)
        )
        found.append(Text(line, size, box, "Mono" in style or "monospace" in style))
    return found


def broken_rules(file: Path) -> list[str]:
    """The rules that a figure breaks, in words; empty if none."""
    root = ElementTree.parse(file).getroot()
    wide, high = (float(root.get(side, "0").removesuffix("pt")) for side in ("width", "height"))
    lines = texts(root)
    panels = [
        each for each in root.iter(f"{_SVG}g") if re.fullmatch(r"axes_\d+", each.get("id", ""))
    ]
    pictures = next(root.iter(f"{_SVG}image"), None) is not None
    broken = []
    if wide > PAGE + 1 or high > TALLEST + 1:
        broken.append(f"{wide / 72 * 25.4:.0f} x {high / 72 * 25.4:.0f} mm is larger than a page")
    for text in lines:
        if text.size < SMALLEST - 0.01 or text.size * NOTEBOOK / wide < READABLE:
            broken.append(f"{text.text!r} is of {text.size:g} pt")
        if _ID.search(text.text) and not text.code:
            broken.append(f"{text.text!r} is an id")
        if _HYPHEN.search(text.text):
            broken.append(f"{text.text!r} has a hyphen for a minus")
        left, top, right, bottom = text.box
        if left < -1 or top < -1 or right > wide + 1 or bottom > high + 1:
            broken.append(f"{text.text!r} leaves the canvas")
    for a, b in combinations(lines, 2):
        if (
            min(a.box[2], b.box[2]) - max(a.box[0], b.box[0]) > 0.8
            and min(a.box[3], b.box[3]) - max(a.box[1], b.box[1]) > 0.8
        ):
            broken.append(f"{a.text!r} overlaps {b.text!r}")
    if len(panels) > 6 and not pictures:
        broken.append(f"{len(panels)} panels")
    for name in ("title", "desc"):
        if not (root.findtext(f"{_SVG}{name}") or "").strip():
            broken.append(f"no {name}")
    return broken


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for rule in broken_rules(Path(name)):
            print(f"{name}: {rule}")
