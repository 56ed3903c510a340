"""Prompt templates in Jinja, and how they are rendered into messages of texts and images. A local
model's own chat template comes after this, in `local.processors`.

A template uses the values and parts of its prompt file, and

    question, query_image     the query's; the image is "" if there is none
    choices                   its options, each with letter and text
    documents                 the evidence, each with image, text, modality, source ("" if it has
                              none), and the fields of its metadata; empty fields are undefined
    history                   earlier turns, each with question and answer
    in_conversation           whether the query is a turn of a conversation
    system, user, assistant   `{{ system }}` begins a message of this role; the first is the user's

and these functions:

    {% call(document, number) each(documents) %}…{% endcall %}     shows documents, an item each
    {% call section(header="…", chars=8000) %}…{% endcall %}       omits the header without items
    documents|entries("field")                                     entries of a list in the metadata

Templates run in Jinja's sandbox, without access to files; undefined names are errors. The text of a
document cannot forge an image: images are marked by a random number (`_Rendering`), and a local
model refuses a prompt with its own image token (`PromptProcessor.control_token`). An endpoint
receives texts and images apart.
"""

from __future__ import annotations

import json
import math
import secrets
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jinja2
from jinja2 import meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from vrag_kit.errors import VragError, did_you_mean
from vrag_kit.types import DocId, Document, LazyImage, Message, Prompt, Query, Turn

