"""Worn and usual pictures of fresh species, drawn once and kept: what the image encoder
and the answerer of conversations learn on.

Species come in clusters of `ALIKE`: one, and others that are easily taken for it. Their
colours and patterns are those of every world; none of them is in an edition. A species
and its pictures follow from its number, so that only pixels and boxes are stored.
"""

from __future__ import annotations

import io
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from vrag_kit.fieldguide.album import invent_named
from vrag_kit.fieldguide.organisms import KINDS
from vrag_kit.fieldguide.training.shards import draw_shards
from vrag_kit.fieldguide.traits import COLORS, PATTERNS, Look, Species, stream
from vrag_kit.fieldguide.worn.pictures import QUALITIES, usual_picture, worn_picture
from vrag_kit.files import write_file

INPUT = (160, 128)
"""Height and width that the tower sees."""
ALIKE = 4
N_WORN, N_USUAL = 3, 1
EACH = N_WORN + N_USUAL
SHARD = 100
"""Species in a file."""
_QUALITY = (0.5, 0.1, 0.1, 0.1, 0.1, 0.1)
"""How often a worn picture is of each of `QUALITIES`."""
_PATTERN = (0.1, 0.3, 0.3, 0.3)
"""And a species of each of `PATTERNS`."""


@cache
def individual(seed: str, number: int) -> Species:
    """The species of that number."""
    cluster, place = divmod(number, ALIKE)
    key = f"{seed}/{cluster}"
    rng = stream(key, "cluster")
    kind = str(rng.choice(list(KINDS)))
    base = invent_named(key, kind, 0)
    colors = [str(each) for each in rng.permutation(list(COLORS))]
    color, second = colors[:2]
    third, other = colors[2:4]
    pattern = str(rng.choice(PATTERNS, p=_PATTERN))
    looks = [
        Look(color, pattern, second),
        Look(color, pattern if pattern != "plain" else "banded", third),
        Look(other, pattern, second),
        Look(color, str(rng.choice([each for each in PATTERNS if each != pattern])), second),
    ]
    if place == ALIKE - 1 and rng.random() < 0.5:  # the same look in another kind
        kind = str(rng.choice([each for each in KINDS if each != kind]))
        base = replace(invent_named(key, kind, 0), build=base.build)
        return replace(base, outside=looks[0])
    return replace(base, outside=looks[place])


class Pictures(NamedTuple):
    """Those of n species: `N_WORN` worn ones of each, then `N_USUAL` usual ones."""

    pixels: npt.NDArray[np.uint8]  # (n, EACH, height, width, 3)
    boxes: npt.NDArray[np.float32]  # (n, N_WORN, 4): of the organism, edges in [0, 1]
    qualities: npt.NDArray[np.int64]  # (n, N_WORN): numbers of QUALITIES


def _draw(seed: str, number: int) -> Pictures:
    species = individual(seed, number)
    pixels: list[npt.NDArray[np.uint8]] = []
    boxes: list[npt.NDArray[np.float32]] = []
    qualities: list[int] = []
    for turn in range(N_WORN):
        name = f"{seed}/{number}/worn/{turn}"
        quality = int(stream(name, "quality").choice(len(QUALITIES), p=_QUALITY))
        image, box = worn_picture(species, QUALITIES[quality], name)
        pixels.append(_input(image))
        boxes.append((np.array(box) / np.array(image.size * 2)).astype(np.float32))
        qualities.append(quality)
    for turn in range(N_USUAL):
        pixels.append(_input(usual_picture(species, f"{seed}/{number}/usual/{turn}")))
    return Pictures(np.stack(pixels), np.stack(boxes), np.array(qualities))


def _input(image: Image.Image) -> npt.NDArray[np.uint8]:
    height, width = INPUT
    return np.asarray(image.resize((width, height), Image.Resampling.BICUBIC))


def draw_shard(seed: str, shard: int, folder: Path) -> Path:
    """Draw one file of the stock, unless it is there."""
    file = shard_file(folder, shard)
    if not file.is_file():
        first = shard * SHARD
        columns = zip(*[_draw(seed, first + i) for i in range(SHARD)], strict=True)
        drawn = Pictures(*map(np.stack, columns))
        content = io.BytesIO()
        np.savez(content, pixels=drawn.pixels, boxes=drawn.boxes, qualities=drawn.qualities)
        write_file(file, content.getvalue())
    return file


def shard_file(folder: Path, shard: int) -> Path:
    """Where a file of the stock lies."""
    return folder / f"worn-{shard:04d}.npz"


def draw_worn_stock(seed: str, shards: int, folder: Path) -> None:
    """Draw what is missing of the first `shards` files; those that are there stay."""
    folder.mkdir(parents=True, exist_ok=True)
    draw_shards(partial(draw_shard, seed, folder=folder), shards)


def read_shard(folder: Path, shard: int) -> Pictures:
    """A file of the stock."""
    with np.load(shard_file(folder, shard)) as stored:
        return Pictures(*(stored[name] for name in Pictures._fields))
