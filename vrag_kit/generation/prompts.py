"""Prompt sets as data: the slots of each template, and the template of each setting.

A prompt set is a JSON file:

    {"source": "…", "answer": name of a parser, "slots": {name: slot, …},
     "templates": {name: [slot or name of a slot, …], …},
     "settings": {setting: template, or {"1": template at k = 1, "otherwise": template}}}

A slot is a mapping with the fields of `Slot`, or with changes to a named slot: {"like": name,
field: value}. `render` fills a template's slots.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vrag_kit.errors import VragError
from vrag_kit.generation.parsers import READERS, Reader, parse_tagged
from vrag_kit.generation.slots import Slot, all_slots, read_slot
from vrag_kit.plain import JsonView
from vrag_kit.types import Context
from vrag_kit.workspace import path as project_path

Worded = str | Mapping[str, str] | Sequence[str | JsonView]
"""The template of a setting: see `PromptSet.with_settings`."""


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt template: a name and its slots."""

    name: str
    slots: tuple[Slot, ...]
    asks: bool = field(init=False, compare=False)
    """Whether the question is in it, as text or as an image."""

    def __post_init__(self) -> None:
        """Compute `asks` once, since every prompt and row needs it."""
        asks = any(
            (slot.kind == "question" and "{question}" in slot.item)
            or slot.kind == "query_image"
            or (slot.kind != "text" and "{question}" in slot.header + slot.footer)
            for slot in all_slots(self.slots)
        )
        object.__setattr__(self, "asks", asks)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PromptSet:
    """The templates of a protocol, and which of them each setting uses."""

    templates: Mapping[str, Template]
    """Templates by name."""
    settings: Mapping[str, Mapping[int | None, str]]
    """Setting → k → template's name; None stands for every other k."""
    read: Reader = parse_tagged
    """Parses the answer from a model's text, in the form that the templates ask for: one of
    `READERS`, or a protocol's own function (`replace(prompts, read=…)`).
    """

    def __post_init__(self) -> None:
        """Raise `VragError` for a setting whose template does not exist."""
        _check_settings(self.settings, self.templates)

    def __repr__(self) -> str:
        """Return the names of its templates and settings; their text is in the file."""
        return (
            f"PromptSet(templates {', '.join(self.templates)}; settings {', '.join(self.settings)})"
        )

    def template(self, name: str) -> Template:
        """Return the template of this name; raises `VragError` when there is none."""
        if name not in self.templates:
            raise VragError(
                f"unknown template {name!r}; expected one of {', '.join(self.templates)}."
            )
        return self.templates[name]

    def template_for(self, context: Context) -> Template:
        """Return the template of a context; raises `VragError` for a setting, or a k of it, that
        has none, and for a template without the question.
        """
        setting, k = context.setting, context.k
        by_k = self.settings.get(setting, {})
        if k not in by_k and None not in by_k:
            at = f" at k = {k}" if by_k else ""
            raise VragError(
                f"no template for the setting {setting!r}{at}; those of"
                f" {', '.join(self.settings)} are known. Say which one words it:"
                f" prompts.with_settings({{{setting!r}: template}}), with one of"
                f" {', '.join(self.templates)}, or with a list of slots."
            )
        template = self.template(by_k[k if k in by_k else None])
        if not template.asks:
            raise VragError(
                f"setting {setting!r}: the question is not in its template {template.name!r};"
                ' expected a slot of the kind "question", or {question} in a header or footer.'
            )
        return template

    def with_settings(self, own: Mapping[str, Worded]) -> PromptSet:
        """Return a copy with templates for further settings, or other ones for known settings.

        A value of `own` is as in a prompt file: the name of a template, {"1": name, "otherwise":
        name} by k, or a list of slots, each a mapping or the name of a slot of these templates. A
        list becomes a template named after its setting. Raises `VragError`, naming the setting, for
        an unknown template, kind, field or slot.
        """
        named = self.named_slots()
        templates, settings = dict(self.templates), dict(self.settings)
        for setting, value in own.items():
            where = f"setting {setting!r}"
            if isinstance(value, str | Mapping):
                settings[setting] = _by_k(value, where)
                continue
            slots = tuple(read_slot(each, named, where) for each in value)
            templates[setting] = Template(setting, slots)
            settings[setting] = {None: setting}
        return replace(self, templates=templates, settings=settings)

    def named_slots(self) -> dict[str, Slot]:
        """Return the slots that have a name in the file, by name."""
        named: dict[str, Slot] = {}
        for template in self.templates.values():
            named |= {slot.name: slot for slot in all_slots(template.slots) if slot.name}
        return named

    def use_template(self, name: str) -> PromptSet:
        """Return a copy that uses this template for every setting with documents. Settings without
        any, such as zero-shot, keep their own. Raises `VragError` when there is no template of this
        name.
        """
        self.template(name)
        settings = dict(self.settings)
        for setting, by_k in self.settings.items():
            if any(_shows(self.templates[own].slots) for own in by_k.values()):
                settings[setting] = {None: name}
        return replace(self, settings=settings)

    def with_budgets(self, budgets: Mapping[str, int]) -> PromptSet:
        """Return a copy with other budgets, in characters, for slots by their name in the file.
        Raises `VragError` for a name that no template uses.
        """
        names = set(self.named_slots())
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


