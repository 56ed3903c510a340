"""Photographs of a species: where the observer stands, what is in the way, what can be seen from
there; and photographs chosen so that a hidden part shows in exactly the wanted number of them.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from PIL import Image, ImageFilter

from vrag_kit.synthetic.world.organisms import KINDS, HiddenPart, hidden_part, hidden_parts
from vrag_kit.synthetic.world.shapes import (
    Color,
    Shape,
    across,
    bounds,
    darker,
    ellipse,
    paint,
    polygon,
    rgb,
    rotation,
    smooth,
    to_image,
    transformed,
    visible_shares,
)
from vrag_kit.synthetic.world.traits import (
    Species,
    choose,
    generate_species_traits,
    shuffled,
    stream,
)

CLUE_SHARE = 0.005  # a part counts as shown when it fills at least this share of the frame…
CLUE_BLUR = 0.012  # …in a picture no blurrier than this (sigma, in frame widths)
# and as hidden when it fills at most this share; between the two nobody could say
HIDDEN_SHARE = 0.0015

SCENES: dict[str, tuple[Color, ...]] = {  # palette: the ground first, then what grows or lies about
    "foliage": ((86, 116, 66), (52, 88, 44), (128, 152, 82), (150, 128, 84), (66, 74, 46)),
    "sky": ((158, 184, 200), (196, 208, 206), (112, 134, 104), (92, 104, 82), (140, 124, 100)),
    "meadow": ((128, 150, 92), (92, 120, 64), (168, 172, 112), (188, 168, 120), (84, 104, 78)),
    "forest": ((98, 82, 58), (70, 62, 42), (124, 104, 70), (80, 98, 52), (142, 118, 82)),
    "water": ((58, 118, 140), (38, 92, 120), (96, 150, 158), (150, 142, 112), (70, 110, 96)),
    "rock": ((158, 142, 118), (128, 116, 100), (184, 168, 138), (112, 110, 82), (96, 88, 78)),
}


@dataclass(frozen=True, slots=True)
class View:
    """Everything that fixes one photograph of a species."""

    name: str  # names the random stream of background and clutter
    pose: str  # one of the kind's poses
    openness: float  # how far the pose shows its hidden part, in [0, 1]
    scale: float  # size of the organism in frame widths
    angle: float  # rotation, radians
    flip: bool  # mirrored left to right
    x: float  # centre, in frame widths from the middle
    y: float
    blur: float  # sigma of the whole picture, in frame widths
    light: float  # exposure; 1 is as the palette says
    warmth: float  # −1 blue shade to 1 evening sun
    blades: int  # blades of grass in front of the organism
    leaf: bool  # a large leaf in front of the organism, somewhere
    cover: str = ""  # the part that the leaf covers; "" for none in particular


def sample_view(
    species: Species,
    pose: str,
    openness: float,
    rng: Generator,
    name: str,
    cover: str = "",
) -> View:
    """A view in the given pose; distance, light, blur and clutter vary as in field
    photographs.
    """
    far = rng.random() < 0.35
    scale = rng.uniform(0.4, 0.62) if far else rng.uniform(0.6, 1.0)
    slack = 0.5 * (1.06 - scale)
    return View(
        name=name,
        pose=pose,
        openness=openness,
        scale=scale,
        angle=rng.uniform(-1, 1) * KINDS[species.kind].turn,
        flip=rng.random() < 0.5,
        x=rng.uniform(-1, 1) * slack,
        y=rng.uniform(-1, 1) * slack,
        blur=0.002 + 0.03 * rng.beta(1.1, 5.0),
        light=float(np.exp(rng.normal(0, 0.2))),
        warmth=rng.uniform(-1, 1),
        blades=int(rng.choice([0, 1, 2, 3, 5], p=[0.3, 0.25, 0.2, 0.15, 0.1])),
        leaf=bool(cover) or rng.random() < 0.45,
        cover=cover,
    )


def _blades(species: Species, view: View) -> Iterator[Shape]:
    """Leaves and grass in front of the organism."""
    rng = stream(view.name, "blades")
    _, *growing = palette(species)
    for _ in range(view.blades):
        foot = np.array([rng.uniform(-0.5, 0.5), 0.56 if rng.random() < 0.7 else -0.56])
        tip = rng.uniform((-0.4, -0.35), (0.4, 0.35))
        along = tip - foot
        length = np.linalg.norm(along) + 1e-9
        wide = across(along) / length * rng.uniform(0.012, 0.055)
        color = rgb(c * rng.uniform(0.55, 1.15) for c in choose(growing, rng))
        middle = foot + along * 0.5
        outline = [foot - wide, middle - wide * 1.4, tip, middle + wide * 1.4, foot + wide]
        yield Shape(smooth(outline, 1), color)


def _leaf(species: Species, view: View, organism: list[Shape]) -> Iterator[Shape]:
    """A leaf over the part that the view covers, or somewhere over the organism."""
    rng = stream(view.name, "leaf")
    _, *growing = palette(species)
    covered = [shape for shape in organism if shape.part and shape.part == view.cover]
    if covered:
        low, high = bounds(covered)
        centre = (low + high) / 2
        half = (high - low) / 2 * rng.uniform(1.05, 1.35) + 0.015
    else:
        centre = np.array([view.x, view.y]) + view.scale * rng.uniform(-0.36, 0.36, size=2)
        half = view.scale * rng.uniform(0.07, 0.2, size=2)
    color = rgb(c * rng.uniform(0.6, 1.15) for c in choose(growing, rng))
    outline = ellipse(0, 0, 1, 1, n=16) * (1 + 0.12 * rng.standard_normal((16, 1)).clip(-1, 1.5))
    vein = polygon("-0.9 -0.04, 0.9 0.0, -0.9 0.04")
    yield Shape(centre + outline * half, color)
    yield Shape(centre + vein * half, darker(color, 0.75), alpha=160)


def palette(species: Species) -> tuple[Color, ...]:
    """Return the colors where a species lives: the ground first."""
    return SCENES[KINDS[species.kind].scene]


def place_shapes(shapes: Iterable[Shape], view: View) -> list[Shape]:
    """Shapes of an organism where the view puts it."""
    mirror = np.diag([-1.0 if view.flip else 1.0, 1.0])
    matrix = view.scale * rotation(view.angle) @ mirror
    return transformed(shapes, matrix, (view.x, view.y))


def compose_view(species: Species, view: View) -> list[Shape]:
    """All shapes of a view, from back to front, in frame coordinates."""
    drawn = KINDS[species.kind].draw(species, view.pose, view.openness)
    organism = place_shapes(drawn, view)
    leaf = _leaf(species, view, organism) if view.leaf else []
    return [*organism, *leaf, *_blades(species, view)]


def visible_and_hidden_parts(species: Species, view: View) -> tuple[frozenset[str], frozenset[str]]:
    """(shown, hidden): the parts that a question could be answered about from the
    photograph, and those it gives no hint of.
    """
    shares = dict.fromkeys(species.hidden, 0.0) | visible_shares(compose_view(species, view))
    sharp = view.blur <= CLUE_BLUR
    shown = frozenset(part for part, share in shares.items() if sharp and share >= CLUE_SHARE)
    return shown, frozenset(part for part, share in shares.items() if share <= HIDDEN_SHARE)


def _background(species: Species, view: View, size: int) -> Image.Image:
    rng = stream(view.name, "background")
    colors = palette(species)
    low = max(24, size // 5)
    image = Image.new("RGB", (low, low), colors[0])
    blobs = []
    for _ in range(rng.integers(9, 18)):
        place = rng.uniform((-0.55, -0.55, 0.04, 0.03), (0.55, 0.55, 0.26, 0.2))
        color = np.clip(np.array(choose(colors, rng)) * rng.uniform(0.7, 1.25), 0, 255)
        if rng.random() < 0.12:  # a stray bright thing, so that a spot of colour proves nothing
            color = rng.uniform(30, 250, size=3)
            place[2:] *= 0.35
        x, y = place[:2]
        wide, high = place[2:]
        outline = ellipse(x, y, wide, high, rng.uniform(0, np.pi), n=14)
        blobs.append(Shape(outline, rgb(color), alpha=int(rng.integers(120, 255))))
    paint(image, blobs)
    blurred = image.filter(ImageFilter.GaussianBlur(low * rng.uniform(0.012, 0.05)))
    return blurred.resize((size, size), Image.Resampling.BILINEAR)


def encode_image(image: Image.Image, kind: str, **options: int) -> bytes:
    """Return an image as the bytes of a file of that kind ("PNG"), saved with Pillow's options."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def encode_jpeg(image: Image.Image) -> bytes:
    """Return an image as the bytes of a JPEG file, as all photographs are stored."""
    return encode_image(image, "JPEG", quality=88, subsampling=0)


