"""Prompt sets as data: templates in Jinja, and the template of each setting.

A prompt set is a YAML file:

    source: …
    answer: name of a parser
    values: {name: text or number, …}            constants of templates
    parts: {name: text in Jinja, …}              what templates `{% include name %}`
    templates: {name: text in Jinja, …}
    settings: {setting: template, or {1: template at k = 1, otherwise: template}}

`rendering` lists what templates may use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from vrag_kit.errors import VragError
from vrag_kit.files import project_path
from vrag_kit.generation.rendering import Template, Values
from vrag_kit.types import Context

ParsedFields = Mapping[str, str | bool]
Parser = Callable[[str], ParsedFields]
_THOUGHT = re.compile(r"<think>.*?(?:</think>|$)", re.DOTALL | re.IGNORECASE)


def parse_tagged(raw: str) -> ParsedFields:
    """Return the text after the last "Answer:"; without one the whole text, marked `untagged`."""
    pieces = _ANSWER.split(raw)
    answer = pieces[-1].strip()
    return {"answer": answer} if len(pieces) > 1 else {"answer": answer, "untagged": True}


def strip_thoughts(raw: str) -> str:
    """Return a reply without thoughts in <think> tags; one that is not closed goes to the end."""
    return _THOUGHT.sub("\n", raw).strip()


def parse_whole(raw: str) -> ParsedFields:
    """Return the whole text, without white space around it."""
    return {"answer": raw.strip()}


def parse_short(raw: str) -> ParsedFields:
    """Return the short answer of a reply with a short and a long answer:

        Short answer: …
        Long answer: …

    Each label begins a line, once, in any case and optionally in bold; any text may precede the
    first. The short answer is one line, the long one everything after its label. Anything else is
    unreadable; a label with nothing after it is an empty answer. A short answer whose reply was
    truncated later is "enough".
    """
    found = _two_answers(raw)
    if isinstance(found, str):
        return {"unreadable": found}
    return {"answer": found[0], "enough": True}


def parse_long(raw: str) -> ParsedFields:
    """Return the long answer of a reply in the form of `parse_short`."""
    found = _two_answers(raw)
    return {"unreadable": found} if isinstance(found, str) else {"answer": found[1]}


def _two_answers(raw: str) -> tuple[str, str] | str:
    """(short answer, long answer), or why they cannot be told."""
    labels = list(_LABEL.finditer(raw))
    names = [found["name"].lower() for found in labels]
    for name in ("short", "long"):
        if (count := names.count(name)) != 1:
            there = f"{count} lines begin" if count else "no line begins"
            return f"{there} with “{name.capitalize()} answer:”"
    if names != ["short", "long"]:
        return "the long answer stands before the short one"
    pieces = raw[labels[0].end() : labels[1].start()], raw[labels[1].end() :]
    short, long = (piece.strip().strip("*").strip() for piece in pieces)  # without bold type
    return "the short answer is longer than a line" if "\n" in short else (short, long)


_ANSWER = re.compile(r"answer\s*:", re.IGNORECASE)
_LABEL = re.compile(
    r"^[ \t]*\**[ \t]*(?P<name>short|long)[ \t]+answer[ \t]*\**[ \t]*:",
    re.IGNORECASE | re.MULTILINE,
)


PARSERS: dict[str, Parser] = {
    "tagged": parse_tagged,
    "whole": parse_whole,
    "short": parse_short,
    "long": parse_long,
}
"""Parsers by the name that a prompt file uses."""


_ENTRIES = ("values", "parts", "templates", "settings", "answer")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PromptSet:
    """The templates of a protocol, and which of them each setting uses."""

    templates: Mapping[str, Template]
    """Templates by name."""
    settings: Mapping[str, Mapping[int | None, str]]
    """Setting → k → template's name; None stands for every other k."""
    read: Parser = parse_tagged
    """Parses the answer from a model's text, in the form that the templates ask for: one of
    `PARSERS`, or a protocol's own function (`replace(prompts, read=…)`).
    """

    def __post_init__(self) -> None:
        """Raise `VragError` for a setting whose template does not exist."""
        for name, by_k in self.settings.items():
            if unknown := sorted(set(by_k.values()) - set(self.templates)):
                raise VragError(
                    f"setting {name!r} names the template {unknown[0]!r}; expected one of"
                    f" {', '.join(self.templates)}."
                )

    def template(self, name: str) -> Template:
        """Return the template of this name; raises `VragError` when there is none."""
        if name not in self.templates:
            known = ", ".join(self.templates)
            raise VragError(f"unknown template {name!r}; expected one of {known}.")
        return self.templates[name]

    def template_for(self, context: Context) -> Template:
        """Return the template of a context; raises `VragError` for a setting, or a k of it, that
        has none, and for a template without the question.
        """
        setting, k = context.setting, context.k
        by_k = self.settings.get(setting, {})
        name = by_k.get(k) or by_k.get(None)
        if name is None:
            at = f" at k = {k}" if by_k else ""
            raise VragError(
                f"no template for the setting {setting!r}{at}; expected one of"
                f" {', '.join(self.settings)}, or"
                f" prompts.with_settings({{{setting!r}: template}}), with one of"
                f" {', '.join(self.templates)}."
            )
        template = self.template(name)
        if not template.asks:
            raise VragError(
                f"setting {setting!r}: the question is not in its template {name!r}; expected"
                " {{ question }} or {{ query_image }}."
            )
        return template

    def with_settings(self, settings: Mapping[str, str | Mapping[str, str]]) -> PromptSet:
        """Return a copy with templates for further settings, or other ones for known settings.

        A value is the name of a template, or {"1": name, "otherwise": name} by k, as in a prompt
        file. Raises `VragError`, naming the setting, for an unknown template.
        """
        own = {name: _by_k(value, f"setting {name!r}") for name, value in settings.items()}
        return replace(self, settings={**self.settings, **own})

    def with_templates(self, sources: Mapping[str, str]) -> PromptSet:
        """Return a copy with further templates, or other ones of known names, from their texts in
        Jinja. They may use the values and parts of this set. Raises `VragError` as `Template` does.
        """
        common = next(iter(self.templates.values()))
        own = {
            name: Template(name, text, common.values, common.parts)
            for name, text in sources.items()
        }
        return replace(self, templates={**self.templates, **own})

    def with_values(self, values: Values) -> PromptSet:
        """Return a copy with other values in its templates, such as limits in characters."""
        templates = {
            name: replace(template, values={**template.values, **values})
            for name, template in self.templates.items()
        }
        return replace(self, templates=templates)

    def use_template(self, name: str) -> PromptSet:
        """Return a copy that uses this template for every setting with documents. Settings without
        any, such as zero-shot, keep their own. Raises `VragError` when there is no template of this
        name.
        """
        self.template(name)
        settings = dict(self.settings)
        for setting, by_k in self.settings.items():
            if any("documents" in self.templates[own].uses for own in by_k.values()):
                settings[setting] = {None: name}
        return replace(self, settings=settings)


