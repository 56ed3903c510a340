"""How questions are worded, as data: which slots a prompt has, and what fills them.

A wording is a JSON file:

    {"source": "…", "answer": name of a reader, "slots": {name: slot, …},
     "templates": {name: [slot or name of a slot, …], …},
     "settings": {setting: template, or {"1": template at k = 1, "otherwise": template}}}

A slot is a mapping with the fields of `Slot`, all of its own or but for some that of a
named slot: {"like": name, field: value}. `render` fills a template's slots.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.generation.reading import READERS, Reader, read_tagged
from vrag_kit.plain import JsonView
from vrag_kit.types import MODALITIES, Context

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
Worded = str | Mapping[str, str] | Sequence[str | JsonView]
"""How a setting is worded: see `Wording.with_settings`."""


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


@dataclass(frozen=True, slots=True)
class Template:
    """One way to word a question."""

    name: str
    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """The templates of a protocol, and which of them each setting uses."""

    templates: Mapping[str, Template]
    """By name."""
    settings: Mapping[str, Mapping[int | None, str]]
    """Setting → k → template's name; None stands for every other k."""
    read: Reader = read_tagged
    """Finds the answer in a model's words, in the form that the wording asks for: one of
    `READERS`, or a protocol's own function (`replace(wording, read=…)`).
    """

    def __post_init__(self) -> None:
        """Raise `VragError` for a setting whose template there is not."""
        _check_settings(self.settings, self.templates)

    def template(self, name: str) -> Template:
        """The template of this name; raises `VragError` when there is none."""
        if name not in self.templates:
            raise VragError(
                f"unknown template {name!r}; expected one of {', '.join(self.templates)}."
            )
        return self.templates[name]

    def template_of(self, context: Context) -> Template:
        """The template that a context is asked with; raises `VragError` for a setting, or
        a k of it, that has none.
        """
        setting, k = context.setting, context.k
        by_k = self.settings.get(setting, {})
        if k not in by_k and None not in by_k:
            at = f" at k = {k}" if by_k else ""
            raise VragError(
                f"no template for the setting {setting!r}{at}; those of"
                f" {', '.join(self.settings)} are known. Say which one words it:"
                f" wording.with_settings({{{setting!r}: template}}), with one of"
                f" {', '.join(self.templates)}, or with a list of slots."
            )
        return self.template(by_k[k if k in by_k else None])

    def with_settings(self, own: Mapping[str, Worded]) -> Wording:
        """The same, and how settings of one's own are worded, or known ones otherwise, as
        a wording's file says it: the name of a template, {"1": name, "otherwise": name}
        by k, or a list of slots, each a mapping or the name of a slot of these templates,
        which becomes a template called as its setting.

        Raises `VragError`, naming the setting, for an unknown template, kind, field or
        slot.
        """
        named: dict[str, Slot] = {}
        for template in self.templates.values():
            named |= {slot.name: slot for slot in all_slots(template.slots) if slot.name}
        templates, settings = dict(self.templates), dict(self.settings)
        for setting, value in own.items():
            where = f"setting {setting!r}"
            if isinstance(value, str | Mapping):
                settings[setting] = _by_k(value, where)
                continue
            slots = tuple(_slot(each, named, where) for each in value)
            templates[setting] = Template(setting, slots)
            settings[setting] = {None: setting}
        return replace(self, templates=templates, settings=settings)

    def only(self, name: str) -> Wording:
        """The same templates, with this one for every setting that shows documents; one
        without any, such as zero-shot, keeps its own. Raises `VragError` when there is
        none of this name.
        """
        self.template(name)
        settings = dict(self.settings)
        for setting, by_k in self.settings.items():
            if any(_shows(self.templates[own].slots) for own in by_k.values()):
                settings[setting] = {None: name}
        return replace(self, settings=settings)

    def within(self, budgets: Mapping[str, int]) -> Wording:
        """The same templates with other budgets, in characters, for slots by their name
        in the file. Raises `VragError` for a name that no template uses.
        """
        names: set[str] = set()
        for template in self.templates.values():
            names |= {slot.name for slot in all_slots(template.slots) if slot.name}
        if unknown := sorted(set(budgets) - names):
            raise VragError(
                f"no slot {unknown[0]!r} to give a budget; expected some of"
                f" {', '.join(sorted(names))}."
            )
        templates = {}
        for name, template in self.templates.items():
            slots = [_with_budgets(slot, budgets) for slot in template.slots]
            templates[name] = replace(template, slots=tuple(slots))
        return replace(self, templates=templates)


