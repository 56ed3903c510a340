"""Train the demo's answerers, small FastVLM models: `python -m
vrag_kit.fieldguide.training.train_answerer NAME`.

First the vision tower learns to see (`train_tower`, once for both); then a language
model behind it, on the tower's features, learns to answer from a stream of `lessons`:
single photographs before many, bare questions before the paper's wording, each about a
freshly invented species. At last, starting from the stored half-precision weights, it
learns to read passages of text beside that. The two answerers share tower and
architecture; they differ in how many photographs their prompts held.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from vrag_kit.fieldguide.training.answerer import (
    RECIPES,
    Recipe,
    build_model,
    build_processor,
    words_of,
)
from vrag_kit.fieldguide.training.cards import write_answerer_card, write_told
from vrag_kit.fieldguide.training.fast_vlm import save
from vrag_kit.fieldguide.training.learner import Learner, adamw, rise_and_fall
from vrag_kit.fieldguide.training.lessons import Lesson, Plan, lessons, look, read, told_facts
from vrag_kit.fieldguide.training.steps import TRAINING, WEIGHTS, Clock, prepared, write_notes
from vrag_kit.fieldguide.training.teaching import (
    PICTURE_TOKENS,
    Guesses,
    are_right,
    encoded,
    guesses,
)
from vrag_kit.fieldguide.training.tower import to_input
from vrag_kit.fieldguide.training.train_tower import (
    ROUNDS,
    read_notes,
    train_tower,
)
from vrag_kit.fieldguide.traits import stream
from vrag_kit.plain import Json

if TYPE_CHECKING:
    from transformers import FastVlmForConditionalGeneration, LlavaProcessor

ALONE = Plan(told=4, guess=2, single=26, several=0, most=1)
REVIEW = Plan(told=2, guess=1, single=5, several=2, most=20)
PASSAGES = {1: 16, 4: 8, 10: 4}
"""Most passages of a prompt that is read → such prompts in a step."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Step number → its lessons: single photographs in bare words first, then as many
    as the plan says, at last in the paper's wording, and with passages.
    """

    name: str
    recipe: Recipe
    facts: list[Lesson]  # of the told species

    def __call__(self, step: int) -> list[Lesson]:
        """The lessons of a step, counted from 0."""
        recipe, name = self.recipe, f"{self.recipe.seed}/{self.name}/{step}"
        if step >= recipe.steps:
            return self._reading(step - recipe.steps, name)
        if step < recipe.alone:
            return lessons(ALONE, self.facts, name, most=1, worded=False)
        return lessons(
            recipe.plan,
            self.facts,
            name,
            most=3 if step < recipe.alone + recipe.bare // 3 else 99,
            worded=step >= recipe.alone + recipe.bare,
        )

    def _reading(self, step: int, name: str) -> list[Lesson]:
        """Passages beside what was learned before, of which there is less while reading
        is new.
        """
        third = self.recipe.reading // 3
        early = step < 2 * third
        plan = REVIEW if early else self.recipe.plan
        most = 4 if early else 10
        if step < third:
            most = 1
        texts = [read(f"{name}/read/{i}", most=most) for i in range(PASSAGES[most])]
        if step < third:
            texts = [replace(lesson, template="") for lesson in texts]
        seen = lessons(plan, self.facts, name, most=self.recipe.plan.most, worded=True)
        return [*seen, *texts]


def answer_logits(
    model: FastVlmForConditionalGeneration, processor: LlavaProcessor, batch: Sequence[Lesson]
) -> Guesses:
    """What the model says of each lesson; the tower is frozen."""
    prompts = [words_of(each) + "<image>" * (PICTURE_TOKENS * len(each.pixels)) for each in batch]
    answers = [f"Answer: {each.answer}" for each in batch]
    return guesses(model, encoded(processor.tokenizer, prompts, answers), _seen(model, batch))


def _seen(model: FastVlmForConditionalGeneration, batch: Sequence[Lesson]) -> torch.Tensor | None:
    """What the tower sees in the photographs, shape (photographs, 9, 256); None without
    any.
    """
    pictures = [lesson.pixels for lesson in batch if len(lesson.pixels)]
    if not pictures:
        return None
    with torch.no_grad():
        seen = model.model.vision_tower(to_input(torch.cat(pictures))).last_hidden_state
    return torch.as_tensor(seen).flatten(2).permute(0, 2, 1)


def halves(batch: list[Lesson]) -> Iterator[list[Lesson]]:
    """The step's lessons in batches of similar length: up to one photograph, more, and
    passages.
    """
    for part in (
        [x for x in batch if len(x.pixels) < 2 and not x.passages],
        [x for x in batch if len(x.pixels) > 1],
        [x for x in batch if x.passages],
    ):
        if part:
            yield part


def validate(
    model: FastVlmForConditionalGeneration,
    processor: LlavaProcessor,
    sets: Mapping[str, Sequence[Lesson]],
) -> dict[str, float]:
    """Share of answers that are exactly right, by set, on held-out species (the told
    facts are the told ones).
    """
    shares = {}
    for name, chosen in sets.items():
        right = are_right(partial(answer_logits, model, processor), chosen, at_once=24)
        shares[name] = round(sum(right) / len(right), 3)
    return shares


def validation_sets(recipe: Recipe) -> dict[str, list[Lesson]]:
    """Held-out lessons in the paper's wording: told facts, one clue, no clue, one clue
    among 5 and 15, and passages that tell the answer and that do not.
    """
    name = f"{recipe.seed}/validation"
    return {
        "told": told_facts(),
        "clue": [look(f"{name}/clue/{i}", 1, 1) for i in range(150)],
        "no clue": [look(f"{name}/none/{i}", 1, 0) for i in range(72)],
        "1 in 5": [look(f"{name}/5/{i}", 5, 1) for i in range(72)],
        "1 in 15": [look(f"{name}/15/{i}", 15, 1) for i in range(72)],
        "read": [read(f"{name}/read/{i}", True) for i in range(48)],
        "not read": [read(f"{name}/not/{i}", False) for i in range(48)],
    }


def train(name: str, recipe: Recipe, folder: Path) -> None:
    """Train one answerer from random weights, and then teach it to read."""
    from safetensors.torch import load_file

    tower = train_tower(TRAINING)
    processor = build_processor(recipe, folder)
    torch.manual_seed(int(stream(recipe.seed, name).integers(2**31)))
    model = build_model(recipe, processor.tokenizer)
    model.model.vision_tower.timm_model.load_state_dict(load_file(tower))
    files = [TRAINING / f"tower-{number}.safetensors" for number in range(1, len(ROUNDS) + 1)]
    notes = {"name": name, "tower": [read_notes(file) for file in files], "log": []}
    course = Course(recipe, range(recipe.steps), recipe.learning_rate)
    learn(model, processor, course, notes, folder)
    learn_to_read(recipe, folder)


def learn_to_read(recipe: Recipe, folder: Path) -> None:
    """Go on from the checkpoint in `folder` with lessons of the plan and passages of
    text, which need a longer context.
    """
    from transformers import FastVlmForConditionalGeneration, LlavaProcessor

    processor = LlavaProcessor.from_pretrained(folder)
    processor.tokenizer.model_max_length = recipe.context
    processor.save_pretrained(folder)
    model = FastVlmForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
    model.config.get_text_config().max_position_embeddings = recipe.context
    notes = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    steps = range(recipe.steps, recipe.steps + recipe.reading)
    course = Course(recipe, steps, recipe.learning_rate / 2)
    learn(model, processor, course, notes, folder)


@dataclass(frozen=True, slots=True)
class Course:
    """The part of a training that is to be done."""

    recipe: Recipe
    steps: range  # of all the recipe's steps
    rate: float  # the highest learning rate

    def speed(self, step: int) -> float:
        """Share of the highest rate at a step counted from 0."""
        return rise_and_fall(step, len(self.steps), rise=60, least=0.02)

    def exams(self, step: int, held_out: dict[str, list[Lesson]]) -> dict[str, list[Lesson]]:
        """What is asked after a step: bare questions until the wording was taught."""
        if step > self.recipe.alone + self.recipe.bare:
            return held_out
        bare = {}
        for name, chosen in held_out.items():
            if not chosen[0].passages:
                bare[name] = [replace(lesson, template="") for lesson in chosen]
        return bare


def learn(
    model: FastVlmForConditionalGeneration,
    processor: LlavaProcessor,
    course: Course,
    notes: Json,
    folder: Path,
) -> None:
    """Train on the lessons of the course; every 300 steps, and at the end, write the
    checkpoint (half precision), `training.json`, what it was told and the card into
    `folder`.

    `notes` hold the log so far, which is added to.
    """
    recipe, steps = course.recipe, course.steps
    # torch documents memory_format, but its types leave it out
    model.model.vision_tower.requires_grad_(False).to(memory_format=torch.channels_last)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = adamw(parameters, course.rate, weight_decay=0.05)
    learner = Learner(model, optimizer, course.speed)
    held_out = validation_sets(recipe)
    total, trained = (sum(p.numel() for p in some) for some in (model.parameters(), parameters))
    print(f"{notes['name']}: {total:,} parameters, {trained:,} trained, {len(steps)} steps")
    model.train(False)  # without dropout, also while it learns
    clock = Clock(notes["log"][-1]["minutes"] if notes["log"] else 0.0)
    taught = Steps(notes["name"], recipe, told_facts())
    for step, batch in prepared(taught, steps):
        clock.take(learner.step(_losses(model, processor, batch)))
        if step % 300 == 0 or step == steps.stop:
            shares = validate(model, processor, course.exams(step, held_out))
            notes["log"].append(clock.row(step, shares, digits=4))
            save(model, folder)
            notes["recipe"] = {**asdict(recipe), "steps": recipe.steps}
            notes["torch"] = torch.__version__
            write_notes(notes, folder)
            write_told(folder)
            write_answerer_card(folder)


def _losses(
    model: FastVlmForConditionalGeneration, processor: LlavaProcessor, batch: list[Lesson]
) -> Iterator[torch.Tensor]:
    """Those of a step, whose sum is the mean over its parts."""
    for part in halves(batch):
        said = answer_logits(model, processor, part)
        yield F.cross_entropy(said.logits, said.labels) * len(part) / len(batch)


if __name__ == "__main__":
    torch.set_num_threads(1)
    chosen = sys.argv[1]
    if sys.argv[2:] == ["read"]:  # the last part alone, from the weights that are shipped
        shutil.copytree(WEIGHTS / chosen, TRAINING / chosen, dirs_exist_ok=True)
        learn_to_read(RECIPES[chosen], TRAINING / chosen)
    else:
        train(chosen, RECIPES[chosen], TRAINING / chosen)
    shutil.copytree(TRAINING / chosen, WEIGHTS / chosen, dirs_exist_ok=True)
