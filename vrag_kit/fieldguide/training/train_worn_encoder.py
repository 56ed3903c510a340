"""Train the demo's encoder of worn pictures: `python -m
vrag_kit.fieldguide.training.train_worn_encoder`.

It learns to place a worn picture near usual photographs of the same species and away from
those of species easily taken for it; beside that to place a picture near its look in
words, and to name colours and patterns, which is thrown away. Its tower goes on from that
of the answerer of choices, and becomes that of the answerer of conversations. Stopped and
started again, the training goes on from its last log line.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from vrag_kit.fieldguide.training.cards import write_worn_encoder_card
from vrag_kit.fieldguide.training.learner import Learner, adamw, rise_and_fall
from vrag_kit.fieldguide.training.steps import TRAINING, WEIGHTS, Clock, write_notes
from vrag_kit.fieldguide.training.tower import FEATURES, MEAN, STD, tower_weights
from vrag_kit.fieldguide.training.worn_encoder import (
    build_encoder,
    look_tokenizer,
    save_encoder,
)
from vrag_kit.fieldguide.training.worn_exam import HEADS, WornExam, examined, numbers_of
from vrag_kit.fieldguide.training.worn_stock import (
    ALIKE,
    N_WORN,
    SHARD,
    draw_worn_stock,
    individual,
    read_shard,
)
from vrag_kit.fieldguide.traits import Species, stream
from vrag_kit.fieldguide.worn.entities import look_words
from vrag_kit.plain import Json

NAME = "field-guide-worn"
WHERE = TRAINING / "worn"
START = WEIGHTS / "field-guide-vlm-choices" / "model.safetensors"
EVERY = 50  # steps between two rows of the log, and two states


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that determines a training."""

    seed: str = "worn"
    shards: int = 80  # files of the stock
    exam_shards: int = 6
    clusters: int = 12  # of a step, each species with two worn pictures and a usual one
    steps: int = 500
    rate: float = 2e-3
    zoomed: float = 0.2  # share of worn pictures that are cut down to the organism


class Taught(nn.Module):
    """The encoder, and what it is taught with beside."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder = encoder
        self.scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))
        self.heads = nn.Linear(FEATURES, sum(HEADS.values()))

    def forward(self, pixels: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Unit vectors, (n, dimension), and logits of each of `HEADS`."""
        features = self.encoder.vision_model(pixel_values=pixels).pooler_output
        vectors = F.normalize(self.encoder.visual_projection(features), dim=-1)
        return vectors, list(self.heads(features).split(list(HEADS.values()), dim=1))


class Batch(NamedTuple):
    """Pictures of n species: two worn ones each, then a usual one each."""

    pixels: torch.Tensor  # float32, (3 n, 3, height, width), prepared
    species: list[Species]  # n


