"""What a judge must offer, which judge a parameter names, and how a table of answers
gets its verdicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.generation.loading import load_generator
from vrag_kit.judging.abstention import declines
from vrag_kit.judging.answered import answered
from vrag_kit.judging.llm_judge import LLMJudge
from vrag_kit.judging.rule_judge import RuleJudge
from vrag_kit.options import Entry
from vrag_kit.types import Benchmark, Failure, Judgment, Query, Status

PAPER_JUDGE = "o4-mini@openai"
"""The paper's judge (section 5.1)."""


class Judge(Protocol):
    """Says how right answers are."""

    name: str

    def judge(self, queries: Sequence[Query], answers: Sequence[str]) -> list[tuple[Judgment, ...]]:
        """For each query and answer one verdict a sample: in [0, 1] with its marks, or
        one whose status says why there is none.
        """


def load_judge(
    entry: Entry = PAPER_JUDGE,
    answers_dir: Path | str = "runs/answers",
    *,
    samples: int = 1,
    device: str = "cpu",
    max_new_tokens: int = 256,
    batch_size: int = 8,
    retry_failures: bool = False,
) -> Judge:
    """The judge that a parameter names: "rule", or any model that `load_generator`
    takes, such as `PAPER_JUDGE`, with the rubric of Table 12.

    The model decodes as its own defaults say, unless its entry says otherwise; its
    verdicts are kept in `answers_dir`, as answers are. `samples` repeats every verdict.
    Raises `VragError` as `load_generator` does.
    """
    if entry == RuleJudge.name:
        return RuleJudge()
    generator = load_generator(
        entry, device=device, max_new_tokens=max_new_tokens, concurrency=batch_size
    )
    return LLMJudge(
        generator,
        answers_dir,
        samples=samples,
        batch_size=batch_size,
        retry_failures=retry_failures,
    )


def judge_all(judge: Judge, benchmark: Benchmark, answers: pd.DataFrame) -> pd.DataFrame:
    """The table of answers with the columns score, spread, abstained, marked, marks and
    verdict added.

    score in [0, 1], abstained and marked (of one verdict 1.0 or 0.0) are means over the
    readable verdicts of an answer, and NaN where the question failed or no verdict
    could be read: such rows are counted and left out of means. spread is the standard
    deviation over an answer's verdicts, NaN for fewer than two. An answer is marked
    when the judge says "No Answer"; it abstains when it is marked, or when it earns
    nothing and its words decline. Equal answers to a query are judged once. Raises
    `VragError` for a row that is no answer to a query, and when not one answer got a
    verdict.
    """
    good = answered(benchmark, answers)
    pairs = list(dict.fromkeys(zip(good["query_id"], good["answer"], strict=True)))
    found = judge.judge(
        [benchmark.queries[query_id] for query_id, _ in pairs], [answer for _, answer in pairs]
    )
    columns = {
        pair: _columns(verdicts, pair[1]) for pair, verdicts in zip(pairs, found, strict=True)
    }
    _note(judge.name, found)
    if found and not any(verdict.score is not None for verdicts in found for verdict in verdicts):
        raise VragError(
            f"judge {judge.name!r}: none of {len(found):,} answers got a verdict; the first says"
            f' "{found[0][0].failure}". Take a stronger judge, or mend what that says; answers and'
            " verdicts are kept."
        )
    rows = [
        (
            columns[query_id, answer]
            if status == "ok"
            else (np.nan, np.nan, np.nan, np.nan, "", str(Failure(Status(status), detail)))
        )
        for query_id, answer, status, detail in answers[
            ["query_id", "answer", "status", "detail"]
        ].itertuples(index=False)
    ]
    score, spread, abstained, marked, marks, verdict = (
        zip(*rows, strict=True) if rows else ((),) * 6
    )
    return answers.assign(
        score=score, spread=spread, abstained=abstained, marked=marked, marks=marks, verdict=verdict
    )


def _columns(
    verdicts: Sequence[Judgment], answer: str
) -> tuple[float, float, float, float, str, str]:
    scores = [verdict.score for verdict in verdicts if verdict.score is not None]
    said = " / ".join(
        str(verdict.failure) if verdict.failure else " ".join((verdict.raw or "").split())
        for verdict in verdicts
    )
    if not scores:
        return np.nan, np.nan, np.nan, np.nan, "", said
    abstained = [_abstains(verdict, answer) for verdict in verdicts if verdict.score is not None]
    marks = ", ".join(sorted(frozenset().union(*(verdict.marks for verdict in verdicts))))
    marked = [
        float("abstention" in verdict.marks) for verdict in verdicts if verdict.score is not None
    ]
    return (
        float(np.mean(scores)),
        float(np.std(scores, ddof=1)) if len(scores) > 1 else np.nan,
        float(np.mean(abstained)),
        float(np.mean(marked)),
        marks,
        said,
    )


def _abstains(verdict: Judgment, answer: str) -> bool:
    return "abstention" in verdict.marks or (
        verdict.score == 0 and "hallucination" not in verdict.marks and declines(answer)
    )


def _note(name: str, found: Sequence[Sequence[Judgment]]) -> None:
    """Print what got no verdict, and how far samples differ."""
    if lost := [verdict.failure for verdicts in found for verdict in verdicts if verdict.failure]:
        print(
            f'judge {name}: {len(lost):,} verdicts are missing, such as "{lost[0]}"; they are left'
            " out of means",
            flush=True,
        )
    scores = [
        scores
        for verdicts in found
        if len(scores := [verdict.score for verdict in verdicts if verdict.score is not None]) > 1
    ]
    if scores:
        differ, spread = (
            sum(len(set(each)) > 1 for each in scores),
            float(np.mean([np.std(each, ddof=1) for each in scores])),
        )
        print(
            f"judge {name}: samples differ on {differ:,} of {len(scores):,} answers; the standard"
            f" deviation of a score is {spread:.3f} in the mean",
            flush=True,
        )
