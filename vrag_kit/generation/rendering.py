"""Render prompts: fill a template's slots with query, evidence and earlier turns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from vrag_kit.errors import VragError
from vrag_kit.generation.prompts import Template
from vrag_kit.generation.slots import FIELD, Slot, all_slots
from vrag_kit.types import Document, LazyImage, Message, Prompt, Query, Turn

Part = str | LazyImage
_Metadata = Mapping[str, Any]  # Any: metadata may hold what JSON holds


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A prompt, and the documents that it shows."""

    prompt: Prompt
    doc_ids: tuple[str, ...]
    """The documents shown, in the order of first appearance, without those that a budget or
    `unique` leaves out.
    """


@dataclass(frozen=True, slots=True)
class _Filling:
    """What slots are filled with."""

    query: Query
    evidence: Sequence[Document]
    history: Sequence[Turn]
    shown: dict[int, str] = field(default_factory=dict)
    """Place in the evidence → doc_id of what was shown so far; filled by the slots."""


def render(
    template: Template,
    query: Query,
    evidence: Sequence[Document] = (),
    history: Sequence[Turn] = (),
) -> Prompt:
    """Return the prompt of `render_with_documents`; raises as it does."""
    return render_with_documents(template, query, evidence, history).prompt


def render_with_documents(
    template: Template,
    query: Query,
    evidence: Sequence[Document] = (),
    history: Sequence[Turn] = (),
) -> RenderedPrompt:
    """Fill a template's slots in order, and return the prompt with its documents.

    Adjacent texts become one part, adjacent slots of one role one message. A documents slot takes
    the documents that have the fields of its item, in order, within its budget. A slot without
    items is omitted with its header. Raises `VragError` for evidence that no slot takes.
    """
    filling = _Filling(query, evidence, history)
    messages: list[tuple[str, list[Part]]] = []
    for slot in _there(template.slots, filling):
        if slot.kind == "turns":
            for turn in history:
                answer = turn.answer or slot.silence
                messages += [("user", [turn.question]), ("assistant", [answer])]
            continue
        parts = _fill(slot, filling, slot.budget)
        if not parts:
            continue
        if slot.apart or not messages or messages[-1][0] != slot.role:
            messages.append((slot.role, []))
        messages[-1][1].extend(parts)
    _check_taken(template, filling)
    prompt = tuple(Message(role=role, parts=_joined(parts)) for role, parts in messages)
    return RenderedPrompt(prompt, tuple(filling.shown.values()))


def _there(slots: Sequence[Slot], filling: _Filling) -> list[Slot]:
    """The slots that a question like this one has, whatever fills them."""
    told = bool(filling.history)
    in_talk = filling.query.conversation_id is not None
    here = {"": True, "alone": not in_talk, "talk": in_talk, "first": not told, "later": told}
    return [slot for slot in slots if here[slot.when]]


def _fill(slot: Slot, filling: _Filling, room: int | None) -> list[Part]:
    """The parts of a slot, in at most `room` characters; none when it has no items."""
    if slot.kind == "text":
        return [slot.text] if room is None or len(slot.text) <= room else []
    header = _headed(slot.header, filling.query)
    footer = _headed(slot.footer, filling.query)
    left = None if room is None else room - len(header) - len(footer)
    fill = _section if slot.kind == "section" else _items
    items = fill(slot, filling, left)
    if not items:
        return []
    return [part for part in (header, *items, footer) if part != ""]


def _section(slot: Slot, filling: _Filling, left: int | None) -> list[Part]:
    """The parts of a section's slots, which share what is left of its budget; fixed
    words alone are nothing.
    """
    parts: list[Part] = []
    full = False
    for inner in _there(slot.slots, filling):
        room = _least(left, inner.budget)
        found = _fill(inner, filling, room)
        full = full or (bool(found) and inner.kind != "text")
        parts += found
        left = None if left is None else left - _length(found)
    return parts if full else []


def _items(slot: Slot, filling: _Filling, left: int | None) -> list[Part]:
    """The items of a slot that fit into what is left."""
    parts: list[Part] = []
    shown: set[str] = set()
    number = slot.first
    for place, given in _given(slot, filling):
        item = _item(slot.item, {"number": number, **given})
        name = str(given.get(slot.unique, ""))
        if item is None or (slot.unique and name in shown):
            continue
        if parts and slot.between:
            item = [slot.between, *item]
        if left is not None and _length(item) > left:
            if slot.overflow == "stop":
                break
            continue
        left = None if left is None else left - _length(item)
        parts += item
        shown.add(name)
        number += 1
        if place is not None:
            filling.shown[place] = filling.evidence[place].doc_id
    return parts


