"""What an edition of the synthetic CRAG-MM holds, before anything is drawn: the entities of each
split, what the knowledge graph and the web have of them, questions and conversations.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from numpy.random import Generator

from vrag_kit.synthetic.crag_mm import conversations as talk
from vrag_kit.synthetic.crag_mm.entities import (
    GENERAL,
    Entity,
    EntityWorld,
    NameGenerator,
    WebPage,
    choose_by_share,
    general_page,
    pages_about,
)
from vrag_kit.synthetic.world.traits import T, shuffled, stream

QUESTIONS_AN_ENTITY = 2  # single-turn questions about one entity, each with its picture
_LOOK_ALIKES = {1: 0.7, 2: 0.3}
_MORE = 0.6  # entities that nobody asks about and nobody mistakes, for each asked one
_MISSING = 0.07  # of the asked entities are not in the knowledge graph
_BARE = 0.12  # chance that one of the tail has no attributes there
_WITH_ADDRESS = 0.2  # of the pictures are not taken by glasses
POPULARITY = {"head": 1 / 3, "torso": 1 / 3, "tail": 1 / 3}
"""How often entities are photographed and written about → their share."""
_PAGES = {"head": 3, "torso": 2, "tail": 1}
_UNWRITTEN = 0.35  # chance that there is no page about one of the tail
_FAULTS = ("low light", "blurred", "truncated", "occluded", "rotated")
QUALITY_SHARES = {"normal": 0.5, **dict.fromkeys(_FAULTS, 0.1)}
"""In CRAG-MM 84 % are normal; here there is enough of each for an interval."""

SEARCH = {"image_k": 10, "similarity_threshold": 0.85, "web_k": 5, "rewrite": "retrieved"}
"""Parameters of the search of the editions, …"""
PROMPTS = {"prompt_set": "paper", "image_context_chars": 1600, "web_context_chars": 3600}
"""… of their prompts …"""
CONVERSATION = {
    "history": "generated",
    "early_stopping": False,
    "max_answer_tokens": 75,
    "answer_tokenizer": "",
}
"""… and of their conversations."""


@dataclass(frozen=True, slots=True)
class CragMMEdition:
    """How large an edition is."""

    splits: Mapping[str, Mapping[str, int]]  # name → questions (single-turn), conversations
    worn: tuple[int, int]  # width and height of a worn picture, pixels
    photograph: int  # side of a photograph of the knowledge graph
    photographs: Mapping[str, int]  # popularity → how many of an entity are there
    seed: str


EDITIONS = {
    "full": CragMMEdition(
        splits={
            "validation": {"questions": 80, "conversations": 24},
            "public_test": {"questions": 240, "conversations": 100},
        },
        worn=(192, 256),
        photograph=128,
        photographs={"head": 5, "torso": 3, "tail": 1},
        seed="worn-glasses",
    ),
    "small": CragMMEdition(
        splits={
            "validation": {"questions": 12, "conversations": 4},
            "public_test": {"questions": 24, "conversations": 8},
        },
        worn=(96, 128),
        photograph=96,
        photographs={"head": 3, "torso": 2, "tail": 1},
        seed="pocket-glasses",
    ),
}


@dataclass(frozen=True, slots=True)
class EntityEntry:
    """An entity with what an edition has of it."""

    entity: Entity
    popularity: str
    photographs: int  # in the knowledge graph; 0: it is not there
    bare: bool  # it has no attributes there
    pages: tuple[WebPage, ...]


@dataclass(frozen=True, slots=True)
class Session:
    """One picture with its question, or its conversation."""

    session_id: str
    entry: EntityEntry
    turns: tuple[talk.Turn, ...]
    interaction_ids: tuple[str, ...]
    quality: str
    egocentric: bool
    picture: str  # name of its stream


@dataclass(frozen=True, slots=True)
class Split:
    """All of a split."""

    name: str
    entries: list[EntityEntry]
    general: list[WebPage]  # about the regions and describers of asked entities
    single: list[Session]
    multi: list[Session]


_Asked = tuple[EntityEntry, tuple[talk.Turn, ...]]
"""An entity with an image, and the questions about it."""


def plan_edition(edition: CragMMEdition) -> list[Split]:
    """Return all splits of an edition, no name in two of them; draws nothing."""
    names = NameGenerator(edition.seed)
    return [_plan_split(edition, name, names) for name in edition.splits]


def _plan_split(edition: CragMMEdition, name: str, names: NameGenerator) -> Split:
    seed = f"{edition.seed}/{name}"
    size = edition.splits[name]
    world = EntityWorld(seed, names)
    about = -(-size["questions"] // QUESTIONS_AN_ENTITY)
    count = about + size["conversations"]
    asked = [world.new_entity() for _ in range(count)]
    near = [_look_alikes(world, each, stream(seed, "near", each.name)) for each in asked]
    more = [world.new_entity() for _ in range(round(_MORE * count))]
    entries = [_entry(each, seed, edition.photographs) for each in asked]
    for i in stream(seed, "missing").permutation(count)[: max(1, round(_MISSING * count))]:
        entries[i] = replace(entries[i], photographs=0)
    pictured = list(zip(entries, near, strict=True))
    single = list(_single_turns(seed, size["questions"], pictured[:about]))
    lengths = allocate_by_share(talk.LENGTH_SHARES, size["conversations"], stream(seed, "lengths"))
    multi: list[_Asked] = []
    for i, (entry, others) in enumerate(pictured[about:]):
        name_of_turns = f"{seed}/conversation/{i}"
        turns = talk.make_conversation(entry.entity, others, name_of_turns, lengths[i])
        multi.append((entry, turns))
    sessions = list(_sessions(seed, [*single, *multi]))
    for entity in (*chain.from_iterable(near), *more):
        entries.append(_entry(entity, seed, edition.photographs))
    facts = {each.facts["region"] for each in asked} | {each.facts["describer"] for each in asked}
    general = [general_page(world, each) for each in GENERAL if each in facts]
    return Split(name, entries, general, sessions[: len(single)], sessions[len(single) :])


def _look_alikes(world: EntityWorld, of: Entity, rng: Generator) -> tuple[Entity, ...]:
    found = [world.new_confusable(of) for _ in range(choose_by_share(_LOOK_ALIKES, rng))]
    return tuple(filter(None, found))


def _entry(entity: Entity, seed: str, photographs: Mapping[str, int]) -> EntityEntry:
    rng = stream(seed, "entry", entity.name)
    popularity = choose_by_share(POPULARITY, rng)
    is_tail = popularity == "tail"
    unwritten = is_tail and rng.random() < _UNWRITTEN
    bare = is_tail and rng.random() < _BARE
    pages = pages_about(entity, 0 if unwritten else _PAGES[popularity], seed)
    return EntityEntry(entity, popularity, photographs[popularity], bare, tuple(pages))


def _single_turns(
    seed: str, count: int, about: Sequence[tuple[EntityEntry, tuple[Entity, ...]]]
) -> Iterator[_Asked]:
    """Questions in turn about each entity; nothing is asked twice of one."""
    categories = allocate_by_share(talk.TYPE_SHARES, count, stream(seed, "categories"))
    asked: set[tuple[str, str]] = set()
    for i, category in enumerate(categories):
        entry, others = about[i % len(about)]
        for attempt in range(50):
            name = f"{seed}/single/{i}/{attempt}"
            turn = talk.make_single_turn(entry.entity, others, name, category)
            key = (entry.entity.name, turn.question)
            if key not in asked:
                break
        asked.add(key)
        yield entry, (turn,)


def _sessions(seed: str, asked: Sequence[_Asked]) -> Iterator[Session]:
    """Give sessions their ids and the qualities of their images, in exact shares; those with a URL
    are all normal.
    """
    ids = stream(seed, "ids")
    egocentric = round(len(asked) * (1 - _WITH_ADDRESS))
    shares = {**QUALITY_SHARES, "normal": QUALITY_SHARES["normal"] - _WITH_ADDRESS}
    shares = {quality: share / (1 - _WITH_ADDRESS) for quality, share in shares.items()}
    qualities = allocate_by_share(shares, egocentric, stream(seed, "qualities"))
    order = stream(seed, "pictures").permutation(len(asked)).tolist()
    for (entry, turns), place in zip(asked, order, strict=True):
        is_egocentric = place < egocentric
        quality = qualities[place] if is_egocentric else "normal"
        session_id = _new_id(ids)
        names = tuple(_new_id(ids) for _ in turns) if len(turns) > 1 else (session_id,)
        image = f"{seed}/asked/{session_id}"
        yield Session(session_id, entry, turns, names, quality, is_egocentric, image)


def _new_id(rng: Generator) -> str:
    return str(uuid.UUID(bytes=rng.bytes(16), version=4))


def allocate_by_share(shares: Mapping[T, float], count: int, rng: Generator) -> list[T]:
    """Return each key as often as its share says, to less than one, in a random order."""
    total = sum(shares.values())
    exact = {key: count * share / total for key, share in shares.items()}
    by_rest = sorted(shares, key=lambda key: int(exact[key]) - exact[key])
    extra = by_rest[: count - sum(map(int, exact.values()))]
    dealt: list[T] = []
    for key in shares:
        dealt += [key] * (int(exact[key]) + (key in extra))
    return shuffled(dealt, rng)
