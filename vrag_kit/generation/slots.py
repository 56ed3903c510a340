"""The slots of a prompt: what each holds, and how a wording's file says it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from vrag_kit.errors import VragError
from vrag_kit.plain import JsonView
from vrag_kit.types import MODALITIES

KINDS = {
    "text": "",
    "question": "{question}",
    "choices": "({letter}) {choice}\n",
    "query_image": "{image}",
    "documents": "",
    "history": "",
    "turns": "",
    "section": "",
}
"""What a slot holds → its item, where the wording gives none.

text: fixed words. question, choices, query_image: the query's. documents: evidence, an
item each. history: earlier turns as text; turns: as messages of their own. section:
other slots, with one budget.
"""

FIELD = re.compile(r"\{(\w+)\}")
"""A place in an item that is filled."""

WHEN = ("", "alone", "talk", "first", "later")
"""When a slot is there: always; where the question stands alone, or is a turn of a
conversation; where no earlier turn is told, or some are.
"""
_IN_HEADERS = {"question"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A part of a prompt: header, items, footer. Without an item it vanishes whole."""

    kind: str
    """One of `KINDS`."""
    name: str = ""
    """What the wording's file calls it; "" where it stands within a template."""
    role: str = "user"
    """Who says it: "user" or "system"."""
    when: str = ""
    """One of `WHEN`."""
    apart: bool = False
    """Whether a message of its own begins here."""
    text: str = ""
    """Fixed words, as they stand; only for the kind "text"."""
    header: str = ""
    """Before the items; {question} is filled in."""
    item: str = ""
    """One item, with fields in braces: {question}, {letter}, {choice}, {answer},
    {number}, {image} (the picture itself), {text}, and those of a document's metadata.
    What lacks a field that the item shows is passed over.
    """
    between: str = ""
    """Between two items."""
    silence: str = ""
    """In the place of an answer without words; only for the kind "turns"."""
    footer: str = ""
    """After the items; {question} is filled in."""
    source: str = ""
    """Takes only documents whose metadata's "source" is this; "" takes any."""
    modality: str = ""
    """Takes only documents of this modality (`Evidence.modality`), "image" or "text", so
    that a caption is no passage; "" takes any.
    """
    entries: str = ""
    """A list in a document's metadata, each of whose entries is an item."""
    unique: str = ""
    """A field whose values are shown once each."""
    first: int = 1
    """{number} of the first item."""
    budget: int | None = None
    """Characters at most, header and footer included; None for no limit."""
    overflow: str = "skip"
    """What does not fit is passed over ("skip"), or ends the slot ("stop")."""
    slots: tuple[Slot, ...] = ()
    """What a section holds."""

    def __post_init__(self) -> None:
        """Without an item, that of its kind."""
        if not self.item:
            object.__setattr__(self, "item", KINDS.get(self.kind, ""))


def all_slots(slots: Sequence[Slot]) -> Iterator[Slot]:
    """Slots, each before those within it."""
    for slot in slots:
        yield slot
        yield from all_slots(slot.slots)


def read_slot(value: str | JsonView, named: Mapping[str, Slot], where: str) -> Slot:
    """A slot as a wording's file has it: a mapping, or the name of one of those `named`.

    Raises `VragError`, beginning with `where`, for an unknown kind, field or slot.
    """
    if isinstance(value, str):
        if value not in named:
            raise VragError(
                f"{where}: no slot {value!r}; expected a mapping, or one of {', '.join(named)}."
            )
        return named[value]
    known = [field.name for field in fields(Slot) if field.name != "name"]
    if unknown := sorted(set(value) - {*known, "like"}):
        raise VragError(f"{where}: unknown field {unknown[0]!r}; expected {', '.join(known)}.")
    own = {name: each for name, each in value.items() if name != "like"}
    if "slots" in own:
        own["slots"] = tuple(read_slot(each, named, where) for each in own["slots"])
    if "like" in value:
        slot = replace(read_slot(str(value["like"]), named, where), **own)
    else:
        slot = Slot(**{"kind": "", **own})
    _check(slot, where)
    return slot


def _check(slot: Slot, where: str) -> None:
    """Raise `VragError` for a slot that could never be filled, or not as it says."""
    if slot.kind not in KINDS:
        raise VragError(
            f"{where}: kind is {slot.kind or None!r}; expected one of {', '.join(KINDS)}."
        )
    if slot.kind == "text" and not slot.text:
        raise VragError(f'{where}: a slot of the kind "text" without words; give it `text`.')
    if slot.when not in WHEN:
        raise VragError(f"{where}: when is {slot.when!r}; expected one of {', '.join(WHEN[1:])}.")
    if slot.role not in ("user", "system"):
        raise VragError(f"{where}: role is {slot.role!r}; expected 'user' or 'system'.")
    if slot.overflow not in ("skip", "stop"):
        raise VragError(f"{where}: overflow is {slot.overflow!r}; expected 'skip' or 'stop'.")
    if slot.modality not in ("", *MODALITIES):
        raise VragError(
            f"{where}: modality is {slot.modality!r}; expected one of {', '.join(MODALITIES)}."
        )
    if slot.kind in ("documents", "history") and not FIELD.search(slot.item):
        raise VragError(f"{where}: its item shows nothing; give it a field such as {{text}}.")
    if odd := set(FIELD.findall(slot.header + slot.footer)) - _IN_HEADERS:
        raise VragError(
            f"{where}: header or footer holds {{{sorted(odd)[0]}}}; only {{question}} is filled in"
            " there. Put fixed words with braces into a slot of the kind 'text'."
        )
