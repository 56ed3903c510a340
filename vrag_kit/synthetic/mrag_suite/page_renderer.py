"""Images of printed pages: pages of an encyclopedia, slides, figures with panels, bar charts. The
fonts come with matplotlib, so that they look alike everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from vrag_kit.synthetic.visual_rag.pages import draw_plate
from vrag_kit.synthetic.world.organisms import KINDS, HiddenPart
from vrag_kit.synthetic.world.photographs import SCENES, View, plan_clue_photo, sample_view
from vrag_kit.synthetic.world.shapes import Color, darker, lighter
from vrag_kit.synthetic.world.traits import COLORS, Species, stream

INK = (38, 34, 30)
_WHITE = (255, 255, 255)
_GRAY = (120, 114, 106)
_BAR = (0, 114, 178)
_SERIF = "DejaVuSerif.ttf"
_BOLD = "DejaVuSerif-Bold.ttf"
_SANS = "DejaVuSans.ttf"


@cache
def _font(name: str, size: int) -> ImageFont.FreeTypeFont:
    import matplotlib  # heavy

    layout = ImageFont.Layout.BASIC  # the same with and without a library for ligatures
    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    return ImageFont.truetype(folder / name, size, layout_engine=layout)


@dataclass(slots=True)
class _Column:
    """Lines of text below each other."""

    pen: ImageDraw.ImageDraw
    left: int
    top: int
    width: int

    def write(self, text: str, font: ImageFont.FreeTypeFont, ink: Color = INK) -> None:
        """Write a paragraph, broken between words."""
        line = ""
        for word in text.split():
            longer = f"{line} {word}".strip()
            if line and font.getlength(longer) > self.width:
                self._line(line, font, ink)
                longer = word
            line = longer
        self._line(line, font, ink)

    def _line(self, line: str, font: ImageFont.FreeTypeFont, ink: Color) -> None:
        self.pen.text((self.left, self.top), line, font=font, fill=ink)
        self.top += round(font.size * 1.38)


def draw_portrait(species: Species, name: str, size: int) -> Image.Image:
    """A plate of the species at rest, with nothing before it, which shows nothing hidden."""
    rng = stream(name, "portrait")
    pose = KINDS[species.kind].resting[0]
    return _plate(species, sample_view(species, pose, 0.0, rng, f"{name}/portrait"), size)


def draw_detail(species: Species, part: HiddenPart, name: str, size: int) -> Image.Image:
    """A plate of the species that shows a hidden part."""
    return _plate(species, plan_clue_photo(species, part, f"{name}/detail").view, size)


def _plate(species: Species, view: View, size: int) -> Image.Image:
    near = replace(view, scale=0.86, x=0.0, y=0.0, blades=0, leaf=False)
    return draw_plate(species, near, size)


def encyclopedia_page(
    title: str, sections: Sequence[tuple[str, str]], picture: Image.Image, number: int
) -> Image.Image:
    """An article as a page of a book, 420 × 560 pixels, RGB."""
    page = Image.new("RGB", (420, 560), (250, 247, 240))
    pen = ImageDraw.Draw(page)
    column = _Column(pen, 32, 26, 356)
    column.write("THE FIELD GUIDE'S ENCYCLOPEDIA", _font(_SERIF, 9), _GRAY)
    column.top += 6
    column.write(title, _font(_BOLD, 20))
    pen.line([(32, column.top + 4), (388, column.top + 4)], fill=INK)
    column.top += 14
    page.paste(picture, (388 - picture.width, column.top))
    below = column.top + picture.height + 10
    column.width = 356 - picture.width - 14
    for place, (heading, text) in enumerate(sections):
        if place:
            column.top = max(column.top, below)
            column.width = 356
        if heading:
            column.write(heading, _font(_BOLD, 13))
        column.write(text, _font(_SERIF, 12))
        column.top += 9
    pen.text((210, 538), str(number), font=_font(_SERIF, 10), fill=_GRAY, anchor="mm")
    return page


def slide(title: str, lines: Sequence[str], picture: Image.Image, kind: str) -> Image.Image:
    """A slide with a heading and a few points, 480 × 300 pixels, RGB, in the colours
    where that `kind` of organism lives.
    """
    palette = SCENES[KINDS[kind].scene]
    page = Image.new("RGB", (480, 300), lighter(palette[0], 0.82))
    pen = ImageDraw.Draw(page)
    dark = darker(palette[-1], 0.6)
    pen.rectangle([0, 0, 480, 62], fill=dark)
    pen.text((24, 31), title, font=_font(_BOLD, 17), fill=_WHITE, anchor="lm")
    page.paste(picture, (452 - picture.width, 92))
    column = _Column(pen, 42, 88, 290)
    for line in lines:
        pen.ellipse([24, column.top + 6, 31, column.top + 13], fill=dark)
        column.write(line, _font(_SANS, 17))
        column.top += 12
    return page


def figure(panels: Sequence[Image.Image], legend: str) -> Image.Image:
    """Two pictures with letters, and what is said of them below; RGB, 420 wide."""
    side = panels[0].width
    page = Image.new("RGB", (420, side + 134), _WHITE)
    pen = ImageDraw.Draw(page)
    left = (420 - 2 * side - 16) // 2
    for letter, picture in zip("ab", panels, strict=True):
        page.paste(picture, (left, 20))
        pen.rectangle([left, 20, left + 22, 40], fill=_WHITE)
        pen.text((left + 11, 30), letter, font=_font(_BOLD, 13), fill=INK, anchor="mm")
        left += side + 16
    _Column(pen, 28, side + 34, 364).write(legend, _font(_SERIF, 12))
    return page


def bar_chart(title: str, note: str, axis: str, bars: Sequence[tuple[str, int]]) -> Image.Image:
    """Bars with their labels and numbers below a title and a note, 480 × 320 pixels, RGB;
    a label that is a colour gives its bar that colour.
    """
    page = Image.new("RGB", (480, 320), _WHITE)
    pen = ImageDraw.Draw(page)
    pen.text((20, 14), title, font=_font(_BOLD, 12), fill=INK)
    pen.text((20, 36), note, font=_font(_SANS, 11), fill=_GRAY)
    floor, left = 278, 52
    step = 408 // len(bars)
    top = max(20, -(-max(count for _, count in bars) // 20) * 20)
    for value in range(0, top + 1, 20):
        y = floor - round(200 * value / top)
        pen.line([(left - 4, y), (left + 408, y)], fill=(226, 226, 226))
        pen.text((left - 8, y), str(value), font=_font(_SANS, 10), fill=_GRAY, anchor="rm")
    for place, (label, count) in enumerate(bars):
        x, y = left + place * step + step // 4, floor - round(200 * count / top)
        shade = COLORS.get(label, _BAR)
        pen.rectangle([x, y, x + step // 2, floor], fill=shade, outline=_GRAY)
        middle = x + step / 4
        pen.text((middle, y - 7), str(count), font=_font(_SANS, 10), fill=INK, anchor="mm")
        pen.text((middle, floor + 11), label, font=_font(_SANS, 10), fill=INK, anchor="mm")
    pen.line([(left - 4, floor), (left + 408, floor)], fill=INK)
    pen.text((left - 36, 302), axis, font=_font(_SANS, 10), fill=_GRAY)
    return page


def add_scan_effects(page: Image.Image, name: str) -> Image.Image:
    """The page as it lies on a scanner: a little turned, with uneven light and grain."""
    rng = stream(name, "scan")
    angle = float(rng.uniform(-1.2, 1.2))
    turned = page.rotate(angle, Image.Resampling.BILINEAR, fillcolor=(205, 200, 190))
    pixels = np.asarray(turned, dtype=np.float32)
    height, width = pixels.shape[:2]
    ramp = np.linspace(-0.5, 0.5, width, dtype=np.float32)[None, :, None]
    light = 1 + float(rng.uniform(-0.08, 0.08)) * ramp
    grain = rng.standard_normal((height, width, 1), dtype=np.float32) * 3
    return Image.fromarray(np.clip(pixels * light * 0.97 + grain, 0, 255).astype(np.uint8))
