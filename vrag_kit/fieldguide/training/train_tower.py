"""Teach the answerers' vision tower to see: name what each photograph shows, on a
stream of freshly invented species.

The renderer knows what it drew, so every photograph comes with the truth: which of the
twelve hidden parts it shows, and their ground colour, pattern and second colour. The
tower (a timm ResNet, as FastVLM's vision tower is a timm model) learns to read them off
small photographs. No species of a Field Guide is ever seen, and no photograph is seen
twice. `train_answerer` then puts a language model behind it.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from vrag_kit.fieldguide.album import Photo, clue_photo, invent_named, plain_photo
from vrag_kit.fieldguide.organisms import KINDS
from vrag_kit.fieldguide.questions import hidden_parts
from vrag_kit.fieldguide.shapes import part_map
from vrag_kit.fieldguide.training.learner import Learner, rise_and_fall
from vrag_kit.fieldguide.training.steps import TRAINING, Clock, prepared
from vrag_kit.fieldguide.training.tower import CHANNELS, FEATURES, IMAGE_SIZE, build_tower, to_input
from vrag_kit.fieldguide.traits import COLORS, PATTERNS, Species, stream
from vrag_kit.fieldguide.views import compose, photograph, seen_parts
from vrag_kit.files import write_file
from vrag_kit.plain import Json

CELL = 8  # side of a cell of the part map, pixels


def _all_parts() -> tuple[tuple[str, str], ...]:
    """(kind, hidden part) of every kind, in order."""
    found = []
    for kind, spec in KINDS.items():
        found += [(kind, part.name) for part in spec.hidden]
    return tuple(found)


PARTS = _all_parts()
HEADS = {"shown": 1, "color": len(COLORS), "pattern": len(PATTERNS), "second": len(COLORS)}
SEED, BATCH = "tower", 96
ROUNDS = ((2.5e-3, ((64, 3000), (IMAGE_SIZE, 1600))), (1.5e-3, ((IMAGE_SIZE, 3800),)))
"""One row a round: highest learning rate, then (side of the photographs in pixels,
steps). Small photographs first, as shapes are learned from them at half the time; a
second round of full size, with a reader that starts anew, because the first was still
getting better.
"""


def draw(species: Species, photos: list[Photo], size: int = IMAGE_SIZE) -> torch.Tensor:
    """The photographs as uint8, shape (n, 3, size, size)."""
    pictures = [np.asarray(photograph(species, photo.view, size)) for photo in photos]
    return torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2)


class Batch(NamedTuple):
    """Photographs and the truth about them."""

    pixels: torch.Tensor  # uint8, shape (batch, 3, size, size)
    # int64 (batch, 12, 4): shown 0 or 1, colour, pattern, second colour; −1 where there is none
    truth: torch.Tensor
    # int64 (batch, size/8, size/8): 1 + the number of the part that lies there, 0 for none
    places: torch.Tensor


class Photographs:
    """Batch number → photographs and truth; the same number gives the same batch."""

    def __init__(self, seed: str, phases: tuple[tuple[int, int], ...], batch: int) -> None:
        self.seed, self.batch = seed, batch
        self.sizes: list[int] = []
        for size, steps in phases:
            self.sizes += [size] * steps

    def __call__(self, number: int) -> Batch:
        """The photographs of this number, and their truth."""
        size = self.sizes[number]
        examples = [_example(f"{self.seed}/{number}/{i}", size) for i in range(self.batch)]
        pixels = torch.cat([example.pixels for example in examples])
        truth = torch.cat([example.truth for example in examples])
        return Batch(pixels, truth, torch.cat([example.places for example in examples]))


def _example(name: str, size: int) -> Batch:
    """One photograph of a species that is invented for it."""
    rng = stream(name)
    species = invent_named(name, str(rng.choice(list(KINDS))), 0)
    part = hidden_parts(species)[int(rng.integers(2))]
    if rng.random() < 0.65:
        photo = clue_photo(species, part, f"{name}/photo")
    else:
        photo = plain_photo(species, frozenset({part.name}), f"{name}/photo", 0.5)
    truth, places = _truth(species, photo), _places(species, photo, size)
    return Batch(draw(species, [photo], size), truth[None], places[None])


def _truth(species: Species, photo: Photo) -> torch.Tensor:
    """int64 (12, 4): what the photograph shows of each hidden part."""
    shown, hidden = seen_parts(species, photo.view)
    colors = list(COLORS)
    truth = torch.full((len(PARTS), len(HEADS)), -1)
    for row, (kind, part) in enumerate(PARTS):
        if kind != species.kind:
            truth[row, 0] = 0
            continue
        look = species.hidden[part]
        if part in shown or part in hidden:
            truth[row, 0] = int(part in shown)
        truth[row, 1] = colors.index(look.color)
        truth[row, 2] = PATTERNS.index(look.pattern)
        if look.pattern != "plain":
            truth[row, 3] = colors.index(look.second)
    return truth


def _places(species: Species, photo: Photo, size: int) -> torch.Tensor:
    """int64 (size/8, size/8): the part that fills most of each cell, if it fills three
    tenths of it.
    """
    labels, label_of = part_map(compose(species, photo.view), size)
    across = size // CELL
    pixels = np.asarray(labels).reshape(across, CELL, across, CELL)
    cells = np.zeros((across, across), np.int64)
    best = np.full((across, across), 0.3)
    for part, label in label_of.items():
        if part:
            share = (pixels == label).mean(axis=(1, 3))
            cells = np.where(share > best, 1 + PARTS.index((species.kind, part)), cells)
            best = np.maximum(best, share)
    return torch.from_numpy(cells)


class Reader(nn.Module):
    """What the tower is taught with, and thrown away afterwards: what the whole
    photograph shows, read linearly off the tower's mean feature; and which part lies
    where in which colour and pattern, read off its second and third stage.
    """

    def __init__(self, tower: nn.Module) -> None:
        super().__init__()
        self.tower: Any = tower  # a timm model: its stages are attributes without types
        self.whole = nn.Linear(FEATURES, len(PARTS) * sum(HEADS.values()))
        self.of_cells = [1 + len(PARTS), len(COLORS), len(PATTERNS), len(COLORS)]
        self.cells = nn.Conv2d(CHANNELS[1] + CHANNELS[2], sum(self.of_cells), 1)

    def forward(self, pixels: torch.Tensor) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """One tensor a head for the whole, (n, 12, classes), and one for the cells, (n,
        classes, size/8, size/8).
        """
        tower, x = self.tower, to_input(pixels)
        x = tower.maxpool(tower.act1(tower.bn1(tower.conv1(x))))
        fine = tower.layer2(tower.layer1(x))
        coarse = tower.layer3(fine)
        both = torch.cat([fine, F.interpolate(coarse, scale_factor=2.0)], dim=1)
        whole = self.whole(tower.layer4(coarse).mean(dim=(2, 3)))
        whole = whole.view(-1, len(PARTS), sum(HEADS.values()))
        by_head = whole.split(list(HEADS.values()), dim=2)
        return list(by_head), list(self.cells(both).split(self.of_cells, dim=1))


def reading_loss(
    whole: list[torch.Tensor], cells: list[torch.Tensor], batch: Batch
) -> torch.Tensor:
    """Sum of the heads' cross-entropies, each over what can be told."""
    truth, places = batch.truth, batch.places
    known = truth[..., 0] >= 0
    shown = truth[..., 0][known].float()
    loss = 4 * F.binary_cross_entropy_with_logits(whole[0][..., 0][known], shown)
    loss = loss + F.cross_entropy(cells[0], places, weight=torch.tensor([0.1] + [1.0] * len(PARTS)))
    shows = truth[..., 0] == 1
    part = (places.flatten(1) - 1).clamp(min=0)[..., None].expand(-1, -1, len(HEADS))
    there = truth.gather(1, part).view(*places.shape, len(HEADS))  # (n, size/8, size/8, 4)
    for head in range(1, len(HEADS)):
        told = shows & (truth[..., head] >= 0)
        loss = loss + F.cross_entropy(whole[head][told], truth[..., head][told])
        covered = (places > 0) & (there[..., head] >= 0)
        logits = cells[head].permute(0, 2, 3, 1)[covered]
        loss = loss + F.cross_entropy(logits, there[..., head][covered])
    return loss


