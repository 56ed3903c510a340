"""Teach the answerer of choices to read passages: `python
-m vrag_kit.fieldguide.training.train_reading`.

It goes on from the weights that `train_chooser` leaves, in parts, each with a learning
rate that rises and falls: first one passage and the answer in words, which is copying;
then letters, from one passage or several, beside all that it knew before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from vrag_kit.fieldguide.scenarios.passages import passage
from vrag_kit.fieldguide.training.cards import write_chooser_card
from vrag_kit.fieldguide.training.exercises import (
    Exercise,
    Mix,
    Shown,
    ask,
    choose,
    find,
    said,
    say,
    shown,
)
from vrag_kit.fieldguide.training.fast_vlm import save
from vrag_kit.fieldguide.training.learner import Learner, adamw, rise_and_fall
from vrag_kit.fieldguide.training.seen import Seen
from vrag_kit.fieldguide.training.shards import see_shards
from vrag_kit.fieldguide.training.steps import WEIGHTS, Clock, prepared, write_notes
from vrag_kit.fieldguide.training.stock import SHARD, Subject, draw_stock, read_shard, subject
from vrag_kit.fieldguide.training.tower import IMAGE_SIZE, tower_weights, tower_with
from vrag_kit.fieldguide.training.train_chooser import NAME, STEPS, exams, losses, validate
from vrag_kit.fieldguide.training.train_eyes import EXAM_SHARDS, SEED, WHERE
from vrag_kit.fieldguide.traits import stream

SHARDS = 24
LOGGED = 100  # steps
LETTERS = 5.0  # weight of a letter in the loss, where another token has 1
NO_PASSAGE = "incomplete"  # a passage lists eight chips, and not which one is missing


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the reading; the names of its exercises begin with its own."""

    name: str
    steps: int
    batch: int
    rate: float
    shares: Mapping[str, float]  # sort of exercise → share; as in `Mix`, "recite" and "one" too
    falls: int  # steps in which the rate would fall to its least
    topics: int = SHARDS * SHARD
    most: int = 5
    worded: bool = True


_SHARES = {
    "t1": {"recite": 0.6, "one": 0.1, "shows": 0.12, "find": 0.06, "say": 0.12},
    "t2": {
        "one": 0.13,
        "tells": 0.22,
        "shows": 0.27,
        "many": 0.05,
        "mixed": 0.15,
        "none": 0.06,
        "both": 0.06,
        "say": 0.03,
        "recite": 0.03,
    },
    "t3": {
        "one": 0.12,
        "tells": 0.24,
        "shows": 0.30,
        "many": 0.03,
        "mixed": 0.13,
        "none": 0.07,
        "both": 0.06,
        "say": 0.05,
    },
    "t4": {
        "one": 0.10,
        "tells": 0.12,
        "shows": 0.45,
        "many": 0.05,
        "mixed": 0.10,
        "none": 0.08,
        "both": 0.05,
        "say": 0.05,
    },
}
PARTS = (
    Part("t1", 400, 48, 1e-3, _SHARES["t1"], 400, 16 * SHARD, 1, worded=False),
    Part("t2", 300, 36, 9e-4, _SHARES["t2"], 750),
    Part("t3", 300, 32, 6e-4, _SHARES["t3"], 300),
    Part("t4", 160, 32, 4e-4, _SHARES["t4"], 160),
)


def recite(about: Subject, rng: np.random.Generator) -> Exercise:
    """The passage about a topic and a question, answered in words."""
    question = ask(about, rng)
    words = f"<image>\nPassage 1: {_own(about, rng)}\nQuestion: {question.text}\nAnswer:"
    return Exercise(words, (int(rng.integers(2)),), about.number, said(question.answer))


