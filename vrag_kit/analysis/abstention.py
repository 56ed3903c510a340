"""Detectors of abstention, their agreement, and selective accuracy (Visual-RAG appendix B.4, Table
8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import pandas as pd

from vrag_kit.analysis.association import association
from vrag_kit.analysis.comparisons import paired_differences
from vrag_kit.analysis.estimates import cluster_means
from vrag_kit.analysis.means import ARM, per_query
from vrag_kit.judging.abstention import is_abstention
from vrag_kit.judging.scale import scale_of
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
    said = answers.map(lambda answer: float(is_abstention(answer)), na_action="ignore").astype(
        float
    )
    return judged.assign(judge_flag=judged["flagged"], phrase_match=said)


def detector_agreement(judged: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """Agreement of the two detectors of abstention: model, both, only_flag, only_phrase, neither
    (numbers of answers), kappa, ci_low, ci_high, n, n_failed.

    The judge flags an answer when at least half of its verdicts do. Cohen's kappa with an interval
    over groups; NaN where both detectors find that all answers abstain, or that none does. n counts
    answers, n_failed those without a verdict.
    """
    require_columns(judged, ["model", "group", "answer", "status", "flagged"], "detector_agreement")
    found = detect_abstention(judged)
    said = (found["judge_flag"] >= 0.5).astype(float).where(found["judge_flag"].notna())
    rows = []
    for model, part in found.assign(judge_flag=said).groupby("model", sort=False):
        kappa = association(
            part["judge_flag"], part["phrase_match"], part["group"], measure="kappa", seed=seed
        )
        cells = {
            name: int(((part["judge_flag"] == flag) & (part["phrase_match"] == phrase)).sum())
            for name, (flag, phrase) in _CELLS.items()
        }
        estimate = {"kappa" if name == "value" else name: x for name, x in asdict(kappa).items()}
        rows.append({"model": model, **cells, **estimate})
    columns = ["model", *_CELLS, "kappa", "ci_low", "ci_high", "n", "n_failed"]
    return pd.DataFrame(rows, columns=columns)


def selective_accuracy(judged: pd.DataFrame, *, by: Sequence[str] = ARM) -> pd.DataFrame:
    """Accuracy over the answers given, and over all answers: `by`, accuracy, value, ci_low,
    ci_high, n answers given, n_declined, n_failed.

    `value` is the mean over the answers given (a question may be answered in one draw and not in
    another), with an interval over groups; `accuracy` the mean over queries as elsewhere. Both lie
    on the judge's scale; value is NaN when all answers abstain. An answer is given when fewer than
    half of its verdicts abstain.
    """
    require_columns(judged, ["query_id", "group", "score", "abstained"], "selective_accuracy")
    arm, scale = list(by), scale_of(judged)
    given = judged.assign(
        value=judged["score"].where(judged["abstained"] < 0.5),
        declined=judged["abstained"] >= 0.5,
        failed=judged["score"].isna(),
        score_min=scale.worst,
        score_max=scale.best,
    )
    arms = given.groupby(arm, sort=False, dropna=False)
    counts = arms.agg(n_declined=("declined", "sum"), n_failed=("failed", "sum")).reset_index()
    queries = per_query(judged, by=arm).groupby(arm, sort=False, dropna=False)["value"]
    plain = queries.mean().rename("accuracy").reset_index()
    means = cluster_means(given, arm).drop(columns="n_failed")
    return plain.merge(means, on=arm).merge(counts, on=arm)


def change_over_k(values: pd.DataFrame) -> pd.DataFrame:
    """Change from the smallest to the largest k of each model and setting: model, setting, ks ("1
    to 20"), value, ci_low, ci_high, n, n_failed, p, p_holm.

    `values` as `per_query(judged, metric="abstention")` gives; settings with one k are
    left out. The difference is paired over queries, as in `paired_differences`, in [−1, 1].
    """
    by = ["model", "setting", "ks"]
    changes = paired_differences(
        smallest_and_largest_k(values), arm="end", by=by, baseline="smallest k"
    )
    return changes.drop(columns="end")


def smallest_and_largest_k(table: pd.DataFrame) -> pd.DataFrame:
    """The rows with the smallest and the largest k of each model and setting with several k. `end`
    marks which one a row has; `ks` names both.
    """
    of_arm = table.groupby(["model", "setting"], sort=False)["k"]
    fewest, most = of_arm.transform("min"), of_arm.transform("max")
    ends = table.assign(
        end=table["k"].eq(most).map({False: "smallest k", True: "largest k"}),
        ks=fewest.astype(str) + " to " + most.astype(str),
    )
    return ends[(fewest < most) & (table["k"].eq(fewest) | table["k"].eq(most))]
