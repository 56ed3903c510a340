"""What answers are beside their score: abstentions, errors, answers that follow a counterfactual
image, and ROUGE.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.analysis.means import ARM
from vrag_kit.errors import VragError
from vrag_kit.judging.abstention import is_abstention
from vrag_kit.judging.scale import scale_of
from vrag_kit.plotting.style import count_label, model_colors, new_figure, set_caption
from vrag_kit.types import Benchmark, Status


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


KINDS = ("correct", "partially correct", "abstained", "incorrect")
_CASE = [
    *("model", "query_id", "setting", "k", "draw", "question", "references", "answer", "outcome"),
    *("verdict", "score", "doc_ids", "answer_id"),
]


def classify_answers(judged: pd.DataFrame) -> pd.Series:
    """Classifies every judged answer as one of `KINDS`; missing where there is no verdict.

    Correct has the best score, partially correct another above 0 (or above the scale's worst,
    where that is more); the rest abstains or is incorrect.
    """
    score, scale = judged["score"], scale_of(judged)
    conditions = [score == scale.best, score > scale.nothing, judged["abstained"] > 0]
    kinds = pd.Series(np.select(conditions, KINDS[:3], KINDS[3]), judged.index, name="outcome")
    return kinds.where(score.notna())


def error_cases(judged: pd.DataFrame, benchmark: Benchmark) -> pd.DataFrame:
    """Selects the answers to one clue (gt_clue) that are not fully correct, the incorrect ones
    first: the columns model, query_id, setting, k, draw, question, references, answer, outcome,
    verdict, score, doc_ids and answer_id, as far as `judged` has them; empty when all are correct.

    references are the accepted answers, doc_ids the images as shown. Equal answers of a model to
    the same question are one case (its first draw). Failed answers are left out.
    """
    wrong = (judged["setting"] == "gt_clue") & (judged["score"] < scale_of(judged).best)
    rows = judged[wrong].drop_duplicates(["model", "query_id", "answer"])
    queries = [benchmark.queries[query_id] for query_id in rows["query_id"]]
    rows = rows.assign(
        outcome=classify_answers(rows),
        question=[query.text for query in queries],
        references=[" | ".join(query.answers) for query in queries],
    )
    rows = rows.sort_values(["query_id", "model"], kind="stable")
    worst_first = rows["outcome"].map(KINDS[::-1].index).argsort(kind="stable")
    rows = rows.iloc[worst_first].reset_index(drop=True)
    return rows[[name for name in _CASE if name in rows]]


OUTCOMES = {
    "counterfactual_value": "new value",
    "original_value": "original value",
    "abstains": "abstains",
    "other_answer": "other answer",
}
"""The outcomes of an answer, exactly one each, and their names in figures. With a counterfactual
image the first follows the image, the second keeps the fact.
"""


def counterfactual_outcomes(own: pd.DataFrame, swapped: pd.DataFrame) -> pd.DataFrame:
    """Adds a column for each of `OUTCOMES` to the judged answers `own`: 1.0 for the outcome of the
    answer, 0.0 for the others. NaN where one of the verdicts is missing.

    `own` and `swapped` are the same answers, row by row, judged by the original value and by the
    counterfactual one. An answer abstains when at least half of its verdicts in either table say
    so; it names a value by which it scores at least the middle of the judge's scale, and more than
    by the other. Anything else is a third value, both, or empty. Raises `VragError` for tables of
    different answers.
    """
    same = ["model", "query_id", "answer"]
    swapped = swapped.reset_index(drop=True).set_axis(own.index[: len(swapped)])
    if not own[same].equals(swapped[same]):
        raise VragError(
            f"counterfactual_outcomes: {len(own)} and {len(swapped)} rows that are not the same"
            " answers; expected one table of answers, judged twice."
        )
    middle, gain = scale_of(own).middle, swapped["score"] - own["score"]
    abstains = (own["abstained"] >= 0.5) | (swapped["abstained"] >= 0.5)
    found = {
        "counterfactual_value": ~abstains & (swapped["score"] >= middle) & (gain > 0),
        "original_value": ~abstains & (own["score"] >= middle) & (gain < 0),
        "abstains": abstains,
    }
    outcomes = pd.DataFrame(found, dtype=float)
    outcomes["other_answer"] = 1 - outcomes.sum(axis=1)
    return own.assign(**outcomes.mask(gain.isna()))


def rouge_mean_correlation(arms: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Spearman's ρ of mean accuracy and mean ROUGE, indexed by `by`: value in [−1, 1], n arms.

    `by` ["source", "model"] correlates within models, ["source", "setting", "k"] across them.

    `arms` has the columns source, model, setting, k, metric ("accuracy", "rouge") and value, one
    row per arm and metric. NaN for fewer than three arms, and where a mean never changes. No
    interval: the arms share their questions, and published means do not account for that.
    """
    wide = arms.pivot_table("value", ["source", *ARM], "metric", sort=False)
    groups = wide.groupby(list(by), sort=False)
    pairs = groups[["accuracy", "rouge"]].corr("spearman", min_periods=3)
    rho = pairs.xs("rouge", level="metric")["accuracy"]
    return pd.DataFrame({"value": rho, "n": groups.size()}).reindex(groups.size().index)


def rouge_figure(arms: pd.DataFrame, *, title: str, caption: str) -> Figure:
    """Draws a panel for each `source` of `arms` (as in `rouge_mean_correlation`, with n): a point
    for each arm, its mean accuracy across and its mean ROUGE-1 recall up, in percent, in a colour
    for each model, whose legend has its ρ.
    """
    from seaborn import scatterplot  # slow to import

    wide = arms.pivot_table("value", ["source", *ARM, "n"], "metric", sort=False).reset_index()
    rho = rouge_mean_correlation(arms, ["source", "model"])["value"]
    rho = rho.map("{:.2f}".format).str.replace("-", "−")
    figure, axes = new_figure(1, wide["source"].nunique(), height=2.9, sharex=True, sharey=True)
    for axis, (name, points) in zip(axes.flat, wide.groupby("source", sort=False), strict=True):
        words = points["model"] + ": ρ = " + points["model"].map(rho.xs(name))
        models = dict(zip(words, points["model"], strict=True))
        colors = dict(zip(models, model_colors(models.values()).values(), strict=True))
        scatterplot(points, x="accuracy", y="rouge", hue=words, palette=colors, ax=axis)
        axis.legend(title="", loc="upper left", handletextpad=0, labelspacing=0.2)
        axis.set_title(f"{name!s}\n{count_label(points['n'], 'questions')}")
        axis.set(xlim=(-3, 103), ylim=(-3, 103), xlabel="", ylabel="")
    figure.supxlabel("Accuracy (%); a point is one model in one setting", fontsize=8)
    figure.supylabel("ROUGE-1 recall (%)", fontsize=8)
    set_caption(figure, title, f"A point: a model in one setting at one k. {caption}")
    return figure
