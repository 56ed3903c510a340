"""Loads the truthfulness judge named by a parameter; judges answers by each abstention rule."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from vrag_kit.config import Entry
from vrag_kit.judging import Judge, TruthfulnessRuleJudge, judge_answers, load_judge
from vrag_kit.papers.crag_mm.abstention import READINGS
from vrag_kit.papers.crag_mm.rubric import truthfulness_rubric
from vrag_kit.types import Benchmark

PAPER_JUDGE: Entry = {"model": "gpt-4o@openai", "decoding": {"temperature": 0}}
"""The paper's judge (A.5.2)."""
MOST_TOKENS = 1024
"""Maximum number of tokens of a verdict, as in the paper."""


def load_truthfulness_judge(
    entry: Entry,
    answers_dir: Path | str = "runs/answers",
    *,
    abstention: str = "code",
    form: str = "paper",
    hardware: Mapping[str, Any] | None = None,  # a notebook's parameter: values of any type
) -> Judge:
    """Loads the judge that a parameter names: "truth_rule", any model that `load_generator` takes,
    with the paper's prompt, or a custom class with scale (-1, 1).

    `abstention` names the rule, one of `READINGS`, by which an answer is missing; `form` is one of
    `FORMS`. `hardware` and exceptions are as in `load_judge`. Also raises `VragError` for an
    unknown rule or form.
    """
    rubric = truthfulness_rubric(abstention=abstention, form=form)
    judge = load_judge(
        entry, answers_dir, rubric=rubric, max_new_tokens=MOST_TOKENS, hardware=hardware
    )
    if isinstance(judge, TruthfulnessRuleJudge):
        return TruthfulnessRuleJudge(READINGS[abstention])
    return judge


def judge_by_abstention_rule(
    entry: Entry,
    benchmark: Benchmark,
    answers: pd.DataFrame,
    answers_dir: Path | str = "runs/answers",
    *,
    form: str = "paper",
    hardware: Mapping[str, Any] | None = None,  # as above
) -> pd.DataFrame:
    """Judges the answers once by each rule of `READINGS` and concatenates the tables; the column
    abstention_rule names the rule.

    An answer that is missing by one rule but not by another goes to the judge for the latter only;
    the same answer is never judged twice.
    """
    tables = []
    for reading in READINGS:
        judge = load_truthfulness_judge(
            entry, answers_dir, abstention=reading, form=form, hardware=hardware
        )
        tables.append(judge_answers(judge, benchmark, answers).assign(abstention_rule=reading))
    return pd.concat(tables, ignore_index=True)
