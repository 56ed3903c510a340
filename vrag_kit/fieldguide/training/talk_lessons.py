"""What the answerer of conversations is taught with: CRAG-MM's prompts about fresh
scenes of the worn Field Guide, and the chain that each prompt allows.

A lesson is a conversation read at once, each of its answers learned: either one turn in
the paper's wording, with the turns before it as text, or all turns below one context.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vrag_kit.fieldguide.training.talk_contexts import (
    Stage,
    as_text,
    of_graph,
    prompt_of,
    remembered,
    searched,
    shown_in,
    turns_told,
)
from vrag_kit.fieldguide.training.wording import PICTURE
from vrag_kit.fieldguide.training.worn_stock import EACH, individual
from vrag_kit.fieldguide.traits import Species, stream
from vrag_kit.fieldguide.worn.asks import (
    AGGREGATION,
    COMPARISON,
    KNOWLEDGE,
    MULTI_HOP,
    REASONING,
    FactAsk,
)
from vrag_kit.fieldguide.worn.conversations import Depends, Turn, ask_about
from vrag_kit.fieldguide.worn.entities import Entity, World, look_words, with_article
from vrag_kit.fieldguide.worn.scenes import Scene, fresh_scene
from vrag_kit.fieldguide.worn.taught import Shown, chain, rewriting
from vrag_kit.fieldguide.worn.vocab import drawn, pick
from vrag_kit.generation.rendering import render
from vrag_kit.papers.crag_mm import rewriting_wording
from vrag_kit.types import Query

_FURTHER = {KNOWLEDGE: 0.3, COMPARISON: 0.3, MULTI_HOP: 0.13, AGGREGATION: 0.12, REASONING: 0.15}
"""Types of further questions → share; yes and no are the hardest to learn."""
_DRILLED = {COMPARISON: 0.4, REASONING: 0.6}
"""And of the questions of a drill."""
_FEW = 9
"""Genera and epithets of a crowded scene."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """Prompts and the answers that follow each of them, in one sequence."""

    prompts: tuple[str, ...]  # with "<image>" where the picture stands
    answers: tuple[str, ...]
    picture: int  # number in the stock


class Album:
    """Which pictures of a stock show a look."""

    def __init__(self, seed: str, species: int) -> None:
        self._of: dict[str, list[int]] = defaultdict(list)
        for number in range(species):
            self._of[_look(individual(seed, number))].append(number)

    def shows(self, entity: Entity) -> bool:
        """Whether any does."""
        return entity.look in self._of

    def picture(self, entity: Entity, rng: np.random.Generator) -> int:
        """One of them."""
        some = self._of[entity.look]
        return some[int(rng.integers(len(some)))] * EACH + int(rng.integers(EACH))


def _look(species: Species) -> str:
    return look_words(species.kind, species.outside)


@dataclass(frozen=True, slots=True)
class School:
    """Makes lessons with the pictures of a stock."""

    seed: str
    album: Album

    def lesson(self, name: str, stage: Stage, category: str = "") -> Lesson:
        """The lesson of that name."""
        rng = stream(self.seed, name)
        talk = rng.random() < stage.talk
        few = _FEW if rng.random() < stage.crowded else 0
        scene = self.scene(name, length=0 if talk else 1, category=category, few=few)
        picture = self.album.picture(scene.pictured, rng)
        if rng.random() < stage.drilled:
            return _drill(scene, picture, rng)
        if rng.random() < stage.rewritten:
            if rng.random() < stage.whole:
                return _all_rewritten(scene, picture, stage, rng)
            return _rewritten(scene, picture, stage, rng)
        if talk and rng.random() < stage.whole:
            return _whole(scene, picture, stage, rng)
        return _worded(scene, picture, stage, rng)

    def scene(self, name: str, *, length: int = 0, category: str = "", few: int = 0) -> Scene:
        """A fresh scene whose pictured species looks as one of the stock."""
        for turn in range(1000):
            key = f"{self.seed}/{name}/{turn}"
            if self.album.shows(World(key).entity()):  # whom the scene of that name pictures
                return fresh_scene(key, length=length, category=category, few=few)
        raise RuntimeError(f"{name}: no picture of the stock fits")


def _worded(scene: Scene, picture: int, stage: Stage, rng: np.random.Generator) -> Lesson:
    """One turn in the paper's wording, mostly after those before it."""
    place = int(rng.integers(len(scene.turns)))
    turn = scene.turns[place]
    documents, pages = searched(scene, [turn], stage, rng)
    history = remembered(scene, place, stage, rng)
    prompt = prompt_of(turn, len(scene.turns) > 1, documents, turns_told(scene, history), stage)
    answer = chain(turn, shown_in(scene, documents, pages, prompt, history))
    return Lesson((prompt,), (answer,), picture)