class Stock:
    """All pictures of a stock, in memory."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        self.recipe = recipe
        self.files = [read_shard(folder, shard) for shard in range(recipe.shards)]

    def batch(self, step: int) -> Batch:
        """The clusters of a step, counted from 0; the same step gives the same."""
        rng = stream(self.recipe.seed, "step", step)
        clusters = rng.choice(self.recipe.shards * SHARD // ALIKE, self.recipe.clusters, False)
        places = (clusters[:, None] * ALIKE + np.arange(ALIKE)).flatten()
        numbers = [int(place) for place in places]
        chosen, boxes = [], []
        turns = np.stack([rng.permutation(N_WORN)[:2] for _ in numbers])
        for column in range(3):
            for number, turn in zip(numbers, turns, strict=True):
                file, place = self.files[number // SHARD], number % SHARD
                picture = N_WORN if column == 2 else turn[column]
                chosen.append(file.pixels[place, picture])
                zoomed = column < 2 and rng.random() < self.recipe.zoomed
                whole = np.array([0, 0, 1, 1], np.float32)
                boxes.append(file.boxes[place, picture] if zoomed else whole)
        pixels = torch.from_numpy(np.stack(chosen)).permute(0, 3, 1, 2)
        varied = vary(pixels, np.stack(boxes), rng)
        return Batch(varied, [individual(self.recipe.seed, number) for number in numbers])


def vary(pixels: torch.Tensor, boxes: np.ndarray, rng: np.random.Generator) -> torch.Tensor:
    """Pictures cut down to their boxes and a margin, moved, scaled, mirrored and lit a
    little otherwise; uint8 → float32 as the tower takes them.
    """
    n = len(pixels)
    size = np.maximum(boxes[:, 2:] - boxes[:, :2], 0.05)
    share = np.minimum(size.max(1) * rng.uniform(1.2, 1.9, n), 1.0)
    whole = (size > 0.99).all(1)
    share = np.where(whole, rng.uniform(0.85, 1.12, n), share)
    middle = boxes[:, :2] + boxes[:, 2:] - 1  # in [−1, 1]
    shift = rng.uniform(-0.12, 0.12, (n, 2))
    flip = rng.choice((-1.0, 1.0), n)
    theta = np.zeros((n, 2, 3))
    theta[:, 0, 0], theta[:, 1, 1] = share * flip, share
    theta[:, :, 2] = middle + shift * share[:, None]
    grid = F.affine_grid(torch.from_numpy(theta).float(), list(pixels.shape), align_corners=False)
    floats = pixels.float()
    moved = F.grid_sample(floats, grid, padding_mode="reflection", align_corners=False)
    light = torch.from_numpy(rng.uniform(0.8, 1.2, (n, 1, 1, 1))).float()
    lit = (moved * light).clamp(0, 255)
    return ((lit / 255 - MEAN) / STD).contiguous(memory_format=torch.channels_last)


def step_loss(model: Taught, tokenizer: Any, batch: Batch) -> torch.Tensor:
    """Worn pictures to usual ones and back, all pictures to looks in words, and the
    names of what they show. Species that look the same are each other's.
    """
    looks = [look_words(each.kind, each.outside) for each in batch.species]
    texts = tokenizer(looks, padding=True, return_tensors="pt")
    said = model.encoder.text_projection(model.encoder.text_model(**texts).pooler_output)
    vectors, heads = model(batch.pixels)
    n, scale = len(looks), model.scale.exp()
    same = torch.tensor([[one == other for other in looks] for one in looks])
    worn, usual = vectors[: 2 * n], vectors[2 * n :]
    found = scale * worn @ usual.T
    loss = matched(found, same.repeat(2, 1)) + matched(found.T, same.repeat(1, 2))
    loss = loss + 0.5 * matched(scale * vectors @ F.normalize(said, dim=-1).T, same.repeat(3, 1))
    truth = torch.tensor([numbers_of(each) for each in batch.species]).repeat(3, 1)
    for place, logits in enumerate(heads):
        loss = loss + 0.5 * F.cross_entropy(logits, truth[:, place], ignore_index=-1)
    return loss


def matched(scores: torch.Tensor, same: torch.Tensor) -> torch.Tensor:
    """Minus the logarithm of the share that a softmax gives to all right columns."""
    right = scores.masked_fill(~same, float("-inf"))
    return (scores.logsumexp(1) - right.logsumexp(1)).mean()


def start(checkpoint: Path) -> Taught:
    """The encoder with an answerer's tower and everything else random."""
    encoder: Any = build_encoder(len(look_tokenizer()))
    encoder.vision_model.timm_model.load_state_dict(tower_weights(checkpoint))
    encoder.vision_model.to(memory_format=torch.channels_last)
    return Taught(encoder)


def train(recipe: Recipe, folder: Path, work: Path) -> None:
    """Train from where the last run stopped in `work`; every `EVERY` steps, and at the
    end, write the checkpoint, `training.json` and the card into `folder`.
    """
    draw_worn_stock(recipe.seed, recipe.shards, work)
    draw_worn_stock(f"{recipe.seed}/exam", recipe.exam_shards, work / "exam")
    stock = Stock(recipe, work)
    exam = WornExam(f"{recipe.seed}/exam", recipe.exam_shards, work / "exam")
    torch.manual_seed(int(stream(recipe.seed, "weights").integers(2**31)))
    model, tokenizer = start(START), look_tokenizer()
    optimizer = adamw(model.parameters(), recipe.rate, weight_decay=0.05)
    learner = Learner(model, optimizer, partial(rise_and_fall, steps=recipe.steps, rise=50))
    state = work / "encoder.pt"
    kept = learner.go_on(state, asdict(recipe))
    log: list[Json] = json.loads(kept["log"]) if kept else []
    clock = Clock.after(log)
    for step in range(log[-1]["step"] if log else 0, recipe.steps):
        clock.take(learner.step([step_loss(model.train(), tokenizer, stock.batch(step))]))
        model.scale.data.clamp_(0, math.log(50))
        if (step + 1) % EVERY == 0 or step + 1 == recipe.steps:
            log.append(clock.row(step + 1, examined(model.eval(), exam), digits=4))
            learner.keep(state, {"recipe": asdict(recipe), "log": json.dumps(log)})
            write(model, folder, recipe, log)


def write(model: Taught, folder: Path, recipe: Recipe, log: list[Json]) -> None:
    """Checkpoint, notes and card."""
    folder.mkdir(parents=True, exist_ok=True)
    model.encoder.logit_scale.data.copy_(model.scale.data)
    save_encoder(model.encoder, folder)
    notes = {"name": NAME, "recipe": asdict(recipe), "torch": torch.__version__, "log": log}
    write_notes(notes, folder)
    write_worn_encoder_card(folder)


if __name__ == "__main__":
    torch.set_num_threads(2)
    train(Recipe(), WEIGHTS / NAME, WHERE)
