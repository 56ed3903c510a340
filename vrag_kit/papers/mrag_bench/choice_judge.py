"""A judge of choices: 1 for the right letter, 0 for all else that a model says."""

from __future__ import annotations

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.judging import SHARES
from vrag_kit.judging.answered import hidden
from vrag_kit.judging.choice_reader import Reading, read_choice, right_letters
from vrag_kit.types import Benchmark, Judgment, Query

_NO_CHOICE = frozenset({"ambiguous", "declined", "unreadable", "empty"})
"""Marks of an answer that chooses no option, or several."""


class ChoiceJudge:
    """Reads which option was chosen, and holds it against the right one; implements
    `Judge`.

    A verdict reads as its reading does ("B tagged", "ambiguous A, B (elsewhere)"), and
    its marks name the rule. What is ambiguous, declined or unreadable is the model's own
    answer, and earns 0: marked "ambiguous", "abstention" or "unreadable". Letters are
    never drawn. A query whose answers are hidden gets no score. Raises `VragError` for a
    query without options.
    """

    name = "choice"
    scale = SHARES

    def judge(self, benchmark: Benchmark, answers: pd.DataFrame) -> list[tuple[Judgment, ...]]:
        """One verdict for each row of answers."""
        pairs = zip(answers["query_id"], answers["answer"], strict=True)
        return [(self.verdict(benchmark.queries[name], answer),) for name, answer in pairs]

    def verdict(self, query: Query, answer: str) -> Judgment:
        """What one answer to a query earns."""
        if not query.choices:
            raise VragError(
                f"query {query.query_id!r} has no options; expected a question with choices, as"
                " load_mrag_bench gives them."
            )
        if not query.answers:
            return hidden(query)
        reading = read_choice(answer, query.choices)
        right = reading.letter is not None and reading.letter in right_letters(query)
        return Judgment(
            answer_id="",
            label=_label(reading, right),
            score=SHARES.best if right else SHARES.worst,
            marks=_marks(reading),
            raw=str(reading),
        )


def without_choice(judged: pd.DataFrame) -> pd.Series:
    """Which answers that `ChoiceJudge` judged choose no option, or several: bool. Those
    that are empty, cut off or failed are none of them: they are counted by their status.
    """
    marked = judged["marks"].map(lambda marks: not _NO_CHOICE.isdisjoint(marks.split(", ")))
    return marked.astype(bool) & (judged["status"] == "ok")


def _label(reading: Reading, right: bool) -> str:
    if reading.letter is not None:
        return "correct" if right else "incorrect"
    return "ambiguous" if reading.letters else reading.rule


def _marks(reading: Reading) -> frozenset[str]:
    marks = {reading.rule}
    if len(reading.letters) > 1:
        marks.add("ambiguous")
    if reading.rule == "declined":
        marks.add("abstention")
    if reading.options_are_letters:
        marks.add("options are letters")
    return frozenset(marks)
