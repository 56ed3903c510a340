"""Abstention as in appendix B.4 and Table 8: two detectors, their agreement, the change over k."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vrag_kit.analysis.abstention import abstains
from vrag_kit.analysis.agreement import association
from vrag_kit.analysis.comparisons import paired_differences
from vrag_kit.judging.abstention import is_abstention
from vrag_kit.tables import require_columns
from vrag_kit.types import Status

_CELLS = {"both": (1, 1), "only_flag": (1, 0), "only_phrase": (0, 1), "neither": (0, 0)}
"""Cell → the values of (judge_flag, phrase_match) that it counts."""


def detect_abstention(judged: pd.DataFrame) -> pd.DataFrame:
    """Adds two detectors of abstention to the judged answers: 1.0 for an abstention, else 0.0. An
    empty answer is no abstention.

    judge_flag: the share of the judge's verdicts that mark the answer "No Answer" (Table 12); NaN
    without a verdict. phrase_match: whether the answer's text says so (`is_abstention`); NaN where
    the call failed. `abstained` of `judge_answers` combines the two: the flag, or the phrase in an
    answer that scores nothing.
    """
    answers = judged["answer"].where(judged["status"].map(lambda said: Status(said).is_answer))
    said = answers.map(is_abstention, na_action="ignore").astype(float)
    return judged.assign(judge_flag=judged["flagged"], phrase_match=said)


def detector_agreement(judged: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """Agreement of the two detectors of abstention: model, both, only_flag, only_phrase, neither
    (numbers of answers), kappa, ci_low, ci_high, n, n_failed.

    The judge flags an answer when at least half of its verdicts do. Cohen's kappa with an interval
    over groups; NaN where both detectors find that all answers abstain, or that none does. n counts
    answers, n_failed those without a verdict.
    """
    require_columns(judged, ["model", "group", "answer", "status", "flagged"], "detector_agreement")
    found = detect_abstention(judged.assign(flagged=abstains(judged["flagged"])))
    rows = []
    for model, part in found.groupby("model", sort=False):
        kappa = association(
            part["judge_flag"], part["phrase_match"], part["group"], measure="kappa", seed=seed
        )
        cells = [
            ((part["judge_flag"] == flag) & (part["phrase_match"] == phrase)).sum()
            for flag, phrase in _CELLS.values()
        ]
        rows.append((model, *cells, *kappa))
    columns = ["model", *_CELLS, "kappa", "ci_low", "ci_high", "n", "n_failed"]
    return pd.DataFrame(rows, columns=columns)


def change_over_k(
    values: pd.DataFrame, *, by: Sequence[str] = ("model", "setting")
) -> pd.DataFrame:
    """Change from the smallest to the largest k of each arm: `by`, ks ("1 to 20"), value, ci_low,
    ci_high, n, n_failed, p, p_holm.

    `values` as `per_query(judged, metric="abstention")` gives, or any of `paired_differences`; arms
    with one k are left out. The difference is paired over queries, on the scale of differences.
    """
    ends = smallest_and_largest_k(values, by)
    changes = paired_differences(ends, arm="end", by=[*by, "ks"], baseline="smallest k")
    return changes.drop(columns="end")


def smallest_and_largest_k(table: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The rows with the smallest and the largest k of each arm with several k. `end` marks which
    one a row has; `ks` names both.
    """
    of_arm = table.groupby(list(by), sort=False)["k"]
    fewest, most = of_arm.transform("min"), of_arm.transform("max")
    ends = table.assign(
        end=table["k"].eq(most).map({False: "smallest k", True: "largest k"}),
        ks=fewest.astype(str) + " to " + most.astype(str),
    )
    return ends[(fewest < most) & (table["k"].eq(fewest) | table["k"].eq(most))]


def published_change_over_k(table: pd.DataFrame) -> pd.DataFrame:
    """Computes the change from smallest to largest k from published numbers, such as Table 8:
    model, setting, ks, value in points, without intervals.
    """
    wide = smallest_and_largest_k(table, ["model", "setting"]).pivot_table(
        index=["model", "setting", "ks"], columns="end", values="value", sort=False
    )
    return (wide["largest k"] - wide["smallest k"]).rename("value").reset_index()
