"""Early stopping while answers are generated: later turns are skipped."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vrag_kit.generation import EarlyStop
from vrag_kit.judging import Judge, judge_answers
from vrag_kit.papers.crag_mm.stop_rule import early_stopping_rule
from vrag_kit.types import PLACEHOLDER, Benchmark


def early_stopping(judge: Judge, benchmark: Benchmark, *, wanted: bool = True) -> EarlyStop | None:
    """Returns an `EarlyStop` that judges each turn once answered and stops by
    `early_stopping_rule`. Returns None, to ask all turns, unless it is `wanted`.

    Turns that are not asked count as missing in either case: truthfulness is the same. A turn
    without a parsed verdict never triggers the stop, nor does a placeholder verdict of a dry run.
    """

    def score(answers: pd.DataFrame) -> Sequence[float]:
        judged = judge_answers(judge, benchmark, answers, partial=True)
        stands_in = judged["marks"].str.contains(PLACEHOLDER, regex=False)
        return judged["score"].mask(stands_in).tolist()

    return EarlyStop(score=score, rule=early_stopping_rule) if wanted else None
