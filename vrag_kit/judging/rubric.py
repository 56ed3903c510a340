"""A judge's rubric: the prompt of a language model, and how its reply is parsed into a verdict."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from vrag_kit.custom import catch_custom_errors
from vrag_kit.errors import VragError
from vrag_kit.judging.scale import Scale
from vrag_kit.types import Message, Prompt, Query

_BOTH = " It is called with the query and the answer."
_REASON = " It is called with the reason why a verdict cannot be read."
DECLINING = ("I don't know", "I do not know.", "I cannot tell.")
"""Texts that one abstention rule may accept as abstentions, and another may not."""
_PROBE = Query(query_id="probe", text="What is it?", answers=("this",), group="probe")
_GAPS = Query(query_id="gaps", text="{question}", answers=("{references}",), group="gaps")


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's decision on an answer: score and marks."""

    score: float
    """On the rubric's scale."""
    marks: frozenset[str] = frozenset()
    """Marks such as "hallucination", "redundant", "abstention"."""


def no_precheck(query: Query, answer: str) -> Verdict | None:
    """Return None: the judge reads every answer."""
    return None


class UnparsedError(ValueError):
    """The reason why a judge's reply cannot be parsed as a verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """How a model judges an answer; see `vrag_kit.papers` for the rubrics of papers."""

    scale: Scale
    """The scores of the worst and the best answer."""
    prompt: Callable[[Query, str], Prompt | str]
    """Builds the judge's prompt from a query and an answer; a text is one message.
    The functions of a rubric are called through the methods below.
    """
    read: Callable[[str], Verdict | float]
    """Parses the judge's reply into a verdict, or a number (a verdict without marks).
    Raises `UnparsedError`, or any other error, with the reason.
    """
    repair: Callable[[str], str]
    """Builds the message that follows an unparsed verdict, from the reason."""
    settles: Callable[[Query, str], Verdict | None] = no_precheck
    """Returns the verdict of an answer that needs no judge; else None."""

    def __post_init__(self) -> None:
        """Raise `VragError` for a scale that is none."""
        if not isinstance(self.scale, Scale):
            raise VragError(f"rubric: its scale is {self.scale!r}; expected Scale(worst, best).")

    @property
    def fingerprint(self) -> str:
        """Hash of the scale, and of prompt and precheck on a made-up question.
        It does not cover `read`.
        """
        told: list[object] = [self.scale]
        for said in ("that", *DECLINING):
            try:
                settled = self.run_precheck(_PROBE, said)
                told.append((settled.score, sorted(settled.marks)) if settled else None)
                told.append(_message_key(self.build_prompt(_PROBE, said)))
            except VragError:  # one's own, which wants more of a question
                told.append("")
        return hashlib.sha256(repr(told).encode()).hexdigest()

    @property
    def words(self) -> str:
        """The prompt, with the placeholders {question}, {references} and {answer}.
        Several messages each follow their role. "" for a prompt that needs more of a query.
        """
        try:
            prompt = self.build_prompt(_GAPS, "{answer}")
        except VragError:
            return ""
        texts = ["\n".join(p if isinstance(p, str) else "{image}" for p in m.parts) for m in prompt]
        if len(texts) == 1:
            return texts[0]
        return "\n\n".join(f"{m.role}:\n{text}" for m, text in zip(prompt, texts, strict=True))

    def build_prompt(self, query: Query, answer: str) -> Prompt:
        """Return the messages of `prompt`; a text becomes one message.
        Raises `VragError` where it fails, or returns neither a text nor messages.
        """
        with catch_custom_errors("rubric: its prompt", self.prompt, hint=_BOTH):
            said = self.prompt(query, answer)
        if isinstance(said, str):
            return (Message(role="user", parts=(said,)),)
        if not said or not isinstance(said, tuple | list) or not isinstance(said[0], Message):
            raise VragError(
                f"rubric: its prompt gave {said!r} for an answer to {query.query_id!r}; expected a"
                " text, or messages (vrag_kit.types.Message)."
            )
        return tuple(said)

    def run_precheck(self, query: Query, answer: str) -> Verdict | None:
        """Return the result of `settles`.
        Raises `VragError` where it fails, or returns neither a verdict nor None.
        """
        with catch_custom_errors("rubric: its settles", self.settles, hint=_BOTH):
            found = self.settles(query, answer)
        if found is None or isinstance(found, Verdict):
            return found
        raise VragError(
            f"rubric: its settles gave {found!r} for an answer to {query.query_id!r}; expected a"
            " Verdict, or None where the judge is to be asked."
        )

    def build_repair(self, reason: str) -> str:
        """Return the text of `repair`; raises `VragError` where it fails, or returns no text."""
        with catch_custom_errors("rubric: its repair", self.repair, hint=_REASON):
            said = self.repair(reason)
        if isinstance(said, str):
            return said
        raise VragError(f"rubric: its repair gave {said!r}; expected a text.")

    def parse_verdict(self, words: str) -> Verdict:
        """Parse a reply with `read`; a number becomes a verdict without marks.
        Raises `UnparsedError` where it fails, and for a score off the scale.
        """
        try:
            with catch_custom_errors("rubric: its read", self.read, passed=(TypeError, ValueError)):
                found = self.read(words)
                verdict = found if isinstance(found, Verdict) else Verdict(float(found))
        except (TypeError, ValueError, VragError) as error:
            raise UnparsedError(str(error)) from error
        worst, best = self.scale.worst, self.scale.best
        if not worst <= verdict.score <= best:
            raise UnparsedError(f"its score is {verdict.score:g}, not from {worst:g} to {best:g}")
        return verdict


def _message_key(prompt: Prompt) -> list[tuple[str, ...]]:
    """Roles and parts; of pictures what tells their bytes."""
    parts = [tuple(p if isinstance(p, str) else p.stamp for p in each.parts) for each in prompt]
    return [(each.role, *told) for each, told in zip(prompt, parts, strict=True)]


def verdict_label(verdict: Verdict, scale: Scale) -> str:
    """Return the label of a verdict: "no answer", "correct", "incorrect", or "partial".
    "partial" is between the ends of the scale.
    """
    if "abstention" in verdict.marks:
        return "no answer"
    ends = {scale.best: "correct", scale.worst: "incorrect"}
    return ends.get(verdict.score, "partial")
