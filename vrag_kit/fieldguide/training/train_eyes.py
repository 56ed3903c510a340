"""Teach the answerers' vision tower what MRAG-Bench's scenarios show: outsides of
organisms, withered ones, the chips of a tray, regions. `python -m
vrag_kit.fieldguide.training.train_eyes`.

It starts from the tower that is shipped in an answerer of the Field Guide, which knows
the hidden parts, and goes through the `stock` once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from vrag_kit.fieldguide.scenarios.regions import REGIONS, RegionTopic
from vrag_kit.fieldguide.scenarios.topics import OUTSIDE, SpeciesTopic
from vrag_kit.fieldguide.scenarios.trays import CODES, Tray
from vrag_kit.fieldguide.training.learner import Learner, rise_and_fall
from vrag_kit.fieldguide.training.steps import TRAINING, WEIGHTS, Clock
from vrag_kit.fieldguide.training.stock import (
    N_OTHERS,
    N_QUERIES,
    SHARD,
    Subject,
    draw_stock,
    shard_file,
    subject,
)
from vrag_kit.fieldguide.training.tower import (
    FEATURES,
    IMAGE_SIZE,
    to_input,
    tower_weights,
    tower_with,
)
from vrag_kit.fieldguide.training.train_tower import PARTS
from vrag_kit.fieldguide.traits import COLORS, PATTERNS, Look, stream
from vrag_kit.files import write_file

SEED = "choices"
SHARDS = 120
EXAM_SHARDS = 3
BATCH = 96
RATE = 1e-3
WHERE = TRAINING / "choices"
START = WEIGHTS / "field-guide-vlm-many" / "model.safetensors"
PLACES = (*PARTS, *OUTSIDE.items())
"""(kind, part): the twelve hidden parts, then the outside of each kind."""
HEADS = {
    "part": len(PLACES),
    "color": len(PLACES) * len(COLORS),
    "pattern": len(PLACES) * len(PATTERNS),
    "second": len(PLACES) * len(COLORS),
    "region": len(REGIONS),
    "chips": len(CODES),
}


class Truth(NamedTuple):
    """What a picture shows; −1 where nothing is told of it."""

    part: int  # index into PLACES of the part that is told of
    shown: int  # 1 if it can be seen, 0 if the picture hides it
    look: tuple[int, int, int]  # colour, pattern, second colour
    region: int
    chips: tuple[float, ...]  # of CODES, 1 for those on the tray; −1 without a tray


NOTHING = Truth(-1, -1, (-1, -1, -1), -1, (-1.0,) * len(CODES))


def truths(about: Subject) -> list[Truth]:
    """Of every picture of a topic, in order; nothing is told of other topics' pictures."""
    shown = about.topic
    if isinstance(shown, RegionTopic):
        region = list(REGIONS).index(shown.region.name)
        query, example = NOTHING, NOTHING._replace(region=region)
    elif isinstance(shown, Tray):
        missing = shown.chips[shown.missing]
        chips = [float(color in shown.chips) for color in CODES]
        left = [float(color in shown.chips and color != missing) for color in CODES]
        query, example = NOTHING._replace(chips=tuple(left)), NOTHING._replace(chips=tuple(chips))
    else:
        assert isinstance(shown, SpeciesTopic)
        part = PLACES.index((shown.species.kind, shown.part))
        query = NOTHING._replace(part=part, shown=0)
        example = NOTHING._replace(part=part, shown=1, look=_numbers(shown.look))
    return [query] * N_QUERIES + [example] * about.n_examples + [NOTHING] * N_OTHERS


def _numbers(look: Look) -> tuple[int, int, int]:
    colors = list(COLORS)
    second = colors.index(look.second) if look.pattern != "plain" else -1
    return colors.index(look.color), PATTERNS.index(look.pattern), second


class Batch(NamedTuple):
    """Pictures and the truth about them."""

    pixels: torch.Tensor  # uint8, (n, 3, size, size)
    part: torch.Tensor  # int64, (n,)
    shown: torch.Tensor  # int64, (n,)
    look: torch.Tensor  # int64, (n, 3)
    region: torch.Tensor  # int64, (n,)
    chips: torch.Tensor  # float32, (n, 11)


def batches(seed: str, shards: list[int], folder: Path) -> Iterator[Batch]:
    """All pictures of whole files that something is told of, mixed over four files at a
    time.
    """
    for start in range(0, len(shards), 4):
        chosen = shards[start : start + 4]
        pixels, told = [], []
        for shard in chosen:
            drawn = np.load(shard_file(folder, shard), mmap_mode="r")
            every: list[Truth] = []
            for i in range(SHARD):
                every += truths(subject(seed, shard * SHARD + i))
            kept = [i for i, truth in enumerate(every) if truth != NOTHING]
            pixels.append(np.asarray(drawn[kept]))
            told += [every[i] for i in kept]
        drawn = np.concatenate(pixels)
        order = stream(seed, "order", start).permutation(len(told))
        for first in range(0, len(order) - BATCH + 1, BATCH):
            yield _batch(drawn, told, order[first : first + BATCH].tolist())


def _batch(drawn: np.ndarray, told: list[Truth], chosen: list[int]) -> Batch:
    truth = [told[i] for i in chosen]
    return Batch(
        torch.from_numpy(drawn[chosen]).permute(0, 3, 1, 2),
        torch.tensor([each.part for each in truth]),
        torch.tensor([each.shown for each in truth]),
        torch.tensor([each.look for each in truth]),
        torch.tensor([each.region for each in truth]),
        torch.tensor([each.chips for each in truth]),
    )


