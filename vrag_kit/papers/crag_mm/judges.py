"""The judges of truthfulness that a parameter names, and all readings of abstention side
by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from vrag_kit.judging import Judge, TruthRuleJudge, judge_all, load_judge
from vrag_kit.judging.loading import word_of
from vrag_kit.options import Entry
from vrag_kit.papers.crag_mm.abstention import READINGS
from vrag_kit.papers.crag_mm.rubric import truth_rubric
from vrag_kit.types import Benchmark

PAPER_JUDGE: Entry = {"model": "gpt-4o@openai", "decoding": "greedy"}
"""The paper's judge (A.5.2)."""
MOST_TOKENS = 1024
"""Longest verdict, as in the paper."""


def load_truth_judge(
    entry: Entry,
    answers_dir: Path | str = "runs/answers",
    *,
    abstention: str = "code",
    form: str = "paper",
    run_with: Mapping[str, Any] | None = None,  # a notebook's parameter: values of any type
) -> Judge:
    """The judge that a parameter names: "truth_rule", any model that `load_generator`
    takes, with the paper's prompt, or a class of one's own with scale (-1, 1).

    `abstention` names the reading, one of `READINGS`, by which an answer is missing;
    `form` one of `FORMS`. `run_with` and what is raised as in `load_judge`; and
    `VragError` for another reading or form.
    """
    rubric = truth_rubric(abstention=abstention, form=form)
    if word_of(entry) == TruthRuleJudge.name:
        return TruthRuleJudge(READINGS[abstention])
    return load_judge(
        entry, answers_dir, rubric=rubric, max_new_tokens=MOST_TOKENS, run_with=run_with
    )


def judged_by_reading(
    entry: Entry,
    benchmark: Benchmark,
    answers: pd.DataFrame,
    answers_dir: Path | str = "runs/answers",
    *,
    form: str = "paper",
    run_with: Mapping[str, Any] | None = None,  # as above
) -> pd.DataFrame:
    """The table of answers judged once by each of `READINGS`, which the column abstention
    names, one below the other.

    What one reading takes as an answer and another as missing goes to the judge for the
    first alone; the same answer is never asked about twice.
    """
    tables = []
    for reading in READINGS:
        judge = load_truth_judge(
            entry, answers_dir, abstention=reading, form=form, run_with=run_with
        )
        tables.append(judge_all(judge, benchmark, answers).assign(abstention=reading))
    return pd.concat(tables, ignore_index=True)
