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
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

from vrag_kit.fieldguide.album import Photo, clue_photo, invent_named, plain_photo
from vrag_kit.fieldguide.organisms import KINDS
from vrag_kit.fieldguide.questions import hidden_parts
from vrag_kit.fieldguide.shapes import part_map
from vrag_kit.fieldguide.traits import COLORS, PATTERNS, Species, stream
from vrag_kit.fieldguide.views import compose, photograph, seen_parts
from vrag_kit.files import write_file

IMAGE_SIZE, FEATURES, CELL = 96, 256, 8
MEAN, STD = 0.5, 0.25
TRAINING = Path(__file__).parents[2] / "runs" / "training"
ARCHITECTURE = {"architecture": "resnet10t", "model_args": {"channels": [32, 64, 128, FEATURES]}}
PARTS = tuple((kind, part.name) for kind, spec in KINDS.items() for part in spec.hidden)
HEADS = {"shown": 1, "color": len(COLORS), "pattern": len(PATTERNS), "second": len(COLORS)}
SEED, BATCH = "tower", 96
ROUNDS = ((2.5e-3, ((64, 3000), (IMAGE_SIZE, 1600))), (1.5e-3, ((IMAGE_SIZE, 3800),)))
"""One row a round: highest learning rate, then (side of the photographs in pixels,
steps). Small photographs first, as shapes are learned from them at half the time; a
second round of full size, with a reader that starts anew, because the first was still
getting better.
"""


def to_input(pixels: torch.Tensor) -> torch.Tensor:
    """uint8 (n, 3, size, size) → what the tower takes: float32, same shape, about zero
    mean and unit variance.
    """
    return ((pixels.float() / 255 - MEAN) / STD).contiguous(memory_format=torch.channels_last)


def draw(species: Species, photos: list[Photo], size: int = IMAGE_SIZE) -> torch.Tensor:
    """The photographs as uint8, shape (n, 3, size, size)."""
    return torch.from_numpy(
        np.stack([np.asarray(photograph(species, photo.view, size)) for photo in photos])
    ).permute(0, 3, 1, 2)


def build_tower() -> nn.Module:
    """The tower with random weights: (n, 3, 96, 96) → (n, 256, 3, 3)."""
    import timm

    return timm.create_model(
        ARCHITECTURE["architecture"], num_classes=0, global_pool="", **ARCHITECTURE["model_args"]
    )


class Photographs(Dataset):
    """Batch number → photographs and truth; the same number gives the same batch."""

    def __init__(self, seed: str, phases: tuple[tuple[int, int], ...], batch: int) -> None:
        self.seed, self.batch = seed, batch
        self.sizes = [size for size, steps in phases for _ in range(steps)]

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, number: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Photographs, uint8 (batch, 3, size, size); their truth, int64 (batch, 12, 4):
        shown 0 or 1, colour, pattern, second colour, −1 where there is none to tell;
        and where each part lies, int64 (batch, size/8, size/8): 1 + its number, 0 for
        none.
        """
        pixels, truths, places = zip(
            *(_example(f"{self.seed}/{number}/{i}", self.sizes[number]) for i in range(self.batch)),
            strict=True,
        )
        return torch.cat(pixels), torch.stack(truths), torch.stack(places)


def _example(name: str, size: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rng = stream(name)
    species = invent_named(name, str(rng.choice(list(KINDS))), 0)
    part = hidden_parts(species)[int(rng.integers(2))]
    photo = (
        clue_photo(species, part, f"{name}/photo")
        if rng.random() < 0.65
        else plain_photo(species, frozenset({part.name}), f"{name}/photo", 0.5)
    )
    shown, hidden = seen_parts(species, photo.view)
    truth = torch.full((len(PARTS), len(HEADS)), -1)
    for row, (kind, part_name) in enumerate(PARTS):
        if kind == species.kind:
            look, colors = species.hidden[part_name], list(COLORS)
            seen = 1 if part_name in shown else 0 if part_name in hidden else -1
            truth[row] = torch.tensor(
                [
                    seen,
                    colors.index(look.color),
                    PATTERNS.index(look.pattern),
                    -1 if look.pattern == "plain" else colors.index(look.second),
                ]
            )
        else:
            truth[row, 0] = 0
    return draw(species, [photo], size), truth, _places(species, photo, size)


def _places(species: Species, photo: Photo, size: int) -> torch.Tensor:
    """int64 (size/8, size/8): the part that fills most of each cell, if it fills three
    tenths of it.
    """
    labels, label_of = part_map(compose(species, photo.view), size)
    pixels = np.asarray(labels).reshape(size // CELL, CELL, size // CELL, CELL)
    cells, best = (
        np.zeros((size // CELL, size // CELL), np.int64),
        np.full((size // CELL, size // CELL), 0.3),
    )
    for part, label in label_of.items():
        if part:
            share = (pixels == label).mean(axis=(1, 3))
            cells, best = (
                np.where(share > best, 1 + PARTS.index((species.kind, part)), cells),
                np.maximum(best, share),
            )
    return torch.from_numpy(cells)


class Reader(nn.Module):
    """What the tower is taught with, and thrown away afterwards: what the whole
    photograph shows, read linearly off the tower's mean feature; and which part lies
    where in which colour and pattern, read off its second and third stage.
    """

    def __init__(self, tower: nn.Module) -> None:
        super().__init__()
        self.tower = tower
        self.whole = nn.Linear(FEATURES, len(PARTS) * sum(HEADS.values()))
        self.cells = nn.Conv2d(
            sum(ARCHITECTURE["model_args"]["channels"][1:3]),
            1 + len(PARTS) + len(COLORS) + len(PATTERNS) + len(COLORS),
            1,
        )

    def forward(self, pixels: torch.Tensor) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """One tensor a head for the whole, (n, 12, classes), and one for the cells, (n,
        classes, size/8, size/8).
        """
        tower, x = self.tower, to_input(pixels)
        x = tower.maxpool(tower.act1(tower.bn1(tower.conv1(x))))
        fine = tower.layer2(tower.layer1(x))
        coarse = tower.layer3(fine)
        both = torch.cat([fine, F.interpolate(coarse, scale_factor=2.0)], dim=1)
        whole = self.whole(tower.layer4(coarse).mean(dim=(2, 3))).view(
            -1, len(PARTS), sum(HEADS.values())
        )
        return list(whole.split(list(HEADS.values()), dim=2)), list(
            self.cells(both).split([1 + len(PARTS), len(COLORS), len(PATTERNS), len(COLORS)], dim=1)
        )


def reading_loss(
    whole: list[torch.Tensor], cells: list[torch.Tensor], truth: torch.Tensor, places: torch.Tensor
) -> torch.Tensor:
    """Sum of the heads' cross-entropies, each over what can be told."""
    known = truth[..., 0] >= 0
    loss = 4 * F.binary_cross_entropy_with_logits(
        whole[0][..., 0][known], truth[..., 0][known].float()
    )
    loss = loss + F.cross_entropy(cells[0], places, weight=torch.tensor([0.1] + [1.0] * len(PARTS)))
    shows = truth[..., 0] == 1
    there = truth.gather(
        1, (places.flatten(1) - 1).clamp(min=0)[..., None].expand(-1, -1, len(HEADS))
    ).unflatten(1, places.shape[1:])  # (n, cells, cells, 4)
    for head in range(1, len(HEADS)):
        told = shows & (truth[..., head] >= 0)
        loss = loss + F.cross_entropy(whole[head][told], truth[..., head][told])
        covered = (places > 0) & (there[..., head] >= 0)
        loss = loss + F.cross_entropy(
            cells[head].permute(0, 2, 3, 1)[covered], there[..., head][covered]
        )
    return loss


