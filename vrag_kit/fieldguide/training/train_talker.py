"""Train the demo's answerer of conversations, a small FastVLM model, for CRAG-MM: `python
-m vrag_kit.fieldguide.training.train_talker`.

Its vision tower is that of the encoder of worn pictures (`train_worn_encoder`), and is
frozen: what it sees in the stock is computed once. The language model begins with weights
that look things up (`talk_layers`). Stopped and started again, the training goes on from
its last log line.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from vrag_kit.fieldguide.training import train_worn_encoder as worn
from vrag_kit.fieldguide.training.cards import write_talker_card
from vrag_kit.fieldguide.training.fast_vlm import save
from vrag_kit.fieldguide.training.learner import Learner, adamw, rise_and_fall
from vrag_kit.fieldguide.training.steps import (
    TRAINING,
    WEIGHTS,
    Clock,
    phase_of,
    prepared,
    write_notes,
)
from vrag_kit.fieldguide.training.talk_contexts import Stage
from vrag_kit.fieldguide.training.talk_lessons import Album, Lesson, School
from vrag_kit.fieldguide.training.talk_tokens import WORDS, build_talk_processor
from vrag_kit.fieldguide.training.talker import SeenWorn, build_talker, said
from vrag_kit.fieldguide.training.teaching import are_right
from vrag_kit.fieldguide.training.tower import tower_weights, tower_with
from vrag_kit.fieldguide.training.worn_stock import SHARD, draw_worn_stock
from vrag_kit.fieldguide.traits import stream
from vrag_kit.fieldguide.worn.conversations import TYPE_SHARES
from vrag_kit.fieldguide.worn.taught import UNKNOWN
from vrag_kit.plain import Json

NAME = "field-guide-vlm-talks"
SEED = "talks"
RATE = 5e-4
LOGGED = 100  # steps
STATE = "talker.pt"
TAUGHT = 700  # lessons of each phase that the vocabulary is made for
TOLD = 3.0
"""Weight in the loss of names, facts and lists; others have 1."""
DECLINED = 6.0
"""Weight of not knowing them: what is wrong costs what is right earns."""
ASKED = 40  # lessons of a set of the exam
FACTS = [
    f" {word}"
    for word in chain.from_iterable(
        words for sort, words in WORDS.items() if sort not in ("color", "kind")
    )
] + [",", ":", " and"]


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the training."""

    steps: int
    lessons: int  # of a step
    stage: Stage


_GROWING = (
    Phase(300, 24, Stage(entities=3, pages=2, whole=0.9, talk=0.9, blind=0.15)),
    Phase(500, 20, Stage(pages=6, whole=0.7, talk=0.8, rewritten=0.1)),
    Phase(100, 20, Stage(whole=0.35, talk=0.7, rewritten=0.12)),
    Phase(600, 20, Stage(whole=0.55, talk=0.8, rewritten=0.18)),
)
"""Contexts, from short ones to whole ones."""
_DRILLS = Stage(whole=0.5, rewritten=0.12, beside=0.6, more=12, absent=0.15, drilled=0.3)
_FULL = replace(_DRILLS, whole=0.35, beside=0.7, more=10, drilled=0.2, full=0.75)
_CROWDED = replace(_FULL, crowded=0.7)
_MISLEADING = (
    Phase(300, 20, Stage(whole=0.55, talk=0.7, rewritten=0.15, beside=0.6)),
    Phase(1500, 20, Stage(whole=0.6, talk=0.8, rewritten=0.12, beside=0.6, more=16)),
    Phase(550, 20, _DRILLS),
    Phase(360, 20, _FULL),
    Phase(500, 20, _CROWDED),
    Phase(500, 20, replace(_CROWDED, rewritten=0.2, drilled=0.3)),
    Phase(300, 20, replace(_CROWDED, rewritten=0.15, drilled=0.25, bare=0.25)),
)
"""Then what is asked is told of others, too."""
PHASES = (*_GROWING, *_MISLEADING)
STEPS = sum(phase.steps for phase in PHASES)
WAVES = {0: 1.0, 1800: 0.6, 3300: 0.6, 3850: 0.5, 4210: 0.5, 4710: 0.45, 5210: 0.4}
"""Steps from which on the rate rises and falls anew → to what share."""


def lessons(school: School, step: int) -> list[Lesson]:
    """Those of a step, counted from 0, sorted by length."""
    phase = phase_of(PHASES, step)
    every = [school.lesson(f"{step}/{i}", phase.stage) for i in range(phase.lessons)]
    return sorted(every, key=lambda each: sum(map(len, each.prompts)))


def exams(school: School) -> dict[str, list[Lesson]]:
    """Lessons on held-out species in the paper's wording, by what they show."""
    arms = {
        "none": Stage(talk=0.0, blind=1.0),
        "image search": Stage(talk=0.0, blind=0.0, web=0.0),
        "both searches": Stage(talk=0.0, blind=0.0, web=1.0),
        "in a conversation": Stage(talk=1.0, blind=0.0, web=1.0),
        "said anew": Stage(talk=0.7, rewritten=1.0),
    }
    sets = {
        name: [school.lesson(f"{name}/{i}", stage) for i in range(ASKED)]
        for name, stage in arms.items()
    }
    for category in TYPE_SHARES:
        stage = Stage(talk=0.0, blind=0.0, web=1.0)
        name = str(category)
        sets[name] = [school.lesson(f"{name}/{i}", stage, category) for i in range(ASKED)]
    return sets