def _rewritten(scene: Scene, picture: int, stage: Stage, rng: np.random.Generator) -> Lesson:
    """A question to be said anew, with or without what the image search found."""
    place = int(rng.integers(len(scene.turns)))
    turn = scene.turns[place]
    documents, _ = searched(scene, [turn], replace(stage, web=0.0), rng)
    history = remembered(scene, place, stage, rng)
    setting = ("found" if documents else "image") + ("_history" if history else "")
    query = Query(query_id="any", text=turn.question, image=PICTURE)
    template = rewriting_wording(image_chars=stage.image_chars).template(setting)
    prompt = as_text(render(template, query, documents, turns_told(scene, history)))
    said = rewriting(turn, shown_in(scene, documents, (), prompt, history))
    return Lesson((prompt,), (f"{_thought(turn, said)}: {said}",), picture)


def _all_rewritten(scene: Scene, picture: int, stage: Stage, rng: np.random.Generator) -> Lesson:
    """All questions that stand alone, to be said anew one after the other."""
    documents, _ = searched(scene, scene.turns, replace(stage, web=0.0), rng)
    prompts: list[str] = []
    answers: list[str] = []
    for turn in scene.turns:
        if turn.needs_history:
            continue
        if prompts:
            prompts.append(f"<|user|>Question: {turn.question}<|end|><|assistant|>")
        else:
            query = Query(query_id="any", text=turn.question, image=PICTURE)
            setting = "found" if documents else "image"
            template = rewriting_wording(image_chars=stage.image_chars).template(setting)
            prompts.append(as_text(render(template, query, documents)))
        said = rewriting(turn, shown_in(scene, documents, (), prompts[0], ()))
        answers.append(f"{_thought(turn, said)}: {said}")
    return Lesson(tuple(prompts), tuple(answers), picture)


def _thought(turn: Turn, said: str) -> str:
    """What is said before the JSON object: whom the question means."""
    name = json.loads(said)["entity_name"]
    look = with_article(turn.pictured.look)
    look = f"{look[0].upper()}{look[1:]}"
    if not name:
        return "I don't know"
    if name.startswith("the "):
        return look
    return f"{look}, {name}" if name == turn.pictured.name and not turn.by_name else str(name)


def _whole(scene: Scene, picture: int, stage: Stage, rng: np.random.Generator) -> Lesson:
    """All turns below one context, as messages, and the stage's further questions."""
    documents, pages = searched(scene, scene.turns, stage, rng)
    first = prompt_of(scene.turns[0], True, documents, (), stage)
    shown = shown_in(scene, documents, pages, first, ())
    turns = [*scene.turns, *_more(scene, shown, stage.more, _FURTHER, rng)]
    return _below(first, turns, shown, picture)


def _below(first: str, turns: Sequence[Turn], shown: Shown, picture: int) -> Lesson:
    """The turns as messages, the first in a prompt that is written."""
    prompts, answers = [first], [chain(turns[0], shown)]
    for turn in turns[1:]:
        prompts.append(f"<|user|>Query: {turn.question}<|end|><|assistant|>")
        answers.append(chain(turn, replace(shown, answers=tuple(answers))))
    return Lesson(tuple(prompts), tuple(answers), picture)


def _drill(scene: Scene, picture: int, rng: np.random.Generator) -> Lesson:
    """Questions of yes and no, one after the other, about one or two of the graph."""
    every = (scene.pictured, *scene.look_alikes, *scene.others)[: int(rng.integers(1, 3))]
    documents = [of_graph(entity, rng) for entity in every]
    told = Shown(every)
    turns = _more(scene, told, 30, _DRILLED, rng)
    first = prompt_of(turns[0], True, documents, (), Stage())
    return _below(first, turns, shown_in(scene, documents, (), first, ()), picture)


def _more(
    scene: Scene, shown: Shown, count: int, shares: Mapping[str, float], rng: np.random.Generator
) -> list[Turn]:
    """Up to `count` questions about those whom the prompt names and about the pictured
    one, each once; whether it tells the facts is left to chance.
    """
    told = {who for who, _ in shown.told}
    if not told:
        return []
    known = scene.pictured.name in told
    every = (*scene.look_alikes, *scene.others)
    others = tuple(entity for entity in every if entity.name in told)
    turns: dict[str, Turn] = {}
    for _ in range(count):
        pictured = not others or rng.random() < (0.4 if known else 0.1)
        of = scene.pictured if pictured else pick(others, rng)
        near = tuple(each for each in (*others, *scene.look_alikes) if each is not of)
        ask = ask_about(of, near, drawn(shares, rng), rng)
        if isinstance(ask, FactAsk) and ask.key == "name" and not pictured:
            continue
        it = f"this {of.kind}" if pictured else of.name
        turn = Turn(ask.question(it), ask, of, scene.pictured, Depends.NOTHING)
        turns[turn.question] = replace(turn, named=not pictured, by_name=not pictured)
    return list(turns.values())