def _given(slot: Slot, filling: _Filling) -> Iterator[tuple[int | None, _Metadata]]:
    """The fields of each item that a slot may show, in order, each after the place of
    the document that it is from (None for what is from none).
    """
    query = filling.query
    if slot.kind == "question":
        yield None, {"question": query.text}
    elif slot.kind == "query_image":
        if query.image is not None:
            yield None, {"image": query.image}
    elif slot.kind == "choices":
        for place, choice in enumerate(query.choices):
            yield None, {"letter": chr(ord("A") + place), "choice": choice}
    elif slot.kind == "history":
        for turn in filling.history:
            yield None, {"question": turn.question, "answer": turn.answer}
    else:
        for place, document in enumerate(filling.evidence):
            for entry in _entries(slot, document):
                yield place, entry


def _entries(slot: Slot, document: Document) -> Iterator[_Metadata]:
    """The fields of a document, or of each of its entries."""
    if slot.source and document.metadata.get("source") != slot.source:
        return
    if slot.modality not in ("", document.modality):
        return
    own = {**document.metadata, "image": document.image, "text": document.text}
    if not slot.entries:
        yield _full(own)
        return
    for entry in document.metadata.get(slot.entries) or ():
        yield _full({**own, **entry})


def _full(given: _Metadata) -> _Metadata:
    """The fields that hold something."""
    return {name: value for name, value in given.items() if not _is_empty(value)}


def _is_empty(value: object) -> bool:
    """Whether a field holds nothing; numbers hold something, and so do pictures."""
    return value is None or (isinstance(value, str | list | dict) and not value)


def _item(template: str, given: _Metadata) -> list[Part] | None:
    """An item with its fields filled in; None when one of them is missing."""
    parts: list[Part] = []
    for words, name in _pieces(template):
        if words:
            parts.append(words)
        if not name:
            continue
        if name not in given:
            return None
        value = given[name]
        part = value if name == "image" else _words(value)
        if part != "":
            parts.append(part)
    return parts


@cache
def _pieces(template: str) -> tuple[tuple[str, str], ...]:
    """An item's words, each with the field that follows it, "" behind the last."""
    pieces = []
    end = 0
    for place in FIELD.finditer(template):
        pieces.append((template[end : place.start()], place[1]))
        end = place.end()
    return (*pieces, (template[end:], ""))


def _words(value: object) -> str:
    """A field as text; what is more than a text or number as JSON."""
    if isinstance(value, str | int | float):
        return str(value)
    return json.dumps(value, ensure_ascii=False, indent=2)


def _check_taken(template: Template, filling: _Filling) -> None:
    """Raise `VragError` for a document that no slot would show, were there room."""
    left = [
        document for place, document in enumerate(filling.evidence) if place not in filling.shown
    ]
    slots = [slot for slot in all_slots(template.slots) if slot.kind == "documents"]
    for document in left:
        alone = _Filling(filling.query, [document], ())
        if not any(_items(slot, alone, None) for slot in slots):
            raise VragError(
                f"document {document.doc_id!r} of query {filling.query.query_id!r} is shown by no"
                f" slot of the template {template.name!r}: it has {_has(document)}. Take another"
                " template, or other documents."
            )


def _has(document: Document) -> str:
    has = [
        name
        for name, value in (("an image", document.image), ("a text", document.text))
        if value is not None
    ]
    return " and ".join(has) or "neither image nor text"


def _headed(words: str, query: Query) -> str:
    return words.replace("{question}", query.text)


def _least(*rooms: int | None) -> int | None:
    limits = [room for room in rooms if room is not None]
    return min(limits) if limits else None


def _length(parts: Sequence[Part]) -> int:
    return sum(len(part) for part in parts if isinstance(part, str))


def _joined(parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts with text beside text made one."""
    joined: list[Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, str) and isinstance(last, str):
            joined[-1] = last + part
        else:
            joined.append(part)
    return tuple(joined)