@torch.inference_mode()
def validate(reader: Reader, batches: list[tuple[torch.Tensor, ...]]) -> dict[str, float]:
    """Share right, by head, over held-out species; "shown" over the parts of the
    organism's kind, the rest over parts that are shown.
    """
    right: dict[str, list[torch.Tensor]] = {name: [] for name in (*HEADS, "cells")}
    for pixels, truth, places in batches:
        whole, cells = reader(pixels)
        right["cells"].append((cells[0].argmax(1) == places)[places > 0].float())
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
    weights = None
    for number in range(1, len(ROUNDS) + 1):
        done = folder / f"tower-{number}.safetensors"
        if not (done.is_file() and read_notes(done).items() >= _plan(number).items()):
            _train_round(number, weights, done)
        weights = done
    return weights


def read_notes(weights: Path) -> dict[str, Any]:
    """How a round was trained: seed, round, learning_rate, phases, batch, torch, log."""
    return json.loads(weights.with_suffix(".json").read_text(encoding="utf-8"))


def _plan(number: int) -> dict[str, Any]:
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

    name, (learning_rate, phases) = SEED + "+" * (number - 1), ROUNDS[number - 1]
    torch.manual_seed(int(stream(name).integers(2**31)))
    steps = sum(count for _, count in phases)
    reader = Reader(build_tower()).to(memory_format=torch.channels_last)
    if start:
        reader.tower.load_state_dict(load_file(start))
    optimizer = torch.optim.AdamW(reader.parameters(), lr=learning_rate, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda t: min(1.0, (t + 1) / 100) * 0.5 * (1 + math.cos(math.pi * t / steps))
    )
    held_out = [Photographs(f"{SEED}/validation", ((IMAGE_SIZE, 4),), 96)[i] for i in range(4)]
    began, log, running = time.monotonic(), [], 0.0
    for step, (pixels, truth, places) in enumerate(
        DataLoader(
            Photographs(f"{name}/train", phases, BATCH),
            batch_size=None,
            num_workers=1,
            prefetch_factor=4,
        ),
        start=1,
    ):
        loss = reading_loss(*reader.train()(pixels), truth, places)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        running = loss.item() if step == 1 else 0.98 * running + 0.02 * loss.item()
        if step % 200 == 0 or step == steps:
            log.append(
                {
                    "step": step,
                    "loss": round(running, 3),
                    **validate(reader.eval(), held_out),
                    "minutes": round((time.monotonic() - began) / 60, 1),
                }
            )
            print(json.dumps(log[-1]), flush=True)
    write_file(
        done.with_suffix(".json"),
        json.dumps({**_plan(number), "torch": torch.__version__, "log": log}, indent=2),
    )
    write_file(
        done, save({key: value.contiguous() for key, value in reader.tower.state_dict().items()})
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    train_tower(TRAINING)
