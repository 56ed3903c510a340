"""What the answerer of conversations is taught with: CRAG-MM's prompts about fresh
scenes of the worn Field Guide, and the chain that each prompt allows.

A lesson is a conversation read at once, each of its answers learned: either one turn in
the paper's wording, with the turns before it as text, or all turns below one context.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

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
from vrag_kit.fieldguide.worn.pages import Page, tells
from vrag_kit.fieldguide.worn.scenes import Scene, fresh_scene
from vrag_kit.fieldguide.worn.taught import Shown, chain, rewriting
from vrag_kit.fieldguide.worn.vocab import drawn, pick
from vrag_kit.generation.rendering import render
from vrag_kit.papers.crag_mm import rewriting_wording, wording_of
from vrag_kit.types import Evidence, Prompt, Query
from vrag_kit.types import Turn as Told

if TYPE_CHECKING:
    from PIL import Image

_FURTHER = {KNOWLEDGE: 0.3, COMPARISON: 0.3, MULTI_HOP: 0.13, AGGREGATION: 0.12, REASONING: 0.15}
"""Types of further questions → share; yes and no are the hardest to learn."""
_FEW = 9
"""Genera and epithets of a crowded scene."""
_DRILLED = {COMPARISON: 0.75, REASONING: 0.25}
_ENTITY = re.compile(r"^Entity \d+: (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Lesson:
    """Prompts and the answers that follow each of them, in one sequence."""

    prompts: tuple[str, ...]  # with "<image>" where the picture stands
    answers: tuple[str, ...]
    picture: int  # number in the stock


@dataclass(frozen=True, slots=True)
class Stage:
    """What lessons hold at most, and how often they are of a sort, in shares."""

    entities: int = 10  # found by the image search
    pages: int = 10  # found by the web search
    whole: float = 0.0  # all turns below one context; otherwise the paper's wording
    talk: float = 0.5  # conversations; otherwise single questions
    blind: float = 0.1  # without any search
    web: float = 0.7  # of those with the image search, also with the web search
    known: float = 0.85  # the web search knows whom it is about
    rewritten: float = 0.0  # the question is to be said anew
    beside: float = 0.0  # pages tell the asked fact of others, and often not of the subject
    absent: float = 0.0  # no search finds the pictured one, only those that look like it
    crowded: float = 0.0  # names share their words with others', as in a large web
    full: float = 0.0  # as many entities and pages as there may be
    more: int = 0  # questions below one context beside the conversation's
    drilled: float = 0.0  # nothing but many questions of yes and no about one or two
    image_chars: int = 1600


@dataclass(frozen=True, slots=True)
class _Placeholder:
    """Stands for a picture in a prompt; nobody opens it."""

    where: str = "a picture of the stock"
    stamp: str = ""

    def data(self) -> bytes:
        raise NotImplementedError

    def open(self) -> Image.Image:
        raise NotImplementedError


_PICTURE = _Placeholder()


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


def searched(
    scene: Scene, turns: Sequence[Turn], stage: Stage, rng: np.random.Generator
) -> tuple[list[Evidence], list[Page]]:
    """What the searches bring, by the stage: documents, and the pages among them."""
    if rng.random() < stage.blind:
        return [], []
    if rng.random() < stage.absent:
        scene = _without(scene)
    full = rng.random() < stage.full
    found = scene.found[: stage.entities if full else int(rng.integers(1, stage.entities + 1))]
    documents = [_of_graph(entity, rng) for entity in found]
    if rng.random() >= stage.web:
        return documents, []
    pages: dict[str, Page] = {}
    count = stage.pages if full else int(rng.integers(1, stage.pages + 1))
    for turn in turns:
        known = bool(rng.random() < stage.known)
        near = list(scene.pages_for(turn, known=known))
        if rng.random() < stage.beside:
            near = _beside(near, turn, rng)
        for page in near[: 1 + count // len(turns)]:
            pages[page.url] = page
    order = rng.permutation(len(pages)) if len(turns) > 1 else np.arange(len(pages))
    chosen = [list(pages.values())[i] for i in order[:count]]
    return [*documents, *map(of_web, chosen)], chosen


def _beside(pages: list[Page], turn: Turn, rng: np.random.Generator) -> list[Page]:
    """Pages as a search for words ranks them: about the subject first, then those that
    tell the asked fact of another; in every other case nothing tells it of the subject.
    """
    needs = turn.ask.needs(turn.subject)
    keys = {key for _, key in needs}
    if rng.random() < 0.5:
        pages = [each for each in pages if not any(tells(each.told, *need) for need in needs)]

    def place(page: Page) -> tuple[bool, bool]:
        told = {key for _, key in page.told}
        return page.name != turn.subject.name, not keys & told

    return sorted(pages, key=place)


def _without(scene: Scene) -> Scene:
    """The scene where nothing is to be found about the pictured one."""
    found = tuple(each for each in scene.found if each is not scene.pictured)
    pages = tuple(page for page in scene.pages if page.name != scene.pictured.name)
    return replace(scene, found=found or scene.look_alikes or scene.others[:2], pages=pages)


def _of_graph(entity: Entity, rng: np.random.Generator) -> Evidence:
    attributes = entity.attributes if rng.random() < 0.93 else ""
    told = {"entity_name": entity.name, "entity_attributes": attributes}
    metadata = {"source": "image_search", "entities": [told], "url": ""}
    return Evidence(doc_id=f"kg-{entity.name.replace(' ', '-')}", metadata=metadata)


def of_web(page: Page) -> Evidence:
    """A page as the web search brings it."""
    metadata = {"source": "web_search", "page_name": page.name, "page_url": page.url}
    return Evidence(doc_id=page.url, text=page.snippet, metadata=metadata)


def _worded(scene: Scene, picture: int, stage: Stage, rng: np.random.Generator) -> Lesson:
    """One turn in the paper's wording, mostly after those before it."""
    place = int(rng.integers(len(scene.turns)))
    turn = scene.turns[place]
    documents, pages = searched(scene, [turn], stage, rng)
    history = remembered(scene, place, stage, rng)
    prompt = _prompt(turn, len(scene.turns) > 1, documents, _told(scene, history), stage)
    answer = chain(turn, _shown(scene, documents, pages, prompt, history))
    return Lesson((prompt,), (answer,), picture)


