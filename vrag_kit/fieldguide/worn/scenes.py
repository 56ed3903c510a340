"""Fresh random scenes for training: a pictured entity, what searches might find, and a
conversation; no name of an edition occurs in any.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vrag_kit.fieldguide.traits import stream
from vrag_kit.fieldguide.worn.conversations import (
    LENGTH_SHARES,
    TYPE_SHARES,
    Turn,
    conversation,
    single_turn,
)
from vrag_kit.fieldguide.worn.entities import Entity, Names, World
from vrag_kit.fieldguide.worn.pages import GENERAL, Page, general_page, pages_about
from vrag_kit.fieldguide.worn.vocab import drawn, pick

_FOUND = 0.8  # how often the image search finds the pictured one
_PAGES = {0: 0.15, 1: 0.3, 2: 0.3, 3: 0.25}  # pages about an entity → share


@dataclass(frozen=True, slots=True)
class Scene:
    """A small world around one picture."""

    pictured: Entity
    look_alikes: tuple[Entity, ...]
    others: tuple[Entity, ...]
    found: tuple[Entity, ...]  # by the image search, best first; often with the pictured one
    turns: tuple[Turn, ...]
    pages: tuple[Page, ...]
    name: str

    def pages_for(self, turn: Turn, *, known: bool) -> tuple[Page, ...]:
        """Pages in an order in which a web search might find them: with a `known` name,
        first those about the subject and those whose names share a word with it;
        otherwise at random.
        """
        rng = stream(self.name, "web", turn.question)
        genus, epithet = turn.subject.name.split()
        scores = rng.random(len(self.pages))
        for i, page in enumerate(self.pages):
            words = page.name.split()
            if known:
                scores[i] += 2.0 * (genus in words) + 2.0 * (epithet in words)
        return tuple(self.pages[i] for i in np.argsort(-scores, kind="stable"))


def fresh_scene(name: str, *, length: int = 0, category: str = "", few: int = 0) -> Scene:
    """The scene of that name, always the same.

    `length` turns (0: as many as conversations have, 1: a single question, then of the
    type `category`, drawn when ""). With `few` names have so many genera and epithets.
    """
    rng, world = stream(name, "scene"), World(name, Names(name, few=few))
    pictured = world.entity()
    others = tuple(world.entity() for _ in range(8))
    near = [world.look_alike(pictured) for _ in range(int(rng.integers(1, 4)))]
    look_alikes = tuple(each for each in near if each)
    length = length or drawn(LENGTH_SHARES, rng)
    if length == 1:
        category = category or drawn(TYPE_SHARES, rng)
        turns: tuple[Turn, ...] = (single_turn(pictured, look_alikes, name, category),)
    else:
        turns = conversation(pictured, look_alikes, name, length)
    pages: list[Page] = []
    for entity in (pictured, *look_alikes, *others):
        pages += pages_about(entity, drawn(_PAGES, rng), name)
    pages += [general_page(world, pick(GENERAL, rng)) for _ in range(4)]
    found = _found(pictured, look_alikes, others, rng)
    return Scene(pictured, look_alikes, others, found, turns, tuple(pages), name)


def _found(
    pictured: Entity,
    look_alikes: tuple[Entity, ...],
    others: tuple[Entity, ...],
    rng: np.random.Generator,
) -> tuple[Entity, ...]:
    """Look-alikes stand high, the pictured one mostly before them, as an image search ranks
    them, where it is found at all.
    """
    scores = {}
    for entity in others[: int(rng.integers(1, len(others) + 1))]:
        scores[entity.name] = (rng.normal(0.0, 1.0), entity)
    for entity in look_alikes:
        scores[entity.name] = (rng.normal(1.5, 1.0), entity)
    if rng.random() < _FOUND:
        scores[pictured.name] = (rng.normal(3.2, 1.0), pictured)
    ranked = sorted(scores.values(), key=lambda pair: -pair[0])
    return tuple(entity for _, entity in ranked)
