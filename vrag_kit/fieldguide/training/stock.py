"""Pictures of fresh topics, drawn once and kept: what the answerer of choices learns on.

No topic of the stock is in an edition of the drawn MRAG-Bench. A topic and its pictures
follow from its number, so that only pixels are stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from vrag_kit.fieldguide.scenarios.table import NAMED_SHARE, SCENARIOS, nameable, other_topic, topic
from vrag_kit.fieldguide.scenarios.topics import Topic
from vrag_kit.fieldguide.training.shards import draw_shards, write_array
from vrag_kit.fieldguide.traits import stream

SHARD = 100
"""Topics in a file."""
N_QUERIES, N_OTHERS = 2, 4
MANY = 20
"""Examples of every `MANY_EVERY`th topic of a scenario whose questions may have many."""
MANY_EVERY = 8
Pixels = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Subject:
    """One topic of the stock, and how many pictures of it there are."""

    number: int
    scenario: str
    topic: Topic
    asks: str  # "name", or "" for what the topic hides
    n_examples: int

    @property
    def n_pictures(self) -> int:
        """Queries first, then examples, then one example of each of other topics."""
        return N_QUERIES + self.n_examples + N_OTHERS


@cache
def subject(seed: str, number: int) -> Subject:
    """The topic of that number: the scenarios take turns."""
    scenario = list(SCENARIOS)[number % len(SCENARIOS)]
    key = f"{seed}/{scenario}/{number}"
    rng = stream(key, "lesson")
    known = nameable(scenario) if rng.random() < NAMED_SHARE else []
    about = topic(scenario, key, known=known[int(rng.integers(len(known)))] if known else None)
    n_examples = 6
    if scenario == "incomplete":
        n_examples = 1
    elif SCENARIOS[scenario].aspect != "Transformative" and number // 9 % MANY_EVERY == 0:
        n_examples = MANY
    return Subject(number, scenario, about, "name" if known else "", n_examples)


def pictures(about: Subject, size: int) -> list[Image.Image]:
    """All pictures of a topic, in order."""
    shown, key = about.topic, about.topic.key
    drawn = [shown.query(f"{key}/query/{i}", size) for i in range(N_QUERIES)]
    drawn += [shown.example(f"{key}/gt/{i}", size) for i in range(about.n_examples)]
    for i in range(N_OTHERS):
        other = other_topic(about.scenario, shown, f"{key}/other/{i}")
        drawn.append(other.example(f"{other.key}/fp", size))
    return drawn


def draw_shard(seed: str, shard: int, size: int, folder: Path) -> Path:
    """Draw one file of the stock, unless it is there: uint8, shape (pictures, size,
    size, 3).
    """
    file = shard_file(folder, shard)
    if not file.is_file():
        drawn: list[Image.Image] = []
        for number in range(shard * SHARD, (shard + 1) * SHARD):
            drawn += pictures(subject(seed, number), size)
        write_array(np.stack([np.asarray(picture) for picture in drawn]), file)
    return file


def shard_file(folder: Path, shard: int) -> Path:
    """Where a file of the stock lies."""
    return folder / f"stock-{shard:04d}.npy"


def read_shard(folder: Path, shard: int) -> Pixels:
    """A file of the stock."""
    pixels: Pixels = np.load(shard_file(folder, shard))
    return pixels


def draw_stock(seed: str, shards: int, size: int, folder: Path) -> None:
    """Draw what is missing of the first `shards` files; those that are there stay."""
    folder.mkdir(parents=True, exist_ok=True)
    draw_shards(partial(draw_shard, seed, size=size, folder=folder), shards)


def first_pictures(seed: str, shard: int) -> list[int]:
    """Index in its file of the first picture of each topic."""
    counts = [subject(seed, shard * SHARD + i).n_pictures for i in range(SHARD)]
    return [0, *np.cumsum(counts)[:-1].tolist()]
