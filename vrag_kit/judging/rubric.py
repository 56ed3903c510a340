"""A judge's rubric: the prompt of a language model, and how its reply is parsed into a verdict."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial

from vrag_kit.config import Entry
from vrag_kit.custom import catch_custom_errors
from vrag_kit.errors import VragError, short_repr
from vrag_kit.judging.custom_judge import CustomJudge
from vrag_kit.judging.scale import Scale
from vrag_kit.types import Message, Prompt, Query
from vrag_kit.workspace import path as project_path

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


RUBRIC = "rubric"
"""Name of the option in a judge's entry."""
FIELDS = ("question", "references", "answer")
"""Placeholders of the text, in braces; references are separated by " | "."""
_FIELD = re.compile(rf"{{({'|'.join(FIELDS)})}}")
_ANY = re.compile(r"{([^\W\d]\w*)}")
_NUMBER = re.compile(r"(?:score:?\s*)?([-+]?\d*\.?\d+)\.?", re.IGNORECASE)


def rubric_text(entry: Entry | CustomJudge) -> str:
    """Return the text of an entry's rubric; "" without one.

    Raises `VragError` for a rubric that is no text, lacks {answer} or has an unknown placeholder,
    and for a text in place of a judge.
    """
    if isinstance(entry, str) and len(entry.split()) > 3 and not project_path(entry).is_dir():
        raise VragError(
            f"judge is {short_repr(entry)}, which are words, and no judge. What a model is asked as"
            " judge is an option of its entry: judge: {model: <model>, rubric: <words>}."
        )
    if not isinstance(entry, Mapping) or RUBRIC not in entry:
        return ""
    words = entry[RUBRIC]
    shown = ", ".join(f"{{{name}}}" for name in FIELDS)
    if isinstance(words, str) and "{answer}" in words:
        _check_fields(words, shown)
        return words
    raise VragError(
        f"judge: its rubric is {short_repr(words)}; expected what the model is asked, in words in"
        " which"
        f" {{answer}} stands; {shown} are filled in. A rubric in Python is passed to"
        " load_judge(…, rubric=…) (README, The judge)."
    )


def _check_fields(words: str, shown: str) -> None:
    """Raise `VragError` where the judge would read "{reference}" and no reference."""
    unknown = [name for name in _ANY.findall(words) if name not in FIELDS]
    if unknown:
        near = get_close_matches(unknown[0], FIELDS, 1)
        meant = f" Did you mean {{{near[0]}}}?" if near else ""
        raise VragError(
            f"judge: its rubric has {{{unknown[0]}}}, which is not filled in; expected {shown},"
            f" each at will but {{answer}}.{meant}"
        )


def without_rubric(entry: Entry) -> Entry:
    """Return the entry of the model without its rubric; raises as `rubric_text`."""
    if not rubric_text(entry) or isinstance(entry, str):
        return entry
    return {name: value for name, value in entry.items() if name != RUBRIC}


def rubric_from_template(rubric: Rubric, words: str) -> Rubric:
    """Return a rubric with another prompt text; its scale and precheck stay.
    The reply must end with a line that is a number on the scale, or "Score: " and the number.
    """
    ends = f"from {rubric.scale.worst:g} to {rubric.scale.best:g}"
    return replace(
        rubric, prompt=partial(_filled, words), read=_number, repair=partial(_again, ends)
    )


def judge_name(judge: str, words: str) -> str:
    """Return the name of a judge with a custom rubric text, which ends with a hash of it."""
    return f"{judge}, own rubric {hashlib.sha256(words.encode()).hexdigest()[:4]}"


def _filled(words: str, query: Query, answer: str) -> str:
    told = {"question": query.text, "references": " | ".join(query.answers), "answer": answer}
    return _FIELD.sub(lambda field: told[field[1]], words)


def _number(reply: str) -> float:
    """The number in the last line of a reply."""
    last = (reply.strip().splitlines() or [""])[-1].strip(" *`")
    if (found := _NUMBER.fullmatch(last)) is None:
        raise UnparsedError(f"its last line is {short_repr(last)}, which is no number")
    return float(found[1])


def _again(ends: str, reason: str) -> str:
    return f"This cannot be read: {reason}. Reply with a number {ends} alone."
