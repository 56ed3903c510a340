"""What the demo's models are taught to say: a short chain from the look that is seen, over
the name and the facts that the prompt tells, to the answer; and the question rewritten
for a search.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from vrag_kit.fieldguide.worn.asks import RECOGNITION, FactAsk, That
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


def chain(turn: Turn, shown: Shown) -> str:
    """The answer that the prompt allows.

    "A red moth, banded with white, Talia ensis: Norland." for the pictured one, whose
    name is found by its look; "Talia osa: Norland." for one whom the question or an
    answer named; "…, 43 mm: yes." with the facts on the way. What the prompt does not
    tell is "I don't know" in the value's place. Without history, "it" is the pictured
    one, and what needs an answer or a question before it is not known.
    """
    if turn.category == RECOGNITION:
        return turn.reply.sentence
    subject = understood(turn, shown)
    if subject is None:
        return f"{UNKNOWN}."
    head, named = _head(turn, subject, shown)
    told = shown.told
    needs = [need for need in turn.ask.needs(subject) if need[1] != "look"]
    known = named and all(tells(told, *need) for need in needs)
    reply = turn.ask.reply(subject)
    if isinstance(turn.ask, That):
        known = reply.steps[0] in shown.answers[-1]
    if not known:
        return f"{head}: {UNKNOWN}."
    return f"{', '.join((head, *reply.steps))}: {reply.value}."


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


def _head(turn: Turn, subject: Entity, shown: Shown) -> tuple[str, bool]:
    """Whom the answer speaks of, and whether the name is known."""
    if subject is not turn.pictured or (turn.by_name and shown.answers):
        return subject.name, True
    look = with_article(subject.look)
    head = f"{look[0].upper()}{look[1:]}"
    said = any(subject.name in answer for answer in shown.answers)
    named = said or tells(shown.told, subject, "look")
    asks_name = isinstance(turn.ask, FactAsk) and turn.ask.key == "name"
    return (f"{head}, {subject.name}" if named and not asks_name else head), named


def rewriting(turn: Turn, shown: Shown) -> str:
    """The JSON object that a rewriter is taught to write: whom the question means, and
    the question that says so.

    The name where the prompt tells it, otherwise the look; "" and the question unchanged
    where it is not known whom the question means.
    """
    subject = understood(turn, shown)
    if subject is None:
        return json.dumps({"entity_name": "", "updated_question": turn.question})
    _, named = _head(turn, subject, shown)
    who = subject.name if named else f"the {subject.look}"
    return json.dumps({"entity_name": who, "updated_question": turn.searched(who)})
