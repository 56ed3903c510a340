"""Prompt templates in Jinja, and how they are rendered into messages of texts and images.

A template uses the values and parts of its prompt file, and

    question, query_image     the query's; the image is empty if there is none
    choices                   its options, each with letter and text
    documents                 the evidence, each with image, text, modality, source ("" if it has
                              none), and the fields of its metadata
    history                   earlier turns, each with question and answer
    in_conversation           whether the query is a turn of a conversation
    system, user, assistant   `{{ system }}` begins a message of this role; the first is the user's
    entries                   documents | entries("field"): the entries of a list in the metadata
    fit, budget               a call block for items that are numbered, or must not exceed a number
                              of characters: `_Rendering.fit`

Templates run in Jinja's sandbox, without access to files; undefined names are errors.
"""

from __future__ import annotations

import json
import math
import secrets
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import jinja2
from jinja2 import meta, nodes
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from vrag_kit.errors import VragError
from vrag_kit.spelling import did_you_mean
from vrag_kit.types import Document, LazyImage, Message, Prompt, Query, Turn

VARIABLES = (
    "question",
    "query_image",
    "choices",
    "documents",
    "history",
    "in_conversation",
    "system",
    "user",
    "assistant",
    "budget",
    "fit",
)
"""The names that every template may use."""
Values = Mapping[str, str | int | bool]
"""Constants of templates, by name."""
_ROLES = ("system", "user", "assistant")
_Metadata = Mapping[str, Any]  # Any: metadata may hold what JSON holds


class _NoteOutput(Extension):
    """Turns `{{ x }}` into `{{ (none|_begin, x)|_output }}`, so that the documents are known that
    an output reads, as opposed to a condition.
    """

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        for token in stream:
            if token.type == "variable_end":
                yield from _tokens(token.lineno, ") | _output")
            yield token
            if token.type == "variable_begin":
                yield from _tokens(token.lineno, "( none | _begin ,")


def _tokens(line: int, words: str) -> Iterator[Token]:
    kinds = {"(": "lparen", ")": "rparen", "|": "pipe", ",": "comma"}
    for word in words.split():
        yield Token(line, kinds.get(word, "name"), word)


