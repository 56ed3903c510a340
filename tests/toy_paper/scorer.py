"""The toy paper's score: 1 for the right choice, 0 for declining, −1 for a wrong one."""

from __future__ import annotations

import re

import pandas as pd

from vrag_kit.judging import Scale
from vrag_kit.types import Benchmark, Judgment, Query


class ChoiceJudge:
    """Holds the letter that was chosen against the right choice; implements `Judge`."""

    name = "choice"
    scale = Scale(-1.0, 1.0)

    def judge(self, benchmark: Benchmark, answers: pd.DataFrame) -> list[tuple[Judgment, ...]]:
        """One verdict for each row of answers."""
        pairs = zip(answers["query_id"], answers["answer"], strict=True)
        return [(_verdict(benchmark.queries[name], answer),) for name, answer in pairs]


def read_letter(raw: str) -> dict[str, str | bool]:
    """The letter that the words begin with, or "?"."""
    letter = re.match(r"\W*([A-Z])\b", raw)
    return {"answer": letter[1] if letter else "?"}


def _verdict(query: Query, answer: str) -> Judgment:
    place = ord(answer) - ord("A")
    if not 0 <= place < len(query.choices):
        marks = frozenset({"abstention"})
        return Judgment(score=0.0, marks=marks, raw=answer)
    right = query.choices[place] in query.answers
    return Judgment(score=1.0 if right else -1.0, raw=answer)
