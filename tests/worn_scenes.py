"""Fresh random scenes in the worn Field Guide's language: a pictured entity, others, pages
about them, and a conversation.
"""

from __future__ import annotations

from dataclasses import dataclass

from vrag_kit.synthetic.crag_mm.conversations import (
    LENGTH_SHARES,
    RECOGNITION,
    TYPE_SHARES,
    Ask,
    Turn,
    make_conversation,
    make_single_turn,
)
from vrag_kit.synthetic.crag_mm.entities import (
    GENERAL,
    Entity,
    EntityWorld,
    NameGenerator,
    WebPage,
    choose_by_share,
    general_page,
    pages_about,
    with_article,
)
from vrag_kit.synthetic.world.traits import choose, stream

UNKNOWN = "I don't know"
_PAGES = {0: 0.15, 1: 0.3, 2: 0.3, 3: 0.25}  # pages about an entity → share


@dataclass(frozen=True, slots=True)
class Scene:
    """A small world around one picture."""

    pictured: Entity
    look_alikes: tuple[Entity, ...]
    others: tuple[Entity, ...]
    turns: tuple[Turn, ...]
    pages: tuple[WebPage, ...]

    @property
    def entities(self) -> tuple[Entity, ...]:
        return (self.pictured, *self.look_alikes, *self.others)


def fresh_scene(name: str, *, length: int = 0, category: str = "") -> Scene:
    """The scene of that name, always the same.

    `length` turns (0: as many as conversations have, 1: a single question, then of the
    type `category`).
    """
    rng, world = stream(name, "scene"), EntityWorld(name, NameGenerator(name))
    pictured = world.new_entity()
    others = tuple(world.new_entity() for _ in range(8))
    near = [world.new_confusable(pictured) for _ in range(int(rng.integers(1, 4)))]
    look_alikes = tuple(each for each in near if each)
    length = length or choose_by_share(LENGTH_SHARES, rng)
    if length == 1:
        category = category or choose_by_share(TYPE_SHARES, rng)
        turns: tuple[Turn, ...] = (make_single_turn(pictured, look_alikes, name, category),)
    else:
        turns = make_conversation(pictured, look_alikes, name, length)
    pages: list[WebPage] = []
    for entity in (pictured, *look_alikes, *others):
        pages += pages_about(entity, choose_by_share(_PAGES, rng), name)
    pages += [general_page(world, choose(GENERAL, rng)) for _ in range(4)]
    return Scene(pictured, look_alikes, others, turns, tuple(pages))


def steps(ask: Ask, of: Entity) -> tuple[str, ...]:
    """The facts on the way to an answer; last the two numbers that are compared."""
    fact = of.facts.get(ask.key, "")
    if ask.form == "fact":
        first = {"capital": "region", "born": "describer"}
        return (of.facts[first[ask.key]],) if ask.key in first else ()
    if ask.form == "seen":
        months = (of.facts["months"], ask.month) if ask.place in of.list_fact(ask.key) else ()
        return (fact, ask.place, *months)
    if ask.other:
        numbers = (str(each.numeric_fact("length")) for each in (of, ask.other))
        return (fact, ask.other.name, ask.other.facts["length"], *numbers)
    return (str(of.numeric_fact(ask.key)), str(ask.number))


def chain(turn: Turn, known: int | None = None) -> str:
    """What the bundled answerer of conversations is taught to say: the look, the name, the
    facts on the way and the answer. "I don't know" stands in place of the first link that
    is not known; all are, unless `known` counts them.
    """
    if turn.category == RECOGNITION:
        return turn.reply.sentence
    links = [*steps(turn.ask, turn.subject), turn.reply.value]
    head = turn.subject.name
    if turn.subject is turn.pictured:
        look = with_article(turn.subject.look)
        head = f"{look[0].upper()}{look[1:]}"
        if links != [turn.subject.name]:  # where the name is not what is asked for
            links.insert(0, turn.subject.name)
    if known is not None and known < len(links):
        links = [*links[:known], UNKNOWN]
    *way, last = links
    return f"{', '.join([head, *way])}: {last}."