_JINJA = ImmutableSandboxedEnvironment(
    extensions=[_NoteOutput],
    undefined=jinja2.StrictUndefined,
    autoescape=False,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_KNOWN = {*VARIABLES, *_JINJA.globals}


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
    parts: Mapping[str, str] = field(default_factory=dict)
    """Sources that it may include by name."""
    file: str = ""
    """The prompt file; "" for a template made in Python."""
    uses: frozenset[str] = field(init=False, compare=False, repr=False)
    """The names in it, and in the parts that it includes."""

    def __post_init__(self) -> None:
        """Compile it, and find the names that it uses."""
        known = {*_KNOWN, *self.values, *self.parts}
        for label, source in self.sources().items():
            for name, line in _names(label, source).items():
                if name not in known:
                    expected = ", ".join([*VARIABLES, *self.values, *self.parts])
                    raise VragError(
                        f"{label}, line {line}: unknown variable {name!r}; expected one of"
                        f" {expected}.{did_you_mean(name, known)}"
                    )
        uses = set(_names(self.label, self.source))
        more = uses & set(self.parts)
        while more:
            found = [_names(_label(self.file, "part", name), self.parts[name]) for name in more]
            more = (set().union(*found) - uses) & set(self.parts)
            uses.update(*found)
        object.__setattr__(self, "uses", frozenset(uses))

    @property
    def asks(self) -> bool:
        """Whether the question is in it, as text or as an image."""
        return not self.uses.isdisjoint({"question", "query_image"})

    @property
    def label(self) -> str:
        """What error messages call it."""
        return _label(self.file, "template", self.name)

    def sources(self) -> dict[str, str]:
        """Return the label and source of this template and of each of its parts."""
        parts = {_label(self.file, "part", name): text for name, text in self.parts.items()}
        return {self.label: self.source, **parts}


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A prompt, and the documents that it shows."""

    prompt: Prompt
    doc_ids: tuple[str, ...]
    """The documents shown, in the order of first appearance, without those that a budget or
    `unique` leaves out.
    """


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
    """Return a template's prompt with the documents that it shows: those of which an output
    contains a field other than modality and source. Empty messages are omitted.

    Raises `VragError` for evidence that the template does not show whatever the budget, and, with
    file, name and line, where rendering fails.
    """
    prompt, shown = _Rendering(template, query, evidence, history).run()
    left = [document for place, document in enumerate(evidence) if place not in shown]
    if left:
        _, found = _Rendering(template, query, left, history, limited=False).run()
        hidden = [document for place, document in enumerate(left) if place not in found]
        if hidden:
            raise VragError(
                f"document {hidden[0].doc_id!r} of query {query.query_id!r} is not shown by the"
                f" template {template.name!r}: it has {_has(hidden[0])}. Take another template, or"
                " other documents."
            )
    return RenderedPrompt(prompt, tuple(evidence[place].doc_id for place in shown))


class _Choice(NamedTuple):
    """An option of a multiple-choice question."""

    letter: str
    text: str


class _Fields:
    """Fields of a document, or of an entry in its metadata. Reading one that holds something is
    noted.
    """

    __slots__ = ("_fields", "_note", "_place")

    def __init__(self, fields: _Metadata, place: int, note: Callable[[int], None]) -> None:
        self._fields = fields
        self._place = place
        self._note = note

    def __getitem__(self, name: str) -> object:
        value = self._fields[name]
        if name not in ("modality", "source") and value not in (None, "", [], {}):
            self._note(self._place)
        return value

    def _entries(self, name: str) -> list[_Fields]:
        listed = self._fields.get(name) or ()
        return [_Fields({**self._fields, **each}, self._place, self._note) for each in listed]

    def _peek(self, name: str) -> str:
        """A field as text, without a note."""
        return str(self._fields.get(name, ""))


def _entries(documents: Iterable[_Fields], name: str) -> list[_Fields]:
    found: list[_Fields] = []
    for document in documents:
        found += document._entries(name)
    return found


@dataclass(slots=True)
class _Budget:
    """How many characters are left for items."""

    left: float


class _Rendering:
    """One rendering of a template. Images, messages and documents leave marks in its text, with a
    random number that no document can know.
    """

    def __init__(
        self,
        template: Template,
        query: Query,
        evidence: Sequence[Document],
        history: Sequence[Turn],
        *,
        limited: bool = True,
    ) -> None:
        self.template = template
        self.query = query
        self.history = history
        self.limited = limited  # whether budgets and `unique` count
        self.begin_mark = f"[{secrets.randbits(96)}:"  # digits, which no filter changes
        self.marks: list[LazyImage | str | int] = []  # an image, a role, a place in the evidence
        self.reading: list[dict[int, None]] = []  # places read by each output that is under way
        self.documents = [self._fields(place, each) for place, each in enumerate(evidence)]

    def run(self) -> tuple[Prompt, dict[int, None]]:
        """The prompt, and the places of the documents shown, in order."""
        template, query = self.template, self.query
        parts = {
            name: _compiled(_label(template.file, "part", name), source)
            for name, source in template.parts.items()
        }
        choices = [_Choice(chr(ord("A") + n), text) for n, text in enumerate(query.choices)]
        variables = {
            **template.values,
            **parts,
            **{role: self.mark(role) for role in _ROLES},
            "question": query.text,
            "query_image": "" if query.image is None else self.mark(query.image),
            "choices": choices,
            "documents": self.documents,
            "history": self.history,
            "in_conversation": query.conversation_id is not None,
            "budget": self.budget,
            "fit": self.fit,
            "_rendering": self,
        }
        try:
            text = _compiled(template.label, template.source).render(variables)
        except Exception as error:
            labels = template.sources()
            line = template.label
            for frame, number in traceback.walk_tb(error.__traceback__):
                if frame.f_code.co_filename in labels:
                    line = f"{frame.f_code.co_filename}, line {number}"
            raise VragError(f"{line}: {error}.") from error
        return self.split(text)

    def mark(self, meaning: LazyImage | str | int) -> str:
        self.marks.append(meaning)
        return f"{self.begin_mark}{len(self.marks) - 1}]"

    def begin(self) -> None:
        """Begin an output."""
        self.reading.append({})

    def note(self, place: int) -> None:
        """Note that a document is read; only outputs count."""
        if self.reading:
            self.reading[-1][place] = None

    def output(self, value: object) -> str:
        """The text of an output, after a mark for each document that it reads."""
        text = _text(value)
        places = self.reading.pop()
        return "".join(map(self.mark, places)) + text if text else ""

    def budget(self, characters: int) -> _Budget:
        """A number of characters, which calls of `fit` share."""
        return _Budget(characters if self.limited else math.inf)

    def fit(
        self,
        items: Iterable[_Fields],
        budget: _Budget | None = None,
        *,
        caller: Callable[..., str],
        header: str = "",
        footer: str = "",
        between: str = "",
        unique: str = "",
        stop: bool = False,
    ) -> str:
        """The items that fit into a budget, each as `caller(item, number)` renders it, between a
        header and a footer; "" if there are none.

        Empty items are skipped, and those whose field `unique` another item shows. An item that
        does not fit is skipped, or ends the list (`stop`).
        """
        left = math.inf if budget is None else budget.left
        left -= self.length(header) + self.length(footer)
        kept: list[str] = []
        names: set[str] = set()
        for item in items:
            name = item._peek(unique) if unique else ""
            text = caller(item, len(kept) + 1)
            if not text or (self.limited and name in names):
                continue
            if kept:
                text = between + text
            length = self.length(text)
            if length > left and stop:
                break
            if length > left:
                continue
            left -= length
            kept.append(text)
            if unique:
                names.add(name)
        if not kept:
            return ""
        if budget is not None:
            budget.left = left
        return "".join([header, *kept, footer])

    def pieces(self, text: str) -> Iterator[tuple[LazyImage | str | int | None, str]]:
        """The meaning of each mark, and the text after it; None before the first mark."""
        first, *others = text.split(self.begin_mark)
        yield None, first
        for each in others:
            number, _, words = each.partition("]")
            yield self.marks[int(number)], words

    def length(self, text: str) -> int:
        """Characters without marks; an image has none."""
        return sum(len(words) for _, words in self.pieces(text))

    def split(self, text: str) -> tuple[Prompt, dict[int, None]]:
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

    def _fields(self, place: int, document: Document) -> _Fields:
        image = "" if document.image is None else self.mark(document.image)
        own = {"image": image, "text": document.text or "", "modality": document.modality}
        return _Fields({"source": "", **document.metadata, **own}, place, self.note)


@jinja2.pass_context
def _begin(context: Context, _: None) -> None:
    context.parent["_rendering"].begin()


@jinja2.pass_context
def _output(context: Context, begun: tuple[None, object]) -> str:
    rendering: _Rendering = context.parent["_rendering"]
    return rendering.output(begun[1])


_JINJA.filters |= {"entries": _entries, "_begin": _begin, "_output": _output}


@cache
def _compiled(label: str, source: str) -> jinja2.Template:
    """A template, compiled once; raises `VragError` for an error of syntax."""
    try:
        code = _JINJA.compile(source, filename=label)
    except jinja2.TemplateSyntaxError as error:
        raise VragError(f"{label}, line {error.lineno}: {error.message}.") from error
    return jinja2.Template.from_code(_JINJA, code, _JINJA.make_globals(None))


@cache
def _names(label: str, source: str) -> dict[str, int]:
    """The names that a source takes from outside, each with a line that has it."""
    _compiled(label, source)  # raises for an error of syntax
    tree = _JINJA.parse(source)
    lines = {node.name: node.lineno for node in tree.find_all(nodes.Name)}
    return {name: lines[name] for name in sorted(meta.find_undeclared_variables(tree))}


def _label(file: str, kind: str, name: str) -> str:
    return f"{file}: {kind} {name!r}" if file else f"{kind} {name!r}"


def _text(value: object) -> str:
    """An output as text; what is more than a text or number as JSON."""
    if value is None:
        return ""
    if isinstance(value, str | int | float | jinja2.Undefined):
        return str(value)
    return json.dumps(value, ensure_ascii=False, indent=2)


def _has(document: Document) -> str:
    kinds = {"an image": document.image, "a text": document.text}
    has = [name for name, value in kinds.items() if value is not None]
    return " and ".join(has) or "neither image nor text"
