"""What a language model is asked as judge, and how its words become a verdict: a
protocol's wording, passed in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from vrag_kit.errors import VragError
from vrag_kit.judging.scale import Scale
from vrag_kit.own_classes import own_code
from vrag_kit.types import Message, Prompt, Query

_BOTH = " It is called with the query and the answer."
_REASON = " It is called with the reason why a verdict cannot be read."
DECLINING = ("I don't know", "I do not know.", "I cannot tell.")
"""What one reading takes as no answer, and another may not."""
_PROBE = Query(query_id="probe", text="What is it?", answers=("this",), group="probe")
_GAPS = Query(query_id="gaps", text="{question}", answers=("{references}",), group="gaps")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge decided."""

    score: float
    """On the rubric's scale."""
    marks: frozenset[str] = frozenset()
    """Remarks such as "hallucination", "redundant", "abstention"."""


def settles_nothing(query: Query, answer: str) -> Verdict | None:
    """None: every answer is for the judge to read."""
    return None


class Unreadable(ValueError):
    """Why a judge's words are no verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """How a model judges an answer; see `vrag_kit.papers` for those of papers."""

    scale: Scale
    """What the worst and the best answer earn."""
    prompt: Callable[[Query, str], Prompt | str]
    """What the judge is asked about a query and an answer to it; a text is one message.
    The functions of a rubric are called through the methods below.
    """
    read: Callable[[str], Verdict | float]
    """The verdict in the judge's words, or a number, which is one without marks; raises
    `Unreadable`, or any other error, with the reason.
    """
    repair: Callable[[str], str]
    """What is asked once more when a verdict cannot be read, for that reason."""
    settles: Callable[[Query, str], Verdict | None] = settles_nothing
    """The verdict of an answer that needs no judge; None for those that do."""

    def __post_init__(self) -> None:
        """Raise `VragError` for a scale that is none."""
        if not isinstance(self.scale, Scale):
            raise VragError(f"rubric: its scale is {self.scale!r}; expected Scale(worst, best).")

    @property
    def fingerprint(self) -> str:
        """Changes with the scale, what is asked about an answer, and what needs no judge,
        as far as a made-up question shows it; what `read` makes of a verdict is not in it.
        """
        told: list[object] = [self.scale]
        for said in ("that", *DECLINING):
            try:
                settled = self.settled(_PROBE, said)
                told.append((settled.score, sorted(settled.marks)) if settled else None)
                told.append(_as_told(self.asked(_PROBE, said)))
            except VragError:  # one's own, which wants more of a question
                told.append("")
        return hashlib.sha256(repr(told).encode()).hexdigest()

    @property
    def words(self) -> str:
        """What is asked, with {question}, {references} and {answer} where these stand; each
        message below its role where there are several. "" for one that wants more of a
        question.
        """
        try:
            prompt = self.asked(_GAPS, "{answer}")
        except VragError:
            return ""
        texts = ["\n".join(p if isinstance(p, str) else "{image}" for p in m.parts) for m in prompt]
        if len(texts) == 1:
            return texts[0]
        return "\n\n".join(f"{m.role}:\n{text}" for m, text in zip(prompt, texts, strict=True))

    def asked(self, query: Query, answer: str) -> Prompt:
        """`prompt`, a text as a message; raises `VragError` where it fails, or gives
        neither a text nor messages.
        """
        with own_code("rubric: its prompt", self.prompt, hint=_BOTH):
            said = self.prompt(query, answer)
        if isinstance(said, str):
            return (Message(role="user", parts=(said,)),)
        if not said or not isinstance(said, tuple | list) or not isinstance(said[0], Message):
            raise VragError(
                f"rubric: its prompt gave {said!r} for an answer to {query.query_id!r}; expected a"
                " text, or messages (vrag_kit.types.Message)."
            )
        return tuple(said)

    def settled(self, query: Query, answer: str) -> Verdict | None:
        """`settles`; raises `VragError` where it fails, or gives neither a verdict nor
        None.
        """
        with own_code("rubric: its settles", self.settles, hint=_BOTH):
            found = self.settles(query, answer)
        if found is None or isinstance(found, Verdict):
            return found
        raise VragError(
            f"rubric: its settles gave {found!r} for an answer to {query.query_id!r}; expected a"
            " Verdict, or None where the judge is to be asked."
        )

    def again(self, reason: str) -> str:
        """`repair`; raises `VragError` where it fails, or gives no text."""
        with own_code("rubric: its repair", self.repair, hint=_REASON):
            said = self.repair(reason)
        if isinstance(said, str):
            return said
        raise VragError(f"rubric: its repair gave {said!r}; expected a text.")

    def verdict(self, words: str) -> Verdict:
        """`read`, a number as a verdict; raises `Unreadable` wherever it fails, and for a
        score that is not on the scale.
        """
        try:
            with own_code("rubric: its read", self.read, passed=(TypeError, ValueError)):
                found = self.read(words)
                verdict = found if isinstance(found, Verdict) else Verdict(float(found))
        except (TypeError, ValueError, VragError) as error:
            raise Unreadable(str(error)) from error
        worst, best = self.scale.worst, self.scale.best
        if not worst <= verdict.score <= best:
            raise Unreadable(f"its score is {verdict.score:g}, not from {worst:g} to {best:g}")
        return verdict


def _as_told(prompt: Prompt) -> list[tuple[str, ...]]:
    """Roles and parts; of pictures what tells their bytes."""
    parts = [tuple(p if isinstance(p, str) else p.stamp for p in each.parts) for each in prompt]
    return [(each.role, *told) for each, told in zip(prompt, parts, strict=True)]


def label_of(verdict: Verdict, scale: Scale) -> str:
    """A verdict in a word: "no answer", "correct", "incorrect", or "partial" between the
    ends of the scale.
    """
    if "abstention" in verdict.marks:
        return "no answer"
    ends = {scale.best: "correct", scale.worst: "incorrect"}
    return ends.get(verdict.score, "partial")
