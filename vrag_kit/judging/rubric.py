"""A rubric: the text that a language model judges by, the parser of its verdict, and the scale."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from vrag_kit.config import catch_custom_errors
from vrag_kit.errors import VragError, short_repr
from vrag_kit.judging.scale import Scale
from vrag_kit.types import Message, Prompt, Query

DECLINING = ("I don't know", "I do not know.", "I cannot tell.")
"""Texts that one abstention rule may accept as abstentions, and another may not."""
FIELDS = ("question", "references", "answer")
"""Placeholders of a rubric's text, in braces."""
_PLACEHOLDER = re.compile(r"{(\w+)}")
_NUMBER = re.compile(r"(?:score:?\s*)?([-+]?\d*\.?\d+)\.?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's decision on an answer: score and marks."""

    score: float
    """On the rubric's scale."""
    marks: frozenset[str] = frozenset()
    """Marks such as "hallucination", "redundant", "abstention"."""


class UnparsedError(ValueError):
    """The reason why a judge's reply cannot be parsed as a verdict."""


def plain_fields(query: Query, answer: str) -> dict[str, str]:
    """Return the values of `FIELDS`, unchanged; references are separated by " | "."""
    return {"question": query.text, "references": " | ".join(query.answers), "answer": answer}


def no_precheck(query: Query, answer: str) -> Verdict | None:
    """Return None: the judge reads every answer."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """How a language model judges an answer; see `vrag_kit.papers` for the rubrics of papers."""

    scale: Scale
    """The scores of the worst and the best answer."""
    template: str | tuple[tuple[str, str], ...]
    """The prompt, with placeholders such as {question}, {references} and {answer}: one text, or
    (role, text) of several messages.
    """
    read: Callable[[str], Verdict | float]
    """Parses the judge's reply into a verdict, or a number (a verdict without marks).
    Raises `UnparsedError`, or any other error, with the reason.
    """
    repair: str
    """The message that follows an unparsed verdict, with the placeholder {reason}."""
    fields: Callable[[Query, str], Mapping[str, str]] = plain_fields
    """Returns the values of the placeholders for a query and an answer."""
    precheck: Callable[[Query, str], Verdict | None] = no_precheck
    """Returns the verdict of an answer that needs no judge; else None."""
    variant: str = ""
    """A text that differs between rubrics of one template whose functions differ."""

    @property
    def messages(self) -> tuple[tuple[str, str], ...]:
        """(role, text) of each message of the template."""
        return (("user", self.template),) if isinstance(self.template, str) else self.template

    @property
    def text(self) -> str:
        """The template as one text; several messages each follow their role."""
        if len(self.messages) == 1:
            return self.messages[0][1]
        return "\n\n".join(f"{role}:\n{text}" for role, text in self.messages)

    @property
    def fingerprint(self) -> str:
        """Hash of the scale, the template, the parser's name and `variant`."""
        parser = getattr(self.read, "__qualname__", "")
        whole = repr((self.scale, self.messages, parser, self.variant))
        return hashlib.sha256(whole.encode()).hexdigest()

    def build_prompt(self, query: Query, answer: str) -> Prompt:
        """Return the messages of the template, with its placeholders filled in.
        Braces in a query or an answer stay. Raises `VragError` if `fields` fails.
        """
        hint = " It is called with the query and the answer."
        with catch_custom_errors("rubric: its fields", self.fields, hint=hint):
            fields = self.fields(query, answer)
        return tuple(
            Message(role=role, parts=(fill_template(text, fields),)) for role, text in self.messages
        )

    def build_repair(self, reason: str) -> str:
        """Return the message that follows an unparsed verdict."""
        return fill_template(self.repair, {"reason": reason})

    def parse_verdict(self, reply: str) -> Verdict:
        """Parse a reply with `read`; a number becomes a verdict without marks.
        Raises `UnparsedError` if that fails, and for a score off the scale.
        """
        try:
            with catch_custom_errors("rubric: its read", self.read, passed=(TypeError, ValueError)):
                found = self.read(reply)
                verdict = found if isinstance(found, Verdict) else Verdict(float(found))
        except (TypeError, ValueError, VragError) as error:
            raise UnparsedError(str(error)) from error
        worst, best = self.scale.worst, self.scale.best
        if not worst <= verdict.score <= best:
            raise UnparsedError(f"its score is {verdict.score:g}, not from {worst:g} to {best:g}")
        return verdict


def fill_template(text: str, fields: Mapping[str, str]) -> str:
    """Replace each {name} of a text by its value; other braces, and those in values, stay."""
    return _PLACEHOLDER.sub(lambda found: fields.get(found[1], found[0]), text)


def one_line(text: str) -> str:
    """Return a text with each run of white space replaced by one space."""
    return " ".join(text.split())


def rubric_from_text(rubric: Rubric, text: str) -> Rubric:
    """Return a rubric with another template; its scale and precheck stay.
    The reply must end with a line that is a number on the scale, or "Score: " and the number.
    """
    ends = f"from {rubric.scale.worst:g} to {rubric.scale.best:g}"
    again = f"This cannot be read: {{reason}}. Reply with a number {ends} alone."
    return replace(rubric, template=text, fields=plain_fields, read=read_number, repair=again)


def read_number(reply: str) -> float:
    """Parse the last line of a reply: a number, or "Score: " and a number.
    Raises `UnparsedError` for any other last line.
    """
    last = (reply.strip().splitlines() or [""])[-1].strip(" *`")
    if (found := _NUMBER.fullmatch(last)) is None:
        raise UnparsedError(f"its last line is {short_repr(last)}, which is no number")
    return float(found[1])