def open_prompt_set(name: str, known: Mapping[str, PromptSet], what: str) -> PromptSet:
    """Open the prompt set that a parameter names: one of `known`, or a custom YAML file.

    A file is read over the first of `known` (`read_prompts`). Raises `VragError`, beginning with
    `what`, for a name that is neither, and as `read_prompts` does.
    """
    if name in known:
        return known[name]
    file = project_path(str(name))
    if not file.is_file():
        raise VragError(f"{what} is {name!r}; expected {', '.join(known)}, or a YAML file.")
    return read_prompts(file, next(iter(known.values())))


def read_prompts(path: Path | str, over: PromptSet | None = None) -> PromptSet:
    """Read a prompt set from a YAML file, with omitted entries taken from `over`; its values and
    parts hold in the templates of `over` as well.

    Raises `VragError`, naming the file and the entry, for a file without a mapping, an unknown
    template or parser, and as `Template` does.
    """
    data, file = _mapping(Path(path)), str(path)
    templates = dict(over.templates) if over else {}
    common = next(iter(templates.values()), Template("", ""))
    values = {**common.values, **data.get("values", {})}
    parts = dict(common.parts)
    for name, source in data.get("parts", {}).items():  # a part may include those before it
        parts[name] = Template(name, source, values, dict(parts), file)
    for name, template in templates.items():
        templates[name] = replace(template, values=values, parts=parts)
    for name, source in data.get("templates", {}).items():
        templates[name] = Template(name, source, values, parts, file)
    settings = dict(over.settings) if over else {}
    for name, value in data.get("settings", {}).items():
        settings[name] = _by_k(value, f"{file}: setting {name!r}")
    read = over.read if over else parse_tagged
    if "answer" in data:
        if data["answer"] not in PARSERS:
            known = ", ".join(PARSERS)
            raise VragError(f"{file}: answer is {data['answer']!r}; expected one of {known}.")
        read = PARSERS[data["answer"]]
    try:
        return PromptSet(templates=templates, settings=settings, read=read)
    except VragError as error:
        raise VragError(f"{file}: {error}") from None


def _mapping(path: Path) -> dict[str, Any]:  # Any: values of any type, by name
    """The entries of a prompt file."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        words = " ".join(str(error).split())
        raise VragError(f"{path}: no prompts can be read ({words}); expected YAML.") from error
    if not isinstance(data, dict) or not set(_ENTRIES) & set(data):
        raise VragError(f"{path}: found no prompts; expected a mapping with {', '.join(_ENTRIES)}.")
    data = {name: value for name, value in data.items() if value is not None}
    texts = [*data.get("parts", {}).values(), *data.get("templates", {}).values()]
    if not all(isinstance(text, str) for text in texts):
        raise VragError(f"{path}: found a template that is no text; expected texts in Jinja.")
    return data


def _by_k(value: str | Mapping[str, str], where: str) -> dict[int | None, str]:
    if isinstance(value, str):
        return {None: value}
    if not isinstance(value, Mapping):
        raise VragError(f"{where} is {value!r}; expected a template's name, or one by k.")
    if wrong := [k for k in value if k != "otherwise" and not str(k).isdecimal()]:
        raise VragError(f"{where}: found {wrong[0]!r} as k; expected a number, or 'otherwise'.")
    return {None if k == "otherwise" else int(k): name for k, name in value.items()}
