"""What the fused head is trained on: pictures of fresh topics and the questions about
them, as the frozen towers of a retriever see them.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image

from vrag_kit.fieldguide.organisms import KINDS
from vrag_kit.fieldguide.scenarios.regions import REGIONS, RegionTopic
from vrag_kit.fieldguide.scenarios.table import SCENARIOS, topic
from vrag_kit.fieldguide.scenarios.topics import Topic
from vrag_kit.files import write_file
from vrag_kit.progress import track
from vrag_kit.retrieval.openclip import OpenClipEncoder

SIZE = 96  # side of a drawn picture, pixels
STAGE = 3  # of the picture tower
CHUNK = 240  # topics that an interruption can cost at most


class Topics(NamedTuple):
    """What is seen of n topics; the scenarios come in turn."""

    queries: torch.Tensor  # float16 (n, c): a picture that hides the answer
    texts: torch.Tensor  # float16 (n, d): the question about it
    examples: torch.Tensor  # float16 (n, e, c): pictures that show the answer
    places: torch.Tensor  # int64 (n,): topics of one region and kind share one, others −1

    def floats(self) -> Topics:
        """The same in float32."""
        texts, examples = self.texts.float(), self.examples.float()
        return Topics(self.queries.float(), texts, examples, self.places)


def topics_of(
    towers: OpenClipEncoder, name: str, number: int, examples: int, folder: Path
) -> Topics:
    """`number` fresh topics with so many examples each; what is seen of them is kept in
    `folder`, and what lies there is not drawn again.
    """
    from safetensors.torch import load, save

    folder.mkdir(parents=True, exist_ok=True)
    starts = range(0, number, CHUNK)
    parts = []
    for start in track(starts, f"drawing topics ({name})", len(starts), "parts"):
        places = range(start, min(start + CHUNK, number))
        file = folder / f"{name}-{examples}-{places.start:06d}-{places.stop:06d}.safetensors"
        if not file.is_file():
            drawn = [_seen(towers, name, place, examples) for place in places]
            columns = zip(*drawn, strict=True)
            stacked = [torch.stack(column) for column in columns]
            write_file(file, save(dict(zip(Topics._fields, stacked, strict=True))))
        stored = load(file.read_bytes())
        parts.append([stored[key] for key in Topics._fields])
    return Topics(*(torch.cat(column) for column in zip(*parts, strict=True)))


@torch.inference_mode()
def _seen(towers: OpenClipEncoder, name: str, place: int, examples: int) -> Topics:
    """One topic, without its first dimension."""
    scenario = list(SCENARIOS)[place % len(SCENARIOS)]
    key = f"fused/{name}/{scenario}/{place}"
    about = topic(scenario, key)
    asked = about.asked()
    question = asked[place % len(asked)].text
    shown = [about.query(f"{key}/query", SIZE)]
    shown += [about.example(f"{key}/gt/{turn}", SIZE) for turn in range(examples)]
    pictures = towers.stage_features([towers.pixels(_pixels(each)) for each in shown], STAGE)
    texts = towers.text_features([question])
    where = torch.tensor(_place(about))
    return Topics(pictures[0].half(), texts[0].half(), pictures[1:].half(), where)


def _pixels(image: Image.Image) -> torch.Tensor:
    """uint8, shape (3, height, width)."""
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)


def _place(about: Topic) -> int:
    """One number for each region and kind, as their pictures show the same; −1 for all
    other topics, which are alone with theirs.
    """
    if not isinstance(about, RegionTopic):
        return -1
    return list(REGIONS).index(about.region.name) * len(KINDS) + list(KINDS).index(about.kind)