class Reader(nn.Module):
    """What the tower is taught with, and thrown away afterwards: the truth read linearly
    off its mean feature.
    """

    def __init__(self, tower: nn.Module) -> None:
        super().__init__()
        self.tower = tower
        self.heads = nn.Linear(FEATURES, sum(HEADS.values()))

    def forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Head → logits, (n, classes); colour, pattern and second (n, 18, classes)."""
        found = self.heads(self.tower(to_input(pixels)).mean(dim=(2, 3)))
        heads = dict(zip(HEADS, found.split(list(HEADS.values()), dim=1), strict=True))
        for name in ("color", "pattern", "second"):
            heads[name] = heads[name].unflatten(1, (len(PLACES), -1))
        return heads


def reading_loss(heads: dict[str, torch.Tensor], batch: Batch) -> torch.Tensor:
    """Sum of the heads' cross-entropies, each over what is told."""
    own = batch.part >= 0
    of_part = batch.part.clamp(min=0)[:, None]
    logit = heads["part"].gather(1, of_part)[:, 0][own]
    loss = F.binary_cross_entropy_with_logits(logit, batch.shown[own].float())
    rows = torch.arange(len(batch.part))
    for place, name in enumerate(("color", "pattern", "second")):
        logits = heads[name][rows, of_part[:, 0]]
        loss = loss + _told(logits, batch.look[:, place])
    loss = loss + _told(heads["region"], batch.region)
    on_tray = batch.chips[:, 0] >= 0
    if on_tray.any():
        chips = F.binary_cross_entropy_with_logits(heads["chips"][on_tray], batch.chips[on_tray])
        loss = loss + chips
    return loss


def _told(logits: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """Cross-entropy over the rows with a truth; 0 without any."""
    if not (truth >= 0).any():
        return logits.sum() * 0
    return F.cross_entropy(logits, truth, ignore_index=-1)


@torch.inference_mode()
def validate(reader: Reader, held_out: list[Batch]) -> dict[str, float]:
    """Share right by head on held-out topics, over what is told."""
    right: dict[str, list[torch.Tensor]] = {name: [] for name in HEADS}
    for batch in held_out:
        heads, own = reader(batch.pixels), batch.part >= 0
        rows, of_part = torch.arange(len(own)), batch.part.clamp(min=0)
        part = heads["part"][rows, of_part] > 0
        right["part"].append((part == (batch.shown > 0))[own].float())
        for place, name in enumerate(("color", "pattern", "second")):
            truth = batch.look[:, place]
            guess = heads[name][rows, of_part].argmax(1)
            right[name].append((guess == truth)[truth >= 0].float())
        at = batch.region >= 0
        right["region"].append((heads["region"].argmax(1) == batch.region)[at].float())
        on_tray = batch.chips[:, 0] >= 0
        right["chips"].append(
            ((heads["chips"] > 0) == (batch.chips > 0))[on_tray].float().flatten()
        )
    return {name: round(float(torch.cat(values).mean()), 3) for name, values in right.items()}


def train_eyes(folder: Path) -> Path:
    """Train the tower, unless it is there, and return its weights (safetensors); the log
    lies beside them (`.json`).
    """
    from safetensors.torch import save

    done = folder / "eyes.safetensors"
    if done.is_file():
        return done
    draw_stock(SEED, SHARDS, IMAGE_SIZE, folder)
    draw_stock(f"{SEED}/exam", EXAM_SHARDS, IMAGE_SIZE, folder / "exam")
    torch.manual_seed(int(stream(SEED, "eyes").integers(2**31)))
    reader = Reader(tower_with(tower_weights(START)))
    # torch documents memory_format, but its types leave it out
    reader.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    told = 0
    for number in range(SHARDS * SHARD):
        told += sum(truth != NOTHING for truth in truths(subject(SEED, number)))
    notes = {
        "seed": SEED,
        "topics": SHARDS * SHARD,
        "pictures": told,
        "batch": BATCH,
        "rate": RATE,
        "torch": torch.__version__,
        "log": learn(reader, told // BATCH, folder),
    }
    write_file(done.with_suffix(".json"), json.dumps(notes, indent=2))
    weights = {key: value.contiguous() for key, value in reader.tower.state_dict().items()}
    write_file(done, save(weights))
    return done


def learn(reader: Reader, steps: int, folder: Path) -> list[dict[str, float]]:
    """Go through the stock once, about so many steps; returns the log."""
    held_out = list(batches(f"{SEED}/exam", list(range(EXAM_SHARDS)), folder / "exam"))
    optimizer = torch.optim.AdamW(reader.parameters(), lr=RATE, weight_decay=0.05)
    learner = Learner(reader, optimizer, partial(rise_and_fall, steps=steps, rise=100))
    log: list[dict[str, float]] = []
    clock = Clock()
    for step, batch in enumerate(batches(SEED, list(range(SHARDS)), folder), start=1):
        clock.take(learner.step([reading_loss(reader.train()(batch.pixels), batch)]))
        if step % 100 == 0:
            log.append(clock.row(step, validate(reader.eval(), held_out), digits=3))
    log.append(clock.row(step, validate(reader.eval(), held_out), digits=3))
    return log


if __name__ == "__main__":
    torch.set_num_threads(1)
    train_eyes(WHERE)
