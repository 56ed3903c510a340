"""Judge of multiple-choice answers: 1 for the correct option, 0 for any other answer."""

from __future__ import annotations

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.judging import SHARES
from vrag_kit.judging.multiple_choice import ParsedChoice, correct_letters, read_choice
from vrag_kit.judging.scale import no_reference_failure, query_answers
from vrag_kit.types import Benchmark, Judgment, Query

_NO_CHOICE = frozenset({"ambiguous", "declined", "unparsed", "empty"})
"""Marks of an answer that chooses no option, or several."""


class MultipleChoiceJudge:
    """Parses the chosen option and compares it with the correct one; implements `Judge`.

    A verdict's text is the parsed choice ("B tagged", "ambiguous A, B (letter in text)"), and its
    marks name the rule. Ambiguous, abstaining or unparsed answers score 0, and are marked
    "ambiguous", "abstention" or "unparsed". Letters are never guessed at random. A query whose
    answers are hidden gets no score. Raises `VragError` for a query without options.
    """

    name = "choice"
    scale = SHARES

    def judge(self, benchmark: Benchmark, answers: pd.DataFrame) -> list[tuple[Judgment, ...]]:
        """Returns one verdict for each row of answers."""
        return [(self.judge_one(*pair),) for pair in query_answers(benchmark, answers)]

    def judge_one(self, query: Query, answer: str) -> Judgment:
        """Judges one answer to a query."""
        if not query.choices:
            raise VragError(
                f"query {query.query_id!r} has no options; expected a question with choices, as"
                " load_mrag_bench gives them."
            )
        if not query.answers:
            return no_reference_failure(query)
        reading = read_choice(answer, query.choices)
        right = reading.letter is not None and reading.letter in correct_letters(query)
        return Judgment(score=float(right), marks=_marks(reading), raw=str(reading))


def is_unparsed(judged: pd.DataFrame) -> pd.Series:
    """Whether each answer judged by `MultipleChoiceJudge` chooses no option, or several: bool.
    Empty, truncated or failed answers are excluded: they are counted by their status.
    """
    marked = judged["marks"].map(lambda marks: not _NO_CHOICE.isdisjoint(marks.split(", ")))
    return marked.astype(bool) & (judged["status"] == "ok")


def _marks(reading: ParsedChoice) -> frozenset[str]:
    marks = {reading.rule}
    if len(reading.letters) > 1:
        marks.add("ambiguous")
    if reading.rule == "declined":
        marks.add("abstention")
    if reading.options_are_letters:
        marks.add("options are letters")
    return frozenset(marks)