def exercise(part: Part, name: str) -> Exercise:
    """The exercise of that name, of a sort that the part draws."""
    rng = stream(SEED, name)
    sort = str(rng.choice(list(part.shares), p=list(part.shares.values())))
    about = subject(SEED, int(rng.integers(part.topics)))
    while not _may_be(sort, about):
        about = subject(SEED, int(rng.integers(part.topics)))
    alone = {"say": say, "find": find, "recite": recite}.get(sort)
    if alone:
        return alone(about, rng)
    own = sort == "one"
    evidence = Shown(passages=(_own(about, rng),)) if own else shown(sort, about, rng, part.most)
    return choose(about, rng, evidence, part.worded)


def _may_be(sort: str, about: Subject) -> bool:
    if sort in ("recite", "one", "tells"):
        return about.scenario != NO_PASSAGE
    return sort != "many" or about.n_examples > Mix().most + 1


def _own(about: Subject, rng: np.random.Generator) -> str:
    return passage(about.topic, f"{about.topic.key}/passage/{int(rng.integers(10**6))}")


def speed(part: Part, step: int) -> float:
    """The rate at a step of a part, counted from 0."""
    return part.rate * rise_and_fall(step, part.falls, rise=40, least=0.02)


def read() -> None:
    """Go through the parts, each from what the one before has written, and write weights,
    `training.json` and card to the folder of the shipped answerer.
    """
    from transformers import AutoProcessor, FastVlmForConditionalGeneration

    folder = WEIGHTS / NAME
    tower = tower_with(tower_weights(folder / "model.safetensors"))
    for seed, place, shards in (
        (SEED, WHERE, SHARDS),
        (f"{SEED}/exam", WHERE / "exam", EXAM_SHARDS),
    ):
        draw_stock(seed, shards, IMAGE_SIZE, place)
        see_shards(tower, partial(read_shard, place), shards, place)
    processor: Any = AutoProcessor.from_pretrained(folder)  # type: ignore[no-untyped-call]
    model: Any = FastVlmForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
    model.eval().model.vision_tower.requires_grad_(False)
    notes = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    notes["reading"] = {"parts": [asdict(part) for part in PARTS], "log": []}
    for part in PARTS:
        learn(part, model, processor, notes["reading"]["log"])
    notes["exercises"] |= {name: len(each) for name, each in reading_exams().items()}
    save(model, folder)
    write_notes(notes, folder)
    write_chooser_card(folder)


def learn(part: Part, model: Any, processor: Any, log: list[dict[str, float]]) -> None:
    """Go through a part, with an optimizer of its own; adds to the log."""
    taught = [each for each in model.parameters() if each.requires_grad]
    learner = Learner(model, adamw(taught, 1.0, weight_decay=0.05), partial(speed, part))
    seen, held_out = Seen(SEED, SHARDS, WHERE), exams()
    held_seen = Seen(f"{SEED}/exam", EXAM_SHARDS, WHERE / "exam")
    held_out |= reading_exams()
    clock = Clock.after(log)
    begun = int(log[-1]["step"]) if log else STEPS
    for step, batch in prepared(partial(_exercises, part), range(part.steps)):
        clock.take(learner.step(losses(model, processor, batch, seen, LETTERS)))
        if step % LOGGED == 0 or step == part.steps:
            shares = validate(model, processor, held_out, held_seen)
            log.append(clock.row(begun + step, shares, digits=4))


def reading_exams() -> dict[str, list[Exercise]]:
    """Exercises on held-out topics: the passage about each, answered with a letter, and
    in words.
    """
    seed = f"{SEED}/exam"
    every = [subject(seed, number) for number in range(EXAM_SHARDS * SHARD)]
    told = [about for about in every if about.scenario != NO_PASSAGE][: len(every) // 2]
    one, words = [], []
    for about in told:
        rng = stream(seed, "one", about.number)
        one.append(choose(about, rng, Shown(passages=(_own(about, rng),)), worded=True))
        words.append(recite(about, stream(seed, "recite", about.number)))
    return {"one": one, "recite": words}


def _exercises(part: Part, step: int) -> list[Exercise]:
    every = [exercise(part, f"{part.name}/{step}/{i}") for i in range(part.batch)]
    return sorted(every, key=lambda each: len(each.words) + 40 * len(each.pictures))


if __name__ == "__main__":
    torch.set_num_threads(2)
    read()
