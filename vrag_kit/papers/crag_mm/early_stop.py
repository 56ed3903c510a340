"""Conversations that are asked no further than they count."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vrag_kit.forecast import STAND_IN
from vrag_kit.generation import EarlyStop
from vrag_kit.judging import Judge, judge_some
from vrag_kit.papers.crag_mm.stop_rule import two_not_right
from vrag_kit.types import Benchmark


def early_stop(judge: Judge, benchmark: Benchmark, *, wanted: bool = True) -> EarlyStop | None:
    """Judges each turn as it is answered, so that nothing is asked after
    `two_not_right`; None unless it is `wanted`, so that all turns are asked.

    The turns that are not asked are missing in either case: truthfulness is the same. A
    turn without a readable verdict stops nothing, nor does one whose verdict only
    stands in for another, in a forecast.
    """

    def score(answers: pd.DataFrame) -> Sequence[float]:
        judged = judge_some(judge, benchmark, answers)
        stands_in = judged["marks"].str.contains(STAND_IN, regex=False)
        return judged["score"].mask(stands_in).tolist()

    return EarlyStop(score=score, rule=two_not_right) if wanted else None
