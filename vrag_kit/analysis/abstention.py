"""When models decline to answer (Visual-RAG appendix B.4, Table 8): two detectors,
their agreement, and what is left of accuracy among the answers given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import pandas as pd

from vrag_kit.analysis.accuracy import ARM, per_query
from vrag_kit.analysis.association import association
from vrag_kit.analysis.comparison import compare
from vrag_kit.analysis.intervals import summarise
from vrag_kit.frames import require_columns
from vrag_kit.judging.abstention import declines
from vrag_kit.judging.scale import scale_of
from vrag_kit.types import Status

_CELLS = {"both": (1, 1), "only_mark": (1, 0), "only_words": (0, 1), "neither": (0, 0)}
"""Kind of answer → whether the mark and the words say that it declines."""


def detect_abstention(judged: pd.DataFrame) -> pd.DataFrame:
    """The table of judged answers with two detectors as columns, 1.0 where it says that
    the answer declines and 0.0 where not; an empty answer does not.

    mark: the share of the judge's verdicts that mark the answer "No Answer" (Table 12);
    NaN without a verdict. words: the answer's own words say so (`declines`); NaN where
    the call failed. `abstained` of `judge_all` joins the two: the mark, or the
    words where nothing was earned.
    """
    answers = judged["answer"].where(judged["status"].map(lambda said: Status(said).is_answer))
    said = answers.map(lambda answer: float(declines(answer)), na_action="ignore").astype(float)
    return judged.assign(mark=judged["marked"], words=said)


def detector_agreement(judged: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """How far the two detectors agree: model, both, only_mark, only_words, neither
    (numbers of answers), kappa, ci_low, ci_high, n, n_failed.

    The judge marks an answer when at least half of its verdicts do. Cohen's kappa with
    an interval over groups; NaN where neither detector, or each, found all answers
    alike. n counts answers, n_failed those without a verdict.
    """
    require_columns(judged, ["model", "group", "answer", "status", "marked"], "detector_agreement")
    found = detect_abstention(judged)
    said = (found["mark"] >= 0.5).astype(float).where(found["mark"].notna())
    rows = []
    for model, part in found.assign(mark=said).groupby("model", sort=False):
        kappa = association(part["mark"], part["words"], part["group"], measure="kappa", seed=seed)
        cells = {
            name: int(((part["mark"] == mark) & (part["words"] == words)).sum())
            for name, (mark, words) in _CELLS.items()
        }
        estimate = {"kappa" if name == "value" else name: x for name, x in asdict(kappa).items()}
        rows.append({"model": model, **cells, **estimate})
    columns = ["model", *_CELLS, "kappa", "ci_low", "ci_high", "n", "n_failed"]
    return pd.DataFrame(rows, columns=columns)


def selective_accuracy(judged: pd.DataFrame, *, by: Sequence[str] = ARM) -> pd.DataFrame:
    """Accuracy of the answers given, beside that of all: `by`, accuracy, value, ci_low,
    ci_high, n answers given, n_declined, n_failed.

    `value` is the mean over the answers given (a question may be answered in one draw
    and declined in another), with an interval over groups; `accuracy` the mean over
    queries as elsewhere. Both lie on the judge's scale; value is NaN when all answers decline. An
    answer is given when fewer than half of its verdicts abstain.
    """
    require_columns(judged, ["query_id", "group", "score", "abstained"], "selective_accuracy")
    arm, scale = list(by), scale_of(judged)
    given = judged.assign(
        value=judged["score"].where(judged["abstained"] < 0.5),
        declined=judged["abstained"] >= 0.5,
        failed=judged["score"].isna(),
        worst=scale.worst,
        best=scale.best,
    )
    arms = given.groupby(arm, sort=False, dropna=False)
    counts = arms.agg(n_declined=("declined", "sum"), n_failed=("failed", "sum")).reset_index()
    queries = per_query(judged, by=arm).groupby(arm, sort=False, dropna=False)["value"]
    plain = queries.mean().rename("accuracy").reset_index()
    means = summarise(given, arm).drop(columns="n_failed")
    return plain.merge(means, on=arm).merge(counts, on=arm)


def change_over_k(values: pd.DataFrame) -> pd.DataFrame:
    """What changes from the smallest to the largest k of a model and setting: model,
    setting, ks ("1 to 20"), value, ci_low, ci_high, n, n_failed, p, p_holm.

    `values` as `per_query(judged, metric="abstention")` gives; settings with one k are
    left out. The difference is paired over queries, as in `compare`, in [−1, 1].
    """
    by = ["model", "setting", "ks"]
    changes = compare(ends_of_k(values), arm="end", by=by, baseline="smallest k")
    return changes.drop(columns="end")


def ends_of_k(table: pd.DataFrame) -> pd.DataFrame:
    """The rows with the smallest and the largest k of every model and setting that has
    several, marked in `end`; `ks` names both.
    """
    of_arm = table.groupby(["model", "setting"], sort=False)["k"]
    fewest, most = of_arm.transform("min"), of_arm.transform("max")
    ends = table.assign(
        end=table["k"].eq(most).map({False: "smallest k", True: "largest k"}),
        ks=fewest.astype(str) + " to " + most.astype(str),
    )
    return ends[(fewest < most) & (table["k"].eq(fewest) | table["k"].eq(most))]