@torch.inference_mode()
def validate(reader: Reader, batches: list[Batch]) -> dict[str, float]:
    """Share right, by head, over held-out species; "shown" over the parts of the
    organism's kind, the rest over parts that are shown.
    """
    right: dict[str, list[torch.Tensor]] = {name: [] for name in (*HEADS, "cells")}
    for batch in batches:
        truth = batch.truth
        whole, cells = reader(batch.pixels)
        found = cells[0].argmax(1) == batch.places
        right["cells"].append(found[batch.places > 0].float())
        own = (truth[..., 1] >= 0) & (truth[..., 0] >= 0)
        for head, (name, logits) in enumerate(zip(HEADS, whole, strict=True)):
            known = own if name == "shown" else own & (truth[..., 0] == 1) & (truth[..., head] >= 0)
            guess = (logits[..., 0] > 0).long() if name == "shown" else logits.argmax(2)
            right[name].append((guess == truth[..., head])[known].float())
    return {name: round(float(torch.cat(values).mean()), 4) for name, values in right.items()}


def train_tower(folder: Path) -> Path:
    """Train what is still missing in `folder` and return the tower's weights
    (safetensors); the log lies beside them (`.json`).

    Each finished round stays there, so an interrupted training goes on with the round
    it was in.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"tower-{number}.safetensors" for number in range(1, len(ROUNDS) + 1)]
    before: Path | None = None
    for number, done in enumerate(files, start=1):
        if not (done.is_file() and read_notes(done).items() >= _plan(number).items()):
            _train_round(number, before, done)
        before = done
    return files[-1]


def read_notes(weights: Path) -> Json:
    """How a round was trained: seed, round, learning_rate, phases, batch, torch, log."""
    return dict(json.loads(weights.with_suffix(".json").read_text(encoding="utf-8")))


def _plan(number: int) -> Json:
    learning_rate, phases = ROUNDS[number - 1]
    return {
        "seed": SEED,
        "round": number,
        "learning_rate": learning_rate,
        "phases": [list(phase) for phase in phases],
        "batch": BATCH,
    }


def _train_round(number: int, start: Path | None, done: Path) -> None:
    from safetensors.torch import load_file, save

    name = SEED + "+" * (number - 1)
    learning_rate, phases = ROUNDS[number - 1]
    torch.manual_seed(int(stream(name).integers(2**31)))
    steps = sum(count for _, count in phases)
    reader = Reader(build_tower())
    # torch documents memory_format, but its types leave it out
    reader.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    if start:
        reader.tower.load_state_dict(load_file(start))
    optimizer = torch.optim.AdamW(reader.parameters(), lr=learning_rate, weight_decay=0.05)
    learner = Learner(reader, optimizer, partial(rise_and_fall, steps=steps, rise=100))
    validation = Photographs(f"{SEED}/validation", ((IMAGE_SIZE, 4),), 96)
    held_out = [validation(i) for i in range(4)]
    log: list[dict[str, float]] = []
    clock = Clock()
    for step, batch in prepared(Photographs(f"{name}/train", phases, BATCH), range(steps)):
        whole, cells = reader.train()(batch.pixels)
        clock.take(learner.step([reading_loss(whole, cells, batch)]))
        if step % 200 == 0 or step == steps:
            log.append(clock.row(step, validate(reader.eval(), held_out), digits=3))
    notes = {**_plan(number), "torch": torch.__version__, "log": log}
    write_file(done.with_suffix(".json"), json.dumps(notes, indent=2))
    weights = {key: value.contiguous() for key, value in reader.tower.state_dict().items()}
    write_file(done, save(weights))


if __name__ == "__main__":
    torch.set_num_threads(1)
    train_tower(TRAINING)
