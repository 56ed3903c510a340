"""What a judge must offer, and how a table of answers gets its verdicts."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pandas as pd

from vrag_kit.judging.abstention import declines
from vrag_kit.types import Benchmark, Judgment, Query


class Judge(Protocol):
    """Says how right an answer is."""

    name: str

    def judge(self, query: Query, answer: str, answer_id: str = "") -> Judgment:
        """A verdict in [0, 1] with its marks, or one whose status says why there is none."""


def judge_all(judge: Judge, benchmark: Benchmark, answers: pd.DataFrame) -> pd.DataFrame:
    """The table of answers with the columns score, abstained, marks and verdict added.

    score in [0, 1] and abstained (1.0 or 0.0) are NaN where the question failed or the verdict was unreadable: such rows
    are counted and left out of means. An answer abstains when the judge marks it, or when it earns nothing and its words decline.
    """
    verdicts: dict[tuple[str, str], Judgment] = {}
    rows = []
    for query_id, answer, status, answer_id in answers[["query_id", "answer", "status", "answer_id"]].itertuples(index=False):
        if status == "ok" and (query_id, answer) not in verdicts:
            verdicts[query_id, answer] = judge.judge(benchmark.queries[query_id], answer, answer_id)
        rows.append((np.nan, np.nan, "", status) if status != "ok" else _columns(verdicts[query_id, answer], answer))
    score, abstained, marks, verdict = zip(*rows, strict=True) if rows else ((), (), (), ())
    return answers.assign(score=score, abstained=abstained, marks=marks, verdict=verdict)


def _columns(verdict: Judgment, answer: str) -> tuple[float, float, str, str]:
    if verdict.score is None:
        return np.nan, np.nan, "", verdict.status
    abstained = "abstention" in verdict.marks or (verdict.score == 0 and "hallucination" not in verdict.marks and declines(answer))
    return verdict.score, float(abstained), ", ".join(sorted(verdict.marks)), verdict.raw or ""
