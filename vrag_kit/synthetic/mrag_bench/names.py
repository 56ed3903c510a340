"""File names like those of the real corpus: some tell the answer, some hold spaces, a
plus as %2B or letters beyond ASCII, and endings are of four sorts.
"""

from __future__ import annotations

import io

from PIL import Image

from vrag_kit.synthetic.mrag_bench.regions import RegionTopic
from vrag_kit.synthetic.mrag_bench.scenarios import SCENARIOS
from vrag_kit.synthetic.mrag_bench.topics import SpeciesTopic, Topic

_ROLES = ("input", "gt", "fp")
_SIDES = ("North", "Søndre", "Côte d'Azur", "Lower")


def image_name(scenario: str, topic: Topic, index: int, role: str, which: int) -> str:
    """The name of a topic's picture; `role` is "input", "gt" or "fp", `which` counts
    within it.
    """
    place = list(SCENARIOS).index(scenario) * 100 + index  # there are fewer topics than that
    serial = (place * len(_ROLES) + _ROLES.index(role)) * 32 + which
    number = serial * 7919 % 99_991  # a prime: numbers stay apart, and tell nothing
    end = f"{index}_{role}" if role == "input" and not which else f"{index}_{role}_{which}"
    if isinstance(topic, RegionTopic):
        side = _SIDES[number % len(_SIDES)]
        return f"regions_images_{topic.region.name}_{side}_{topic.kind}_{number:05d}.jpg"
    if scenario == "incomplete":
        return f"Mechanical_Tray_{end}.png"
    if scenario == "deformation":
        ending = "webp" if role == "input" else "jpg"
        return f"Mechanical_{topic.what}_{end}.{ending}"
    if scenario == "temporal":
        return f"Temporal_{topic.what}_{end}.jpg"
    if scenario == "biological":
        return f"Biological_{end}.jpg"
    return _of_a_collection(topic, number, "R%2B" if index % 2 else "R+")


def _of_a_collection(topic: Topic, number: int, sign: str) -> str:
    """As in ImageNet, Flowers102 and StanfordCars; the last tells the species."""
    part = "train" if number % 3 else "test"
    if topic.what == "Flower":
        return f"flowers_jpg_image_{number:05d}.jpg"
    if topic.what == "Fish" and isinstance(topic, SpeciesTopic):
        name = topic.species.common_name
        return f"wrasses_by_class_wrasse_{part}_{name} {sign} 2012_{number:05d}.jpg"
    return f"guidebook_val_GUIDE2026_val_{number:08d}.JPEG"


def encode_image(picture: Image.Image, name: str) -> bytes:
    """A picture as the bytes of a file of that name; PNG files have a palette, of which
    one colour is marked as transparent.
    """
    file = io.BytesIO()
    if name.endswith(".png"):
        few = picture.quantize(64, dither=Image.Dither.NONE)
        few.save(file, "PNG", transparency=0)
    elif name.endswith(".webp"):
        picture.save(file, "WEBP", quality=86, method=2)
    else:
        picture.save(file, "JPEG", quality=86)
    return file.getvalue()


def reencode_image(data: bytes) -> bytes:
    """The same pixels as other bytes: a PNG file without palette."""
    file = io.BytesIO()
    with Image.open(io.BytesIO(data)) as picture:
        picture.convert("RGB").save(file, "PNG")
    return file.getvalue()
