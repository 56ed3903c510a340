"""Abstention as in appendix B.4 and Table 8: two detectors, their agreement, the change over k."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from vrag_kit.analysis.agreement import AS_THEY_ARE
from vrag_kit.judging.abstention import is_abstention
from vrag_kit.judging.human_labels import score_of_label
from vrag_kit.papers.audit import CELL
from vrag_kit.papers.published import published
from vrag_kit.types import Status


def detect_abstention(judged: pd.DataFrame) -> pd.DataFrame:
    """Adds two detectors of abstention to the judged answers: 1.0 for an abstention, else 0.0. An
    empty answer is no abstention.

    judge_flag: the share of the judge's verdicts that mark the answer "No Answer" (Table 12); NaN
    without a verdict. phrase_match: whether the answer's text says so (`is_abstention`); NaN where
    the call failed. `abstained` of `judge_answers` combines the two: the flag, or the phrase in an
    answer that scores nothing.
    """
    answers = judged["answer"].where(judged["status"].map(lambda status: Status(status).is_answer))
    phrase = answers.map(is_abstention, na_action="ignore").astype(float)
    return judged.assign(judge_flag=judged["flagged"], phrase_match=phrase)


def smallest_and_largest_k(table: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Selects the rows with the smallest and the largest k of each arm `by` that has several k.
    Adds end ("smallest k" or "largest k") and ks ("1 to 20"), as for `paired_differences(…,
    arm="end")`.
    """
    of_arm = table.groupby(list(by), sort=False)["k"]
    fewest, most = of_arm.transform("min"), of_arm.transform("max")
    ends = table.assign(
        end=table["k"].eq(most).map({False: "smallest k", True: "largest k"}),
        ks=fewest.astype(str) + " to " + most.astype(str),
    )
    return ends[(fewest < most) & (table["k"].eq(fewest) | table["k"].eq(most))]


RUN_TABLES = (13, 15)
_SAME = 0.006  # two printed means are one: half a unit of the last digit, and a hair


def with_uncertainty(table: pd.DataFrame) -> pd.DataFrame:
    """Adds the intervals ci_low, ci_high (`with_binomial_interval`) and ci_low_runs, ci_high_runs
    to published answers, in percent: `with_uncertainty(published("visual_rag", 3))`.

    The latter are a t interval over the five runs of Tables 13 and 15, where the value is their
    mean: over other samples of images for the *same* queries. NaN elsewhere.
    """
    cells = table[CELL].merge(run_spreads(), on=CELL, how="left")
    fits = (cells["mean"] - table["value"].to_numpy()).abs() <= _SAME
    return with_binomial_interval(table).assign(
        ci_low_runs=(cells["mean"] - cells["half"]).where(fits).to_numpy(),
        ci_high_runs=(cells["mean"] + cells["half"]).where(fits).to_numpy(),
    )


def with_binomial_interval(table: pd.DataFrame) -> pd.DataFrame:
    """Adds ci_low and ci_high, the widest interval of a mean in percent over n queries; NaN where
    the unit is another one, such as hit_count's.

    Clopper–Pearson interval, as if every query scored 0 or 1 (means of other scores vary less) and
    independently (queries on one species may not be independent; the paper publishes nothing on
    this).

    Clopper & Pearson (1934), "The use of confidence or fiducial limits illustrated in
    the case of the binomial", Biometrika 26(4).
    """
    from statsmodels.stats.proportion import proportion_confint  # slow to import

    right = (table["value"] / 100 * table["n"]).where(table["unit"] == "percent")
    low, high = proportion_confint(right, table["n"], method="beta")
    return table.assign(ci_low=100 * low, ci_high=100 * high)


def run_spreads(tables: tuple[int, ...] = RUN_TABLES) -> pd.DataFrame:
    """Computes the spread of the paper's five runs from the runs themselves (Tables 13 and 15; for
    ROUGE 14 and 16): model, setting, k, mean in percent, std (ddof = 1), count, and half, half the
    width of the mean's 95 % t interval, in points.
    """
    from scipy.special import stdtrit  # quantiles of Student's t

    cells = published("visual_rag", tables, statistic="run").groupby(CELL, sort=False)["value"]
    over = cells.agg(["mean", "std", "count"]).reset_index()
    half = stdtrit(over["count"] - 1, 0.975) * over["std"] / np.sqrt(over["count"])
    return over.assign(half=half)


READINGS = {
    **AS_THEY_ARE,
    "any partial matches; kept as the labeller's label": "tt tt tf  pp pp pp  ft ff ff",
    "any partial matches; kept as the judge's label": "tt pp tf  tt pp ff  ft pp ff",
    "any partial matches; kept as the other label": "tt tt tf  tt pp ff  ft ff ff",
    "any partial matches; both partial left out": "tt tt tf  tt -- ff  ft ff ff",
    "any partial left out": "tt -- tf  -- -- --  ft -- ff",
    "the judge's partial matches": "tt tt tf  pt pp pf  ft ff ff",
    "the labeller's partial matches": "tt tp tf  tt pp ff  ft fp ff",
    "the judge's partial matches; the labeller's left out": "tt tt tf  -- -- --  ft ff ff",
    "the labeller's partial matches; the judge's left out": "tt -- tf  tt -- ff  ft -- ff",
    "partial is true": "tt tt tf  tt tt tf  ft ft ff",
    "partial is false": "tt tf tf  ft ff ff  ft ff ff",
}
"""Reading → what each pair of labels counts as (see `agreement`)."""


def expand_confusion(counts: pd.DataFrame) -> pd.DataFrame:
    """Expands a confusion matrix (human, judge, count) to one row per answer: human_label,
    judge_label, score, group.

    The matrix does not record groups, so each answer is its own group. The judge's score is that of
    its label, in [0, 1].
    """
    rows = counts.loc[counts.index.repeat(counts["count"]), ["human", "judge"]]
    rows = rows.reset_index(drop=True).add_suffix("_label")
    scores = rows["judge_label"].map(score_of_label)
    return rows.assign(score=scores, group=[f"answer {n}" for n in rows.index])
