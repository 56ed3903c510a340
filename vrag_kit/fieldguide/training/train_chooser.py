"""Train the demo's answerer of choices, a small FastVLM model, for MRAG-Bench: `python
-m vrag_kit.fieldguide.training.train_chooser`.

It goes on from an answerer of the Field Guide: the vision tower sees more kinds of
pictures first (`train_eyes`), and is frozen; what it sees in the `stock` is computed
once. Then the language model, with a vocabulary of its own, learns to choose a letter:
from one passage or picture, from several, at last in the wordings of the paper and its
code. Stopped and started again, it goes on from its last log line.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F

from vrag_kit.fieldguide.scenarios.options import LETTERS
from vrag_kit.fieldguide.scenarios.table import SCENARIOS
from vrag_kit.fieldguide.scenarios.topics import known_species
from vrag_kit.fieldguide.training.answerer import Recipe, build_model, build_processor
from vrag_kit.fieldguide.training.cards import write_chooser_card
from vrag_kit.fieldguide.training.exercises import Desk, Exercise, Mix, choose, say, shown
from vrag_kit.fieldguide.training.fast_vlm import save
from vrag_kit.fieldguide.training.first_layers import LAYERS, give_first_layers
from vrag_kit.fieldguide.training.learner import Learner, adamw, rise_and_fall
from vrag_kit.fieldguide.training.lessons import Plan
from vrag_kit.fieldguide.training.seen import Seen
from vrag_kit.fieldguide.training.shards import see_shards
from vrag_kit.fieldguide.training.steps import (
    TRAINING,
    WEIGHTS,
    Clock,
    phase_of,
    prepared,
    write_notes,
)
from vrag_kit.fieldguide.training.stock import SHARD, read_shard, subject
from vrag_kit.fieldguide.training.teaching import (
    PICTURE_TOKENS,
    Guesses,
    are_right,
    encoded,
    guesses,
)
from vrag_kit.fieldguide.training.tower import tower_with
from vrag_kit.fieldguide.training.train_eyes import (
    EXAM_SHARDS,
    SEED,
    SHARDS,
    START,
    WHERE,
    train_eyes,
)
from vrag_kit.fieldguide.training.train_tower import read_notes
from vrag_kit.fieldguide.traits import stream
from vrag_kit.plain import Json

if TYPE_CHECKING:
    from transformers import FastVlmForConditionalGeneration, LlavaProcessor

NAME = "field-guide-vlm-choices"
BATCH = 32
RATE = 1.5e-3
LOGGED = 100  # steps


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the training."""

    steps: int
    mix: Mix
    letters: float = 5.0  # weight of a letter in the loss, where another token has 1


PHASES = (
    Phase(300, Mix(find=1.0, worded=False), letters=50.0),
    Phase(250, Mix(say=0.5, find=0.5, worded=False)),
    Phase(
        450,
        Mix(
            say=0.1,
            find=0.1,
            none=0.02,
            shows=0.45,
            mixed=0.1,
            tells=0.2,
            both=0.03,
            worded=False,
            most=3,
        ),
    ),
    Phase(700, Mix(say=0.05, none=0.1, shows=0.41, many=0.07, mixed=0.2, tells=0.12, both=0.05)),
)
STEPS = sum(phase.steps for phase in PHASES)


def exercises(desk: Desk, step: int) -> list[Exercise]:
    """Those of a step, counted from 0, sorted by length."""
    mix = phase_of(PHASES, step).mix
    every = [desk.exercise(f"{step}/{i}", mix) for i in range(BATCH)]
    return sorted(every, key=lambda each: len(each.words) + 40 * len(each.pictures))


def answered(
    model: FastVlmForConditionalGeneration,
    processor: LlavaProcessor,
    batch: Sequence[Exercise],
    seen: Seen,
) -> Guesses:
    """What the model says of each exercise."""
    prompts = [each.words.replace("<image>", "<image>" * PICTURE_TOKENS) for each in batch]
    answers = [each.answer for each in batch]
    return guesses(model, encoded(processor.tokenizer, prompts, answers), seen.of(batch))


