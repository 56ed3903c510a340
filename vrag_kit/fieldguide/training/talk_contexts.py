"""What a lesson of the answerer of conversations shows: what the searches bring, the
answers to the turns before, and CRAG-MM's wording of both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from vrag_kit.fieldguide.training.wording import PICTURE, in_words
from vrag_kit.fieldguide.worn.conversations import Turn
from vrag_kit.fieldguide.worn.entities import Entity
from vrag_kit.fieldguide.worn.pages import Page, tells
from vrag_kit.fieldguide.worn.scenes import Scene
from vrag_kit.fieldguide.worn.taught import Shown, chain
from vrag_kit.generation.rendering import render
from vrag_kit.papers.crag_mm import wording_of
from vrag_kit.types import Evidence, Prompt, Query
from vrag_kit.types import Turn as Told

_ENTITY = re.compile(r"^Entity \d+: (.+)$", re.MULTILINE)

_GUESSED = 0.3
"""How often a web search finds whom it is about where the image search found nothing."""


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
    bare: float = 0.0  # of those with the web search, the image search found nothing sure
    crowded: float = 0.0  # names share their words with others', as in a large web
    full: float = 0.0  # as many entities and pages as there may be
    more: int = 0  # questions below one context beside the conversation's
    drilled: float = 0.0  # nothing but many questions of yes and no about one or two
    image_chars: int = 1600


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
    documents = [of_graph(entity, rng) for entity in found]
    if rng.random() >= stage.web:
        return documents, []
    if stage.bare and rng.random() < stage.bare:
        documents, stage = [], replace(stage, known=_GUESSED)
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


def of_graph(entity: Entity, rng: np.random.Generator) -> Evidence:
    """An entity as the image search brings it, seldom without its attributes."""
    attributes = entity.attributes if rng.random() < 0.93 else ""
    told = {"entity_name": entity.name, "entity_attributes": attributes}
    metadata = {"source": "image_search", "entities": [told], "url": ""}
    return Evidence(doc_id=f"kg-{entity.name.replace(' ', '-')}", metadata=metadata)


def of_web(page: Page) -> Evidence:
    """A page as the web search brings it."""
    metadata = {"source": "web_search", "page_name": page.name, "page_url": page.url}
    return Evidence(doc_id=page.url, text=page.snippet, metadata=metadata)


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
            said = chain(before, shown_in(scene, documents[:2], pages, "", history))
        history.append(said)
    return history


def turns_told(scene: Scene, history: Sequence[str]) -> list[Told]:
    """The first turns of a scene, each with what was answered."""
    pairs = zip(scene.turns, history, strict=False)
    return [Told(turn.question, said) for turn, said in pairs]


def prompt_of(
    turn: Turn,
    in_talk: bool,
    documents: Sequence[Evidence],
    history: Sequence[Told],
    stage: Stage,
) -> str:
    """The question of a turn in the paper's wording, with what was found and said before;
    which of its templates follows from the sources of the documents.
    """
    sources = {document.metadata["source"] for document in documents}
    arm = "mm_llm"
    if sources:
        arm = "task_1" if sources == {"image_search"} else "task_2"
    if history and arm == "task_2":
        arm = "task_3"
    template = wording_of(image_chars=stage.image_chars, web_chars=3600).template(arm)
    talk = "talk" if in_talk else None
    query = Query(query_id="any", text=turn.question, image=PICTURE, conversation_id=talk)
    return as_text(render(template, query, documents, history))


def as_text(prompt: Prompt) -> str:
    """A prompt as the chat template words it, up to where the answer begins."""
    said = []
    for message in prompt:
        before = " " if message.role == "assistant" else ""
        said.append(f"<|{message.role}|>{before}{in_words(message)}<|end|>")
    return "".join(said) + "<|assistant|>"


def shown_in(
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
