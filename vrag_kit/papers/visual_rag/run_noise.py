"""Run-to-run noise of a mean over the same queries, as in the difference between our mean and the
paper's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

from vrag_kit.papers.audit import CELL
from vrag_kit.papers.visual_rag.uncertainty import RUN_TABLES, run_spreads

RUNS = 5  # behind a mean of the paper where it averages (footnotes 4 and 6)
_COLUMNS = {"accuracy": "score", "abstention": "abstained"}
"""Maps a metric to its column of judged answers, where the names differ."""
_TABLES = {"accuracy": RUN_TABLES, "rouge": (14, 16)}
"""Maps a metric to the tables with its published runs."""
_ENOUGH = 10_000  # degrees of freedom of a standard error that is a bound


@dataclass(frozen=True, slots=True)
class RunNoise:
    """Uncertainty, in points, of our mean minus the paper's, from runs, judge and failures."""

    error: float  # standard error
    freedom: int  # its degrees of freedom
    missing: tuple[float, float]  # lowest and highest change of our mean if nothing were missing

    @property
    def allowed(self) -> float:
        """Half the width of the 95 % interval for noise of runs and judge."""
        from scipy.special import stdtrit  # quantiles of Student's t

        return float(stdtrit(self.freedom, 0.975) * self.error)


_spreads = cache(run_spreads)


def run_noise(cell: tuple[str, str, int], arm: pd.DataFrame, metric: str, share: float) -> RunNoise:
    """Estimates the noise of one `cell`, the paper's model name, setting and k; `arm` has our
    answers. `share` is the mean of our value and the paper's in percent, where the metric is a
    share.

    Accuracy and ROUGE: the paper's standard deviation between runs, pooled over all cells of the
    model, divided by the runs on either side; for accuracy, plus our judge's noise if there are
    several verdicts per answer. Shares, such as abstention, have no published runs: their variance
    is p(1 − p)/n at most, so verdicts err toward "inconclusive".
    """
    of_cell = (_spreads(RUN_TABLES)[CELL] == list(cell)).all(axis=1)
    runs = 1 / (RUNS if of_cell.any() else 1) + 1 / max(1, arm["draw"].nunique())
    missing = _missing(arm, _COLUMNS.get(metric, metric))
    if metric not in _TABLES:
        n = arm["query_id"].nunique()
        likely = (share / 100 * n + 2) / (n + 4)  # Agresti and Coull's: no certainty at 0 and 1
        return RunNoise(100 * np.sqrt(likely * (1 - likely) / n * runs), _ENOUGH, missing)
    spreads = _spreads(_TABLES[metric])
    own = spreads[spreads["model"] == cell[0]]["std"]
    variance = float((own**2).mean()) * runs
    if metric == "accuracy":
        variance += 1e4 * _of_the_judge(arm)
    return RunNoise(float(np.sqrt(variance)), (RUNS - 1) * len(own), missing)


def _missing(arm: pd.DataFrame, column: str) -> tuple[float, float]:
    """What our mean could change if each missing value were 0, or 1, in points."""
    filled = arm[["query_id"]].assign(
        known=arm[column], low=arm[column].fillna(0.0), high=arm[column].fillna(1.0)
    )
    means = 100 * filled.groupby("query_id").mean().mean()
    return float(means["low"] - means["known"]), float(means["high"] - means["known"])


def _of_the_judge(arm: pd.DataFrame) -> float:
    """Variance that the judge's own noise gives to the difference of two means: ours
    over two verdicts an answer or more, the paper's over one. 0 where it is not known.

    Equal answers to a query share their verdicts, so they count as one, with their
    weight.
    """
    known = arm[arm["score"].notna() & arm["spread"].notna()]
    if known.empty or "answer" not in known:
        return 0.0
    answers = known.groupby(["query_id", "answer"], sort=False)
    each = answers.agg(weight=("score", "size"), spread=("spread", "first"))
    squares = float((each["weight"] ** 2 * each["spread"] ** 2).sum())
    return 1.5 * squares / float(each["weight"].sum()) ** 2