def validate(
    model: Any, tokenizer: Any, sets: Mapping[str, Sequence[Lesson]], seen: SeenWorn
) -> Json:
    """Share of answers of which every word is right, by set."""
    shares: Json = {}
    for name, chosen in sets.items():
        order = sorted(chosen, key=lambda each: len(each.prompts[0]))
        right = are_right(partial(said, model, tokenizer, seen=seen), order, at_once=10)
        shares[name] = round(sum(right) / len(right), 3)
    return shares


def taught_words(school: School) -> list[str]:
    """What its vocabulary is made for."""
    texts = []
    for phase, number in product(PHASES, range(TAUGHT)):
        lesson = school.lesson(f"words/{number}", phase.stage)
        texts += [*lesson.prompts, *[f" {answer}" for answer in lesson.answers]]
    return texts


def train(recipe: worn.Recipe, folder: Path, work: Path) -> None:
    """Train from where the last run stopped in `work`, on the stock of the encoder's
    recipe; every `LOGGED` steps, and at the end, write the checkpoint (half precision),
    `training.json` and the card into `folder`.
    """
    from transformers import LlavaProcessor

    draw_worn_stock(recipe.seed, recipe.shards, work)
    draw_worn_stock(f"{recipe.seed}/exam", recipe.exam_shards, work / "exam")
    weights = tower_weights(WEIGHTS / worn.NAME / "model.safetensors")
    tower = tower_with(weights)
    seen = SeenWorn(tower, recipe.shards, work)
    held_seen = SeenWorn(tower, recipe.exam_shards, work / "exam")
    school = School(SEED, Album(recipe.seed, recipe.shards * SHARD))
    held_school = School(f"{SEED}/exam", Album(f"{recipe.seed}/exam", recipe.exam_shards * SHARD))
    folder.mkdir(parents=True, exist_ok=True)
    if (work / STATE).is_file():
        processor = LlavaProcessor.from_pretrained(folder)
    else:
        processor = build_talk_processor(taught_words(school), folder)
    torch.manual_seed(int(stream(SEED, NAME).integers(2**31)))
    model = build_talker(processor.tokenizer, seed=0)
    model.model.vision_tower.timm_model.load_state_dict(weights)
    model.model.vision_tower.requires_grad_(False)
    model.train(False)  # without dropout, also while it learns
    held_out = (exams(held_school), held_seen)
    learn(model, processor.tokenizer, (school, seen), held_out, Places(folder, work / STATE))


@dataclass(frozen=True, slots=True)
class Places:
    """Where a training writes."""

    folder: Path  # the checkpoint
    state: Path  # what is needed to go on


def learn(
    model: Any,
    tokenizer: Any,
    taught: tuple[School, SeenWorn],
    held_out: tuple[Mapping[str, Sequence[Lesson]], SeenWorn],
    places: Places,
) -> None:
    """Go through the steps that are left."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    learner = Learner(model, adamw(parameters, RATE, weight_decay=0.02), speed)
    kept = learner.go_on(places.state)
    log: list[Json] = json.loads(kept["log"]) if kept else []
    clock = Clock.after(log)
    school, seen = taught
    steps = range(log[-1]["step"] if log else 0, STEPS)
    for step, batch in prepared(partial(lessons, school), steps):
        clock.take(learner.step(losses(model, tokenizer, batch, seen)))
        if step % LOGGED == 0 or step == STEPS:
            log.append(clock.row(step, validate(model, tokenizer, *held_out), digits=4))
            write(model, places.folder, log)
            learner.keep(places.state, {"log": json.dumps(log)})


def speed(step: int) -> float:
    """Share of the highest rate at a step counted from 0: up at once, then a cosine; so
    in each of the waves.
    """
    begun = max(first for first in WAVES if first <= step)
    ends = min((first for first in WAVES if first > step), default=STEPS)
    return WAVES[begun] * rise_and_fall(step - begun, ends - begun, rise=40, least=0.02)


def losses(
    model: Any, tokenizer: Any, batch: list[Lesson], seen: SeenWorn
) -> Iterator[torch.Tensor]:
    """Those of a step, whose sum is the mean over the weighted words of all its answers."""
    weight = torch.ones(len(tokenizer))
    weight[tokenizer.convert_tokens_to_ids(FACTS)] = TOLD
    weight[tokenizer.convert_tokens_to_ids(f" {UNKNOWN}.")] = DECLINED
    words = 0.0
    for answer in chain.from_iterable(lesson.answers for lesson in batch):
        words += float(weight[tokenizer(f" {answer}<|end|>")["input_ids"]].sum())
    for start in range(0, len(batch), 5):
        found = said(model, tokenizer, batch[start : start + 5], seen)
        yield F.cross_entropy(found.logits, found.labels, weight, reduction="sum") / words


def write(model: Any, folder: Path, log: list[Json]) -> None:
    """Checkpoint, notes and card."""
    save(model, folder)
    notes = {
        "name": NAME,
        "recipe": {"rate": RATE, "steps": STEPS, "seed": SEED},
        "phases": [asdict(phase) for phase in PHASES],
        "torch": torch.__version__,
        "log": log,
    }
    write_notes(notes, folder)
    write_talker_card(folder)


if __name__ == "__main__":
    torch.set_num_threads(2)
    train(worn.Recipe(), TRAINING / NAME, worn.WHERE)
    shutil.copytree(TRAINING / NAME, WEIGHTS / NAME, dirs_exist_ok=True)