def parts(batch: list[Exercise]) -> Iterator[list[Exercise]]:
    """A step's exercises, eight of similar length at a time."""
    for start in range(0, len(batch), 8):
        yield batch[start : start + 8]


def exams() -> dict[str, list[Exercise]]:
    """Exercises on held-out topics, in the paper's wordings, by what they show."""
    seed, mix = f"{SEED}/exam", Mix(say=0)
    every = [subject(seed, number) for number in range(EXAM_SHARDS * SHARD)]
    deep = [about for about in every if about.n_examples > 6]
    sets: dict[str, list[Exercise]] = {}
    for name, sort, chosen in (
        ("none", "none", every),
        ("1", "shows", every),
        ("5", "shows", every),
        ("mixed", "mixed", every),
        ("20", "many", deep),
        ("tells", "tells", every[: len(every) // 2]),
    ):
        rngs = [stream(seed, name, about.number) for about in chosen]
        most = {"1": 1, "5": 5}.get(name, mix.most)
        sets[name] = [
            choose(about, rng, shown(sort, about, rng, most), worded=True)
            for about, rng in zip(chosen, rngs, strict=True)
        ]
    sets["say"] = [say(about, stream(seed, "say", about.number)) for about in every]
    return sets


def validate(
    model: FastVlmForConditionalGeneration,
    processor: LlavaProcessor,
    sets: Mapping[str, Sequence[Exercise]],
    seen: Seen,
) -> Json:
    """Share of answers that are exactly right, by set; with five examples also by
    scenario.
    """
    shares: Json = {}
    for name, chosen in sets.items():
        say = partial(answered, model, processor, seen=seen)
        right = are_right(say, chosen, at_once=25)
        shares[name] = round(sum(right) / len(right), 3)
        if name == "5":
            for place, scenario in enumerate(SCENARIOS):
                pairs = zip(right, chosen, strict=True)
                own = [ok for ok, each in pairs if each.subject % len(SCENARIOS) == place]
                shares[scenario] = round(sum(own) / len(own), 2)
    return shares


def recipe() -> Recipe:
    """How its language model is built: as those of the Field Guide, and two layers more."""
    plan = Plan(told=0, guess=0, single=0, several=0, most=20)
    return Recipe(plan, seed=SEED, vocabulary=1536, layers=4 + LAYERS)


def taught_words() -> list[str]:
    """What its vocabulary is made for."""
    desk, texts = Desk(SEED, SHARDS * SHARD), []
    for step in range(0, STEPS, STEPS // 60):
        for each in exercises(desk, step):
            texts += [each.words, each.answer]
    return [*texts, *[species.scientific_name for species in known_species()] * 20]


def start_model(processor: LlavaProcessor, tower: dict[str, torch.Tensor]) -> Any:
    """The answerer of the Field Guide with another tower, two layers before its own and
    another vocabulary: a token that it does not know begins as the mean of what it was
    spelt with.
    """
    from safetensors.torch import load_file
    from transformers import AutoTokenizer

    model = build_model(recipe(), processor.tokenizer)
    weights = {name: value.float() for name, value in load_file(START).items()}
    known = AutoTokenizer.from_pretrained(START.parent)
    name = "model.language_model.embed_tokens.weight"
    before, rows = weights[name], []
    for token in range(len(processor.tokenizer)):
        text = processor.tokenizer.convert_ids_to_tokens(token)
        same = known.convert_tokens_to_ids(text)
        spelt = (
            [same] if same is not None else known(processor.tokenizer.decode([token]))["input_ids"]
        )
        rows.append(before[spelt].mean(0) if spelt else before.mean(0))
    weights[name] = torch.stack(rows)
    prefix = "model.vision_tower.timm_model."
    weights |= {prefix + key: value for key, value in tower.items()}
    weights = _moved_up(weights, LAYERS)
    weights["lm_head.weight"] = weights[name]  # tied
    model.load_state_dict({**model.state_dict(), **weights})
    give_first_layers(model, seed=0)
    return model


def _moved_up(weights: dict[str, torch.Tensor], by: int) -> dict[str, torch.Tensor]:
    """The weights with layer 0 as layer `by`, and so on."""
    prefix = "model.language_model.layers."
    moved = {}
    for key, value in weights.items():
        if key.startswith(prefix):
            number, rest = key.removeprefix(prefix).split(".", 1)
            key = f"{prefix}{int(number) + by}.{rest}"
        moved[key] = value
    return moved


def train(folder: Path) -> None:
    """Train from where the last run stopped; every 200 steps, and at the end, write the
    checkpoint (half precision), `training.json` and what is needed to go on.
    """
    from safetensors.torch import load_file

    eyes = train_eyes(WHERE)
    weights = load_file(eyes)
    tower = tower_with(weights)
    for place, shards in ((WHERE, SHARDS), (WHERE / "exam", EXAM_SHARDS)):
        see_shards(tower, partial(read_shard, place), shards, place)
    torch.manual_seed(int(stream(SEED, NAME).integers(2**31)))
    folder.mkdir(parents=True, exist_ok=True)
    processor = build_processor(recipe(), folder, taught_words())
    model = start_model(processor, weights)
    learn(model, processor, folder, read_notes(eyes))


def learn(model: Any, processor: LlavaProcessor, folder: Path, eyes: Json) -> None:
    """Go through the steps that are left."""
    model.model.vision_tower.requires_grad_(False)
    parameters = [p for p in model.parameters() if p.requires_grad]
    learner = Learner(model, adamw(parameters, RATE, weight_decay=0.05), speed)
    notes: Json = {"name": NAME, "eyes": eyes, "log": []}
    begun, state = 0, WHERE / "state.pt"
    kept = learner.go_on(state)
    if kept:
        notes, begun = json.loads(kept["notes"]), kept["step"]
    seen, held_out = Seen(SEED, SHARDS, WHERE), exams()
    held_seen = Seen(f"{SEED}/exam", EXAM_SHARDS, WHERE / "exam")
    model.train(False)  # without dropout, also while it learns
    clock = Clock.after(notes["log"])
    desk = Desk(SEED, SHARDS * SHARD)
    for step, batch in prepared(partial(exercises, desk), range(begun, STEPS)):
        letters = phase_of(PHASES, step - 1).letters
        clock.take(learner.step(losses(model, processor, batch, seen, letters)))
        if step % LOGGED == 0 or step == STEPS:
            shares = validate(model, processor, held_out, held_seen)
            notes["log"].append(clock.row(step, shares, digits=4))
            notes["phases"] = [asdict(phase) for phase in PHASES]
            notes["recipe"] = {"batch": BATCH, "rate": RATE, "steps": STEPS, "seed": SEED}
            notes["torch"] = torch.__version__
            notes["exercises"] = {name: len(each) for name, each in held_out.items()}
            save(model, folder)
            write_notes(notes, folder)
            write_chooser_card(folder)
            learner.keep(state, {"notes": json.dumps(notes), "step": step})


def speed(step: int) -> float:
    """Share of the highest rate at a step counted from 0."""
    return rise_and_fall(step, STEPS, rise=60, least=0.02)


def losses(
    model: Any, processor: LlavaProcessor, batch: list[Exercise], seen: Seen, letters: float
) -> Iterator[torch.Tensor]:
    """Those of a step, whose sum is the mean over its parts."""
    counted = torch.ones(len(processor.tokenizer))
    tokens = processor.tokenizer.convert_tokens_to_ids([f"Ġ{letter}" for letter in LETTERS])
    counted[tokens] = letters
    for part in parts(batch):
        said = answered(model, processor, part, seen)
        yield F.cross_entropy(said.logits, said.labels, counted) * len(part) / len(batch)


if __name__ == "__main__":
    torch.set_num_threads(2)
    train(TRAINING / NAME)
    shutil.copytree(TRAINING / NAME, WEIGHTS / NAME, dirs_exist_ok=True)
