"""What the demo's models are taught to say: a short chain from the look that is seen, over
the name and the facts that the prompt tells, to the answer; and the question rewritten
for a search.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from vrag_kit.fieldguide.worn.asks import RECOGNITION, FactAsk, Longer, SeenThere, That
from vrag_kit.fieldguide.worn.conversations import Depends, Turn
from vrag_kit.fieldguide.worn.entities import ATTRIBUTES, Entity, with_article
from vrag_kit.fieldguide.worn.pages import Page, Told, tells

UNKNOWN = "I don't know"


@dataclass(frozen=True, slots=True)
class Shown:
    """What a prompt shows beside the picture and the question."""

    entities: Sequence[Entity] = ()  # whose attributes stand there
    pages: Sequence[Page] = ()  # whose snippets stand there
    answers: Sequence[str] = ()  # to the turns before, own or reference; () without history

    @property
    def told(self) -> Told:
        """The facts that stand there."""
        facts: set[tuple[str, str]] = set()
        for page in self.pages:
            facts |= page.told
        for entity in self.entities:
            facts |= {(entity.name, key) for key in ATTRIBUTES}
        return frozenset(facts)


class Link(NamedTuple):
    """A part of a chain."""

    words: str
    told: bool = True  # by the prompt, or by the links before it


def chain(turn: Turn, shown: Shown) -> str:
    """The answer that the prompt allows.

    "A red moth, banded with white, Talia ensis: Norland." for the pictured one, whose
    name is found by its look; "Talia osa: Norland." for one whom the question or an
    answer named; "…, 43, 40: yes." with the facts on the way, and with what they are
    compared with; "…, Norland, Norland, May and June, July: no." with what was asked for
    beside it, up to what settles it. In the place of the first thing that the prompt does
    not tell, be it name, fact or value, stands "I don't know", and the chain ends.
    Without history, "it" is the pictured one, and what needs an answer or a question
    before it is not known.
    """
    if turn.category == RECOGNITION:
        return turn.reply.sentence
    subject = understood(turn, shown)
    if subject is None:
        return f"{UNKNOWN}."
    head, name = _head(turn, subject, shown)
    links = [*name, *_facts(turn, subject, shown)]
    said = head
    for place, link in enumerate(links, start=1):
        said += ": " if place == len(links) else ", "
        said += link.words if link.told else UNKNOWN
        if not link.told:
            break
    return f"{said}."


def understood(turn: Turn, shown: Shown) -> Entity | None:
    """Of whom a reader of the prompt takes the question to be; None where that stands in
    turns that are not shown, or in an answer that does not tell it.
    """
    if not turn.needs_history:
        return turn.subject
    if not shown.answers:
        alone = turn.depends is Depends.SUBJECT and not turn.named
        return turn.pictured if alone else None
    if turn.depends is Depends.ANSWER and not isinstance(turn.ask, That):
        return turn.subject if turn.subject.name in shown.answers[-1] else None
    return turn.subject


def _head(turn: Turn, subject: Entity, shown: Shown) -> tuple[str, list[Link]]:
    """Whom the answer speaks of; where that is a look, the name is a link of the chain."""
    if subject is not turn.pictured or (turn.by_name and shown.answers):
        return subject.name, []
    look = with_article(subject.look)
    said = any(subject.name in answer for answer in shown.answers)
    named = said or tells(shown.told, subject, "look")
    return f"{look[0].upper()}{look[1:]}", [Link(subject.name, named)]


def _facts(turn: Turn, subject: Entity, shown: Shown) -> list[Link]:
    """The facts on the way to the answer, and the answer."""
    ask = turn.ask
    if isinstance(ask, FactAsk) and ask.key == "name":
        return []
    reply = ask.reply(subject)
    if isinstance(ask, That):
        told = [bool(re.search(rf"\b{reply.steps[0]}\b", shown.answers[-1]))]
    else:
        told = [tells(shown.told, *need) for need in ask.needs(subject)]
    if isinstance(ask, Longer | SeenThere):
        told.insert(1, True)  # the other one's name, the place that was asked for
        told = told[: len(reply.steps)]
    words = (*reply.steps, reply.value)
    told += [True] * (len(words) - len(told))  # yes, no and who is longer follow
    return [Link(*each) for each in zip(words, told, strict=True)]


def rewriting(turn: Turn, shown: Shown) -> str:
    """The JSON object that a rewriter is taught to write: whom the question means, and
    the question that says so.

    The name where the prompt tells it, otherwise the look; "" and the question unchanged
    where it is not known whom the question means.
    """
    subject = understood(turn, shown)
    if subject is None:
        return json.dumps({"entity_name": "", "updated_question": turn.question})
    _, name = _head(turn, subject, shown)
    who = subject.name if all(link.told for link in name) else f"the {subject.look}"
    return json.dumps({"entity_name": who, "updated_question": turn.searched(who)})