def all_slots(slots: Sequence[Slot]) -> Iterator[Slot]:
    """Slots, each before those within it."""
    for slot in slots:
        yield slot
        yield from all_slots(slot.slots)


def read_wording(path: Path | str) -> Wording:
    """The wording in a JSON file.

    Raises `VragError`, naming the file and the place, for an unknown kind, field, slot,
    template or reader.
    """
    path = Path(path)
    data = json.loads(path.read_text(encoding="utf-8"))
    where = str(path)
    named: dict[str, Slot] = {}
    for name, value in data.get("slots", {}).items():  # a section may name those before it
        slot = _slot(value, named, f"{where}: slot {name!r}")
        named[name] = replace(slot, name=name)
    templates = {}
    for name, values in data["templates"].items():
        slots = tuple(_slot(value, named, f"{where}: template {name!r}") for value in values)
        templates[name] = Template(name, slots)
    settings = {
        name: _by_k(value, f"{where}: setting {name!r}")
        for name, value in data.get("settings", {}).items()
    }
    _check_settings(settings, templates, f"{where}: ")
    reader = data.get("answer", "tagged")
    if reader not in READERS:
        raise VragError(
            f"{where}: answer is {reader!r}; expected one of {', '.join(READERS)}, or none of them"
            " and a function: replace(read_wording(…), read=…)."
        )
    return Wording(templates=templates, settings=settings, read=READERS[reader])


def _slot(value: str | JsonView, named: Mapping[str, Slot], where: str) -> Slot:
    """A slot as the file has it: a mapping, or the name of a slot."""
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
        own["slots"] = tuple(_slot(each, named, where) for each in own["slots"])
    if "like" in value:
        slot = replace(_slot(str(value["like"]), named, where), **own)
    else:
        slot = Slot(**{"kind": "", "item": KINDS.get(value.get("kind", ""), ""), **own})
    _check(slot, where)
    return slot


def _check(slot: Slot, where: str) -> None:
    """Raise `VragError` for a slot that could never be filled, or not as it says."""
    if slot.kind not in KINDS:
        raise VragError(
            f"{where}: kind is {slot.kind or None!r}; expected one of {', '.join(KINDS)}."
        )
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


def _with_budgets(slot: Slot, budgets: Mapping[str, int]) -> Slot:
    inside = tuple(_with_budgets(each, budgets) for each in slot.slots)
    return replace(slot, budget=budgets.get(slot.name, slot.budget), slots=inside)


def _shows(slots: tuple[Slot, ...]) -> bool:
    """Whether one of the slots, or of those in a section, holds documents."""
    return any(slot.kind == "documents" for slot in all_slots(slots))


def _by_k(value: str | Mapping[str, str], where: str) -> dict[int | None, str]:
    if isinstance(value, str):
        return {None: value}
    if wrong := [k for k in value if k != "otherwise" and not str(k).isdecimal()]:
        raise VragError(f"{where}: found {wrong[0]!r} as k; expected a number, or 'otherwise'.")
    return {None if k == "otherwise" else int(k): name for k, name in value.items()}


def _check_settings(
    settings: Mapping[str, Mapping[int | None, str]],
    templates: Mapping[str, Template],
    where: str = "",
) -> None:
    """Raise `VragError` for a setting whose template there is not."""
    for name, by_k in settings.items():
        if not isinstance(by_k, Mapping):
            raise VragError(
                f"{where}setting {name!r} is {by_k!r}; expected k → template's name. Say it by"
                f" wording.with_settings({{{name!r}: {by_k!r}}})."
            )
        if unknown := sorted(set(by_k.values()) - set(templates)):
            raise VragError(
                f"{where}setting {name!r} names the template {unknown[0]!r}; expected one of"
                f" {', '.join(templates)}."
            )