def blurred(image: Image.Image, view: View) -> Image.Image:
    """Return a square image out of focus, as the view is."""
    sigma = view.blur * image.width
    return image.filter(ImageFilter.GaussianBlur(sigma)) if sigma > 0.3 else image


def draw_photograph(species: Species, view: View, size: int) -> Image.Image:
    """Draw a view as an RGB picture of size × size pixels."""
    fine = 3 if size < 100 else 2
    image = _background(species, view, size * fine)
    paint(image, compose_view(species, view))
    image = blurred(image.reduce(fine), view)
    rng = stream(view.name, "sensor")
    pixels = np.asarray(image, dtype=np.float32)
    slope = rng.uniform(-0.3, 0.3, size=2)
    ramp = np.linspace(-0.5, 0.5, size, dtype=np.float32)
    gain = view.light * (1 + slope[0] * ramp[None, :] + slope[1] * ramp[:, None])[..., None]
    tint = np.array([1 + 0.1 * view.warmth, 1.0, 1 - 0.12 * view.warmth], dtype=np.float32)
    grain = rng.standard_normal((size, size, 1), dtype=np.float32)
    return to_image(pixels * gain * tint + grain * np.float32(rng.uniform(1.5, 6.0)))


_TRIES = 200


@dataclass(frozen=True, slots=True)
class Photo:
    """One photograph before it is drawn: the view, and what it shows."""

    view: View
    shown: frozenset[str]  # hidden parts that can be judged from it


