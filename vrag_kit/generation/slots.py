"""`Slot`: a part of a prompt template, and how a prompt file defines it."""

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
"""Kind of slot → its default item.

text: fixed text. question, choices, query_image: from the query. documents: one item per document.
history: earlier turns as text; turns: as separate messages. section: other slots, with one budget.
"""

FIELD = re.compile(r"\{(\w+)\}")
"""A field of an item, to be filled in."""

WHEN = ("", "alone", "talk", "first", "later")
"""When a slot is shown: always; for a standalone question, or a turn of a conversation; without
earlier turns, or with some.
"""
_IN_HEADERS = {"question"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A part of a prompt: header, items, footer. It is omitted if it has no items."""

    kind: str
    """One of `KINDS`."""
    name: str = ""
    """Its name in the prompt file; "" for a slot within a template."""
    role: str = "user"
    """Role of its message: "user" or "system"."""
    when: str = ""
    """One of `WHEN`."""
    apart: bool = False
    """Whether it begins a new message."""
    text: str = ""
    """Fixed text, as it is; only for the kind "text"."""
    header: str = ""
    """Text before the items; {question} is filled in."""
    item: str = ""
    """One item, with fields in braces: {question}, {letter}, {choice}, {answer}, {number}, {image}
    (the image itself), {text}, and those of a document's metadata. Documents that lack a field of
    the item are skipped.
    """
    between: str = ""
    """Text between two items."""
    silence: str = ""
    """Text in place of an empty answer; only for the kind "turns"."""
    footer: str = ""
    """Text after the items; {question} is filled in."""
    source: str = ""
    """Shows only documents whose metadata has this "source"; "" shows any."""
    modality: str = ""
    """Shows only documents of this modality (`Document.modality`), "image" or "text", so that a
    caption is not a passage; "" shows any.
    """
    entries: str = ""
    """A list in a document's metadata, each of whose entries is an item."""
    unique: str = ""
    """A field whose values are shown only once each."""
    first: int = 1
    """The {number} of the first item."""
    budget: int | None = None
    """Maximum number of characters, including header and footer; None for no limit."""
    overflow: str = "skip"
    """Items that do not fit are skipped ("skip"), or end the slot ("stop")."""
    slots: tuple[Slot, ...] = ()
    """The slots of a section."""

    def __post_init__(self) -> None:
        """Use the default item of its kind if none is given."""
        if not self.item:
            object.__setattr__(self, "item", KINDS.get(self.kind, ""))


def all_slots(slots: Sequence[Slot]) -> Iterator[Slot]:
    """Iterate over slots, each before the slots within it."""
    for slot in slots:
        yield slot
        yield from all_slots(slot.slots)


def read_slot(value: str | JsonView, named: Mapping[str, Slot], where: str) -> Slot:
    """Return a slot from its form in a prompt file: a mapping, or the name of one in `named`.

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