Values = Mapping[str, str | int | bool]
"""Constants of templates, by name."""
_NAMES = ("question", "query_image", "choices", "documents", "history", "in_conversation")
_FUNCTIONS = ("each", "section")
_ROLES = ("system", "user", "assistant")


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt template. Raises `VragError` for an error of syntax and for an unknown variable,
    with file, name and line.
    """

    name: str
    source: str
    """Its text, in Jinja."""
    values: Values = field(default_factory=dict)
    """Constants that it may use; they are inserted as they are."""
    parts: Mapping[str, Template] = field(default_factory=dict)
    """Templates that it may include by name."""
    file: str = ""
    """The prompt file; "" for a template made in Python."""
    uses: frozenset[str] = field(init=False, compare=False, repr=False)
    """The variables in it, and in the parts that it includes."""

    def __post_init__(self) -> None:
        """Compile it, and find the variables that it uses."""
        _, names = _compile(self.label, self.source)
        known = [*_NAMES, *_ROLES, *_FUNCTIONS, *self.values, *self.parts]
        for name, line in names.items():
            if name not in known:
                raise VragError(
                    f"{self.label}, line {line}: found the variable {name!r}; expected one of"
                    f" {', '.join(known)}.{did_you_mean(name, known)}"
                )
        included = [part.uses for name, part in self.parts.items() if name in names]
        object.__setattr__(self, "uses", frozenset(names).union(*included))

    @property
    def label(self) -> str:
        """The file and name, for error messages."""
        return f"{self.file}: template {self.name!r}" if self.file else f"template {self.name!r}"

    @property
    def asks(self) -> bool:
        """Whether the question is in it, as text or as an image."""
        return not self.uses.isdisjoint({"question", "query_image"})


def render(
    template: Template,
    query: Query,
    evidence: Sequence[Document] = (),
    history: Sequence[Turn] = (),
) -> Prompt:
    """Return the prompt of `render_with_documents`; raises as it does."""
    return render_with_documents(template, query, evidence, history)[0]


def render_with_documents(
    template: Template,
    query: Query,
    evidence: Sequence[Document] = (),
    history: Sequence[Turn] = (),
) -> tuple[Prompt, tuple[DocId, ...]]:
    """Return a template's prompt, without empty messages, and the documents that it shows, in the
    order of first appearance, without those that a number of characters or `unique` leaves out.

    Raises `VragError` for evidence that the template would not show without limits, and, with file,
    name and line, where rendering fails.
    """
    rendering = _Rendering(template, query, evidence, history)
    prompt, shown = rendering.run()
    for place, document in enumerate(evidence):
        if place not in rendering.showable:
            what = f"document {document.doc_id!r} of query {query.query_id!r} ({document.modality})"
            raise VragError(f"{what} is not shown by `each` in the template {template.name!r}.")
    return prompt, tuple(evidence[place].doc_id for place in shown)


class _LacksField(jinja2.UndefinedError):
    """A document has no such field, or an empty one."""


class _Fields:
    """The fields of a document, or of an entry in its metadata."""

    def __init__(self, fields: Mapping[str, Any], place: int) -> None:  # Any: as in metadata
        self._fields = fields
        self._place = place
        self._used = False

    def __getitem__(self, name: str) -> object:
        value = self._fields.get(name)
        if name in ("modality", "source"):
            return value
        if value is None or (isinstance(value, str | list | dict) and not value):
            return jinja2.StrictUndefined(f"a document has no {name!r}", exc=_LacksField)
        self._used = True
        return value


def _entries(documents: Iterable[_Fields], name: str) -> list[_Fields]:
    found = []
    for document in documents:
        for entry in document._fields.get(name) or ():
            found.append(_Fields({**document._fields, **entry}, document._place))
    return found


@dataclass(slots=True)
class _Rendering:
    """One rendering of a template. Images, messages and documents leave marks in its text, with a
    random number that no document can know.
    """

    template: Template
    query: Query
    evidence: Sequence[Document]
    history: Sequence[Turn]
    left: float = math.inf
    """How many characters the items to come may have."""
    showable: set[int] = field(default_factory=set)
    """Places of the documents that are shown, or would be without `chars` and `unique`."""
    mark_begin: str = field(default_factory=lambda: f"[{secrets.randbits(96)}:")
    marks: list[LazyImage | str | int] = field(default_factory=list)
    """What each mark means: an image, a role, or a place in the evidence."""

    def run(self) -> tuple[Prompt, dict[int, None]]:
        """The prompt, and the places of the documents shown, in order."""
        label = self.template.label
        parts = self.template.parts
        query = self.query
        choices = [{"letter": chr(ord("A") + n), "text": t} for n, t in enumerate(query.choices)]
        variables = {
            **self.template.values,
            **{name: _compile(part.label, part.source)[0] for name, part in parts.items()},
            **{role: self.mark(role) for role in _ROLES},
            "question": query.text,
            "query_image": self.mark(query.image) if query.image else "",
            "choices": choices,
            "documents": [self.fields(place) for place in range(len(self.evidence))],
            "history": self.history,
            "in_conversation": query.conversation_id is not None,
            "each": self.each,
            "section": self.section,
        }
        try:
            text = _compile(label, self.template.source)[0].render(variables)
        except Exception as error:
            labels = {label, *(part.label for part in parts.values())}
            for frame, line in traceback.walk_tb(error.__traceback__):
                if frame.f_code.co_filename in labels:
                    label = f"{frame.f_code.co_filename}, line {line}"
            raise VragError(f"{label}: {error}.") from error
        return self.messages(text)

    def fields(self, place: int) -> _Fields:
        document = self.evidence[place]
        image = self.mark(document.image) if document.image else None
        own = {"image": image, "text": document.text, "modality": document.modality}
        return _Fields({"source": "", **document.metadata, **own}, place)

    def mark(self, meaning: LazyImage | str | int) -> str:
        self.marks.append(meaning)
        return f"{self.mark_begin}{len(self.marks) - 1}]"

    def section(
        self,
        *,
        caller: Callable[[], str],
        header: str = "",
        footer: str = "",
        chars: float = math.inf,
    ) -> str:
        """A block between header and footer, together of at most `chars` characters, as far as its
        items go; "" if it is empty.
        """
        outer = self.left
        frame = self.length(header + footer)
        self.left = min(outer, chars) - frame
        text = caller()
        self.left = outer - (self.length(text) + frame if text else 0)
        return f"{header}{text}{footer}" if text else ""

    def each(
        self,
        documents: Iterable[_Fields],
        *,
        caller: Callable[[_Fields, int], str],
        between: str = "",
        unique: str = "",
        stop: bool = False,
    ) -> str:
        """The items of documents, as `caller(document, number)` renders them. Omits items with a
        field that the document lacks, those that use no field, and those whose field `unique` is
        that of an item before. An item without room is omitted, or ends the list (`stop`).
        """
        items: list[str] = []
        names: set[str] = set()
        is_full = False
        for document in documents:
            document._used = False
            try:
                item = caller(document, len(items) + 1)
            except _LacksField:
                continue
            if not item or not document._used:
                continue
            self.showable.add(document._place)
            name = str(document._fields.get(unique, document._place))
            if is_full or name in names:
                continue
            item = between + item if items else item
            size = self.length(item) if self.left < math.inf else 0  # counting takes time
            if size > self.left:
                is_full = stop
                continue
            self.left -= size
            items.append(self.mark(document._place) + item)
            if unique:
                names.add(name)
        return "".join(items)

    def pieces(self, text: str) -> Iterator[tuple[LazyImage | str | int | None, str]]:
        """What each mark means, and the text behind it; None for the text before the first."""
        first, *others = text.split(self.mark_begin)
        yield None, first
        for each in others:
            number, words = each.split("]", 1)
            yield self.marks[int(number)], words

    def length(self, text: str) -> int:
        """Characters without marks; an image has none."""
        return sum(len(words) for _, words in self.pieces(text))

    def messages(self, text: str) -> tuple[Prompt, dict[int, None]]:
        """The messages of a rendered text, and the places of the documents shown."""
        messages: list[tuple[str, list[str | LazyImage]]] = [("user", [])]
        shown: dict[int, None] = {}
        for meaning, words in self.pieces(text):
            if isinstance(meaning, int):
                shown[meaning] = None
            elif isinstance(meaning, str):
                messages.append((meaning, []))
            elif meaning is not None:
                messages[-1][1].append(meaning)
            parts = messages[-1][1]
            if words and parts and isinstance(parts[-1], str):
                parts[-1] += words
            elif words:
                parts.append(words)
        prompt = tuple(Message(role=role, parts=tuple(parts)) for role, parts in messages if parts)
        return prompt, shown


def _text(value: object) -> object:
    """What is more than a text or number as JSON."""
    if isinstance(value, str | int | float | jinja2.Undefined):
        return value
    return json.dumps(value, ensure_ascii=False, indent=2)


class _Sandbox(ImmutableSandboxedEnvironment):
    """A sandbox that hides the attributes of parts, which lead to Jinja's environment."""

    def is_safe_attribute(self, obj: object, attr: str, value: object) -> bool:
        return not isinstance(obj, jinja2.Template) and super().is_safe_attribute(obj, attr, value)


_JINJA = _Sandbox(
    undefined=jinja2.StrictUndefined,
    autoescape=False,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    finalize=_text,
)
_JINJA.filters["entries"] = _entries


@cache
def _compile(label: str, source: str) -> tuple[jinja2.Template, dict[str, int]]:
    """A compiled template, and its variables, each with a line; raises `VragError` for an error of
    syntax.
    """
    try:
        tree = _JINJA.parse(source)
        lines = {node.name: node.lineno for node in tree.find_all(nodes.Name)}
        names = sorted(meta.find_undeclared_variables(tree) - set(_JINJA.globals))
        code = _JINJA.compile(source, filename=label)
    except jinja2.TemplateSyntaxError as error:
        raise VragError(f"{label}, line {error.lineno}: {error.message}.") from error
    template = jinja2.Template.from_code(_JINJA, code, _JINJA.make_globals(None))
    return template, {name: lines[name] for name in names}
