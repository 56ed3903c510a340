"""When models decline to answer (Visual-RAG appendix B.4, Table 8): two detectors,
their agreement, and what is left of accuracy among the answers given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from vrag_kit.analysis.accuracy import ARM, per_query
from vrag_kit.analysis.association import association
from vrag_kit.analysis.comparison import compare
from vrag_kit.analysis.intervals import summarise
from vrag_kit.judging import declines


def detect_abstention(judged: pd.DataFrame) -> pd.DataFrame:
    """The table of judged answers with two detectors as columns, 1.0 where it says that
    the answer declines and 0.0 where not.

    mark: the share of the judge's verdicts that mark the answer "No Answer" (Table 12);
    NaN without a verdict. words: the answer's own words say so (`declines`); NaN where
    the question failed. `abstained` of `judge_all` joins the two: the mark, or the
    words where nothing was earned.
    """
    said = (
        judged["answer"]
        .where(judged["status"] == "ok")
        .map(lambda answer: float(declines(answer)), na_action="ignore")
        .astype(float)
    )
    return judged.assign(mark=judged["marked"], words=said)


def detector_agreement(
    judged: pd.DataFrame, groups: Mapping[str, str], *, seed: int = 0
) -> pd.DataFrame:
    """How far the two detectors agree: model, both, only_mark, only_words, neither
    (numbers of answers), kappa, ci_low, ci_high, n, n_failed.

    The judge marks an answer when at least half of its verdicts do. Cohen's kappa with
    an interval over groups; NaN where neither detector, or each, found all answers
    alike. n counts answers, n_failed those without a verdict.
    """
    rows = []
    found = detect_abstention(judged)
    for model, part in found.assign(
        mark=(found["mark"] >= 0.5).astype(float).where(found["mark"].notna())
    ).groupby("model", sort=False):
        kappa = association(
            part["mark"],
            part["words"],
            [groups[query_id] for query_id in part["query_id"]],
            measure="kappa",
            seed=seed,
        )
        cells = [
            int(((part["mark"] == mark) & (part["words"] == words)).sum())
            for mark, words in ((1, 1), (1, 0), (0, 1), (0, 0))
        ]
        rows.append(
            (model, *cells, kappa.value, kappa.ci_low, kappa.ci_high, kappa.n, kappa.n_failed)
        )
    return pd.DataFrame(
        rows,
        columns=[
            "model",
            "both",
            "only_mark",
            "only_words",
            "neither",
            "kappa",
            "ci_low",
            "ci_high",
            "n",
            "n_failed",
        ],
    )


def selective_accuracy(
    judged: pd.DataFrame, groups: Mapping[str, str], *, by: Sequence[str] = ARM, seed: int = 0
) -> pd.DataFrame:
    """Accuracy of the answers given, beside that of all: `by`, accuracy, value, ci_low,
    ci_high, n answers given, n_declined, n_failed.

    `value` is the mean over the answers given (a question may be answered in one draw
    and declined in another), with an interval over groups; `accuracy` the mean over
    queries as elsewhere. Both lie in [0, 1]; value is NaN when all answers decline. An
    answer is given when fewer than half of its verdicts abstain.
    """
    given = judged.assign(
        value=judged["score"].where(judged["abstained"] < 0.5),
        declined=judged["abstained"] >= 0.5,
        failed=judged["score"].isna(),
    )
    counts = (
        given.groupby(list(by), sort=False, dropna=False)
        .agg(n_declined=("declined", "sum"), n_failed=("failed", "sum"))
        .reset_index()
    )
    plain = (
        per_query(judged, by=by)
        .groupby(list(by), sort=False, dropna=False)["value"]
        .mean()
        .rename("accuracy")
        .reset_index()
    )
    return plain.merge(
        summarise(given, groups, by, seed=seed).drop(columns="n_failed"), on=list(by)
    ).merge(counts, on=list(by))


def selective_printed(accuracies: pd.DataFrame, abstentions: pd.DataFrame) -> pd.DataFrame:
    """The same from printed numbers: `printed(published("visual_rag", table=3))` with
    the value in percent replaced, by `table=8`; NaN where all declined.

    Accuracy / (1 − abstention): exact where declining earns nothing, as the rubric
    demands, and both tables count the same answers.
    """
    both = accuracies.merge(
        abstentions[["model", "setting", "k", "value"]],
        on=["model", "setting", "k"],
        suffixes=("", "_declined"),
    )
    given = 100 - both["value_declined"]
    return both.assign(value=(100 * both["value"] / given).where(given > 0)).drop(
        columns="value_declined"
    )


def change_over_k(
    values: pd.DataFrame, groups: Mapping[str, str], *, seed: int = 0
) -> pd.DataFrame:
    """What changes from the smallest to the largest k of a model and setting: model,
    setting, ks ("1 to 20"), value, ci_low, ci_high, n, p, p_holm.

    `values` as `per_query(judged, metric="abstention")` gives; settings with one k are
    left out. The difference is paired over queries, as in `compare`, in [−1, 1].
    """
    return compare(
        _ends_of_k(values),
        groups,
        arm="end",
        by=["model", "setting", "ks"],
        baseline="smallest k",
        seed=seed,
    ).drop(columns="end")


def change_printed(table: pd.DataFrame) -> pd.DataFrame:
    """The same from printed numbers, such as `printed(published("visual_rag",
    table=8))`: model, setting, ks, value in points, without intervals.
    """
    wide = _ends_of_k(table).pivot_table(
        index=["model", "setting", "ks"], columns="end", values="value", sort=False
    )
    return (wide["largest k"] - wide["smallest k"]).rename("value").reset_index()


def _ends_of_k(table: pd.DataFrame) -> pd.DataFrame:
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