def remembered(scene: Scene, place: int, stage: Stage, rng: np.random.Generator) -> list[str]:
    """Answers to the turns before: the chains that other contexts allowed, or the
    reference; sometimes none.
    """
    history: list[str] = []
    if rng.random() < 0.15:
        return history
    own = rng.random() < 0.75
    for before in scene.turns[:place]:
        said = before.reply.sentence
        if own:
            documents, pages = searched(scene, [before], stage, rng)
            said = chain(before, _shown(scene, documents[:2], pages, "", history))
        history.append(said)
    return history


def _told(scene: Scene, history: Sequence[str]) -> list[Told]:
    pairs = zip(scene.turns, history, strict=False)
    return [Told(turn.question, said) for turn, said in pairs]


def _rewritten(scene: Scene, picture: int, stage: Stage, rng: np.random.Generator) -> Lesson:
    """A question to be said anew, with or without what the image search found."""
    place = int(rng.integers(len(scene.turns)))
    turn = scene.turns[place]
    documents, _ = searched(scene, [turn], replace(stage, web=0.0), rng)
    history = remembered(scene, place, stage, rng)
    setting = ("found" if documents else "image") + ("_history" if history else "")
    query = Query(query_id="any", text=turn.question, image=_PICTURE)
    template = rewriting_wording(image_chars=stage.image_chars).template(setting)
    prompt = as_text(render(template, query, documents, _told(scene, history)))
    said = rewriting(turn, _shown(scene, documents, (), prompt, history))
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
            query = Query(query_id="any", text=turn.question, image=_PICTURE)
            setting = "found" if documents else "image"
            template = rewriting_wording(image_chars=stage.image_chars).template(setting)
            prompts.append(as_text(render(template, query, documents)))
        said = rewriting(turn, _shown(scene, documents, (), prompts[0], ()))
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


def _prompt(
    turn: Turn,
    in_talk: bool,
    documents: Sequence[Evidence],
    history: Sequence[Told],
    stage: Stage,
) -> str:
    sources = {document.metadata["source"] for document in documents}
    arm = "mm_llm"
    if sources:
        arm = "task_1" if sources == {"image_search"} else "task_2"
    if history and arm == "task_2":
        arm = "task_3"
    template = wording_of(image_chars=stage.image_chars, web_chars=3600).template(arm)
    talk = "talk" if in_talk else None
    query = Query(query_id="any", text=turn.question, image=_PICTURE, conversation_id=talk)
    return as_text(render(template, query, documents, history))


def as_text(prompt: Prompt) -> str:
    """A prompt as the chat template words it, up to where the answer begins."""
    said = []
    for message in prompt:
        parts = [part if isinstance(part, str) else "<image>" for part in message.parts]
        before = " " if message.role == "assistant" else ""
        said.append(f"<|{message.role}|>{before}{''.join(parts)}<|end|>")
    return "".join(said) + "<|assistant|>"


def _shown(
    scene: Scene,
    documents: Sequence[Evidence],
    pages: Sequence[Page],
    prompt: str,
    history: Sequence[str],
) -> Shown:
    """What the prompt tells; without a prompt, all of the documents."""
    names = set(_ENTITY.findall(prompt))
    if not prompt:
        names = {
            each.metadata["entities"][0]["entity_name"]
            for each in documents
            if each.text is None and each.metadata["entities"][0]["entity_attributes"]
        }
    every = (scene.pictured, *scene.look_alikes, *scene.others)
    entities = [entity for entity in every if entity.name in names]
    there = [page for page in pages if not prompt or page.snippet in prompt]
    return Shown(entities, there, tuple(history))


def _whole(scene: Scene, picture: int, stage: Stage, rng: np.random.Generator) -> Lesson:
    """All turns below one context, as messages, and the stage's further questions."""
    documents, pages = searched(scene, scene.turns, stage, rng)
    first = _prompt(scene.turns[0], True, documents, (), stage)
    shown = _shown(scene, documents, pages, first, ())
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
    documents = [_of_graph(entity, rng) for entity in every]
    told = Shown(every)
    turns = _more(scene, told, 30, _DRILLED, rng)
    first = _prompt(turns[0], True, documents, (), Stage())
    return _below(first, turns, _shown(scene, documents, (), first, ()), picture)


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