def open_prompt_set(name: str, known: Mapping[str, PromptSet], what: str) -> PromptSet:
    """Open the prompt set that a parameter names: one of `known`, or a custom JSON file.

    A file is read over the first of `known` (`read_prompts`). Raises `VragError`, beginning with
    `what`, for a name that is neither, and as `read_prompts` does.
    """
    if name in known:
        return known[name]
    file = project_path(str(name))
    if not file.is_file():
        raise VragError(
            f"{what} is {name!r}; expected {', '.join(known)}, or a JSON file of your own, and"
            f" {file} is none."
        )
    return read_prompts(file, next(iter(known.values())))


def read_prompts(path: Path | str, over: PromptSet | None = None) -> PromptSet:
    """Read a prompt set from a JSON file, with omitted entries taken from `over`.

    These are slots, templates, settings and answer. Raises `VragError`, naming the file and the
    entry, for a file without a JSON object, and for an unknown kind, field, slot, template or
    parser.
    """
    path = Path(path)
    data, where = _object(path), str(path)
    named = over.named_slots() if over else {}
    for name, value in data.get("slots", {}).items():  # a section may name those before it
        slot = read_slot(value, named, f"{where}: slot {name!r}")
        named[name] = replace(slot, name=name)
    templates = dict(over.templates) if over else {}
    for name, values in data.get("templates", {}).items():
        slots = tuple(read_slot(value, named, f"{where}: template {name!r}") for value in values)
        templates[name] = Template(name, slots)
    settings = dict(over.settings) if over else {}
    for name, value in data.get("settings", {}).items():
        settings[name] = _by_k(value, f"{where}: setting {name!r}")
    _check_settings(settings, templates, f"{where}: ")
    reader = data.get("answer", "" if over else "tagged")
    if reader and reader not in READERS:
        raise VragError(
            f"{where}: answer is {reader!r}; expected one of {', '.join(READERS)}, or none of them"
            " and a function: replace(read_prompts(…), read=…)."
        )
    read = READERS[reader] if reader or over is None else over.read
    return PromptSet(templates=templates, settings=settings, read=read)


def _object(path: Path) -> dict[str, Any]:
    """The JSON object in a file: values of any type, by name."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise VragError(f"{path}: no prompts can be read ({error}); expected JSON.") from error
    known = ("slots", "templates", "settings", "answer")
    if not isinstance(data, dict) or not set(known) & set(data):
        raise VragError(f"{path}: found no prompts; expected an object with {', '.join(known)}.")
    return data


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
                f" prompts.with_settings({{{name!r}: {by_k!r}}})."
            )
        if unknown := sorted(set(by_k.values()) - set(templates)):
            raise VragError(
                f"{where}setting {name!r} names the template {unknown[0]!r}; expected one of"
                f" {', '.join(templates)}."
            )