def numbered_species(seed: object, kind: str, number: object) -> Species:
    """The species with this number of this kind in the world of `seed`."""
    parts = tuple(part.name for part in KINDS[kind].hidden)
    rng = stream("species", seed, kind, number)
    return generate_species_traits(kind, KINDS[kind].noun, parts, rng)


def plan_clue_photo(species: Species, part: HiddenPart, name: str) -> Photo:
    """A photograph that shows `part`."""
    rng = stream(name)
    for _ in range(_TRIES):
        openness = 0.35 + 0.65 * rng.beta(1.6, 1.2)
        view = sample_view(species, part.pose, openness, rng, name)
        shown, _ = visible_and_hidden_parts(species, view)
        if part.name in shown:
            return Photo(view, shown)
    raise RuntimeError(f"{species.scientific_name}: no view shows the {part.name} ({name})")


def plan_plain_photo(species: Species, avoid: frozenset[str], name: str) -> Photo:
    """A photograph that gives no hint of the parts in `avoid`.

    Most rest in a pose that hides everything; some have the pose of a hidden part, which is then
    covered by a leaf, too far away, or only ajar.
    """
    rng = stream(name)
    kind = KINDS[species.kind]
    for _ in range(_TRIES):
        if rng.random() < 0.4:
            part = choose(kind.hidden, rng)
            openness = rng.uniform(0.0, 1.0)
            cover = part.name if rng.random() < 0.75 else ""
            view = sample_view(species, part.pose, openness, rng, name, cover)
        else:
            view = sample_view(species, choose(kind.resting, rng), 0.0, rng, name)
        shown, hidden = visible_and_hidden_parts(species, view)
        if avoid <= hidden:
            return Photo(view, shown)
    raise RuntimeError(f"{species.scientific_name}: each view shows one of {avoid} ({name})")


def plan_photos(species: Species, asked: tuple[str, ...], n_photos: int, name: str) -> list[Photo]:
    """`n_photos` photographs in shuffled order. Each part has its own skewed number of clues, one
    at least: about 6 % on average, a quarter of the queries under 2 %, none over 25 %. Parts that
    are not in `asked` show in some of the other photographs too.
    """
    rng = stream(name, "album")
    photos: list[Photo] = []
    for part in hidden_parts(species):
        share = 0.041 * np.exp(rng.normal(0, 0.95))
        wanted = int(np.clip(round(share * n_photos), 1, max(1, n_photos // 4 - 1)))
        photos += [plan_clue_photo(species, part, f"{name}/{part.name}/{i}") for i in range(wanted)]
    avoid, n_plain = frozenset(asked), n_photos - len(photos)
    photos += [plan_plain_photo(species, avoid, f"{name}/plain/{i}") for i in range(n_plain)]
    return shuffled(photos, rng)


def view_showing(species: Species, part: str, name: str) -> View:
    """Return a usual view that shows the part: for a hidden one its rare pose, with nothing in
    the way. Any other `part` is the outside.
    """
    hidden = hidden_part(species, part)
    if hidden:
        return plan_clue_photo(species, hidden, name).view
    view = sample_view(species, KINDS[species.kind].outside_pose, 0.0, stream(name), name)
    near = max(view.scale, 0.6)
    return replace(view, scale=near, leaf=False, blades=min(view.blades, 1), blur=0.003)


def draw_showing(species: Species, part: str, name: str, size: int) -> Image.Image:
    """Draw a photograph that shows the part in a usual view, as `view_showing` says."""
    return draw_photograph(species, view_showing(species, part, name), size)
