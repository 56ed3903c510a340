"""Error budget of top-k answers: the accuracy lost in each part, net, by comparison with answers to
one clue alone.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.analysis.report_tables import format_ci
from vrag_kit.analysis.strata import ALL
from vrag_kit.judging.scale import scale_of
from vrag_kit.plotting.panels import line_plot
from vrag_kit.plotting.style import display_name
from vrag_kit.types import Benchmark

WORDED = "clue retrieved: prompt for several images, net"
PARTS = {
    "missed_gain": "no clue retrieved, one would help",
    "missed_lost": "no clue retrieved, one would not help",
    "misread": "clue retrieved, but not read even alone",
    WORDED: "clue retrieved, lost by the prompt for several images",
    "distractors": "clue retrieved, lost among distractors",
}
"""The parts of the accuracy that an answer with k images lost, and their names in figures. Where no
clue is among these:

* missed_gain: a clue alone in this k's prompt − the answer;
* missed_lost: best − a clue alone in this k's prompt.

Where there is one, the answer is compared with that to the best ranked clue alone:

* misread: best − that clue alone as one image;
* `WORDED`: that − the same clue alone in this k's prompt;
* distractors: that − the answer.
"""
NET = ("missed_gain", WORDED, "distractors")
"""The parts that are differences of two answers, and may be negative."""
JUDGE_NOISE = "judge_noise"
ALONE_PROMPTS = ("one image", "several images")
"""The templates for one clue alone: that of a single GT clue, and that of several images."""
_CLUES = ("first_clue", "gt_clue")
_KEYS = ["model", "k", "query_id", "group"]


def first_clue_rank(benchmark: Benchmark, run: pd.DataFrame) -> pd.Series:
    """Rank of each query's best ranked clue, from 1; NaN where the run has none.

    Indexed by query_id.
    """
    pairs = zip(run["query_id"], run["doc_id"], strict=True)
    relevant = [doc_id in benchmark.relevant(query_id) for query_id, doc_id in pairs]
    best = run[relevant].groupby("query_id")["rank"].min()
    return best.reindex(list(benchmark.queries)).astype(float)


def error_budget(
    retrieved: pd.DataFrame, alone: pd.DataFrame, ranks: pd.Series, *, one_prompt: bool = False
) -> pd.DataFrame:
    """Splits the accuracy that each top-k answer lost into `PARTS`: model, k, query_id, group,
    part, metric, value. Over the parts (metric "accuracy_lost") the values add up to the scale's
    best − score.

    `retrieved` are the judged top-k answers, `alone` those to one clue: the best ranked one
    (setting first_clue) and, in the mean over draws, any (gt_clue), each with both templates of
    `ALONE_PROMPTS`, as in its column prompt. `ranks` are those of `first_clue_rank`. Parts in `NET`
    keep their sign: chance, which helps either answer equally, cancels in the mean, and a negative
    part means that the answer scores more than the one it is compared with. At k = 1 there are no
    distractors, and no rows of them: the answer is itself that to a clue alone, and the clue that
    might help has the template of one image.

    Where the judge gave several verdicts (judge_samples > 1), rows with the part `JUDGE_NOISE` and
    the metric "spread" give the standard deviation of those on each top-k answer; it is in no sum.

    A question that lacks a verdict for some model and k is NaN for all of them: means are over the
    same questions, and what is left out is counted. A model and k without any verdict do not affect
    the others. KeyError names an arm that `alone` lacks.

    Where a protocol has one template for one image and several (`one_prompt`), `alone` needs no
    column prompt, and there are no rows of `WORDED`.
    """
    scale = scale_of(retrieved)
    top_k = retrieved[retrieved["setting"] == "top_k"].groupby(_KEYS, sort=False)
    table = top_k[["score", "spread"]].mean().reset_index()
    if one_prompt:
        alone = pd.concat([alone.assign(prompt=name) for name in ALONE_PROMPTS])
    table = table.merge(_alone(alone), on=["model", "query_id"], how="left")
    score, single = table["score"], table["k"] == 1
    has_clue = table["query_id"].map(ranks) <= table["k"]
    one, several = ALONE_PROMPTS
    given = table[f"gt_clue in {several}"].mask(single, table[f"gt_clue in {one}"])
    in_prompt = table[f"first_clue in {several}"].mask(single, score)  # it is that answer
    found = in_prompt if one_prompt else table[f"first_clue in {one}"]
    parts = pd.DataFrame(
        {
            "missed_gain": (given - score).mask(has_clue, 0.0),
            "missed_lost": (scale.best - given).mask(has_clue, 0.0),
            "misread": (scale.best - found).where(has_clue, 0.0),
            WORDED: (found - in_prompt).where(has_clue, 0.0),
            "distractors": (in_prompt - score).where(has_clue, 0.0),
        }
    )
    parts = parts.drop(columns=WORDED) if one_prompt else parts
    missing = parts.isna().any(axis=1)  # counted where another question of the arm has values
    counted = missing & ~missing.groupby([table["model"], table["k"]]).transform("all")
    if table["spread"].notna().any():
        parts[JUDGE_NOISE] = table["spread"]
    parts = parts.mask(missing | counted.groupby(table["query_id"]).transform("any"))
    budget = table[_KEYS].join(parts).melt(_KEYS, var_name="part")
    budget["metric"] = np.where(budget["part"] == JUDGE_NOISE, "spread", "accuracy_lost")
    budget["score_min"] = np.where(budget["part"].isin(NET), -scale.width, 0.0)
    budget["score_max"] = scale.width
    absent = (budget["part"] == "distractors") & (budget["k"] == 1)
    return budget[~absent].reset_index(drop=True)


def _alone(judged: pd.DataFrame) -> pd.DataFrame:
    """The mean scores of one clue alone: model, query_id, and a column "<setting> in
    <prompt>" for each; NaN for the best ranked clue where no question has one.
    """
    arms = judged["setting"] + " in " + judged["prompt"]
    wide = judged.assign(arm=arms).pivot_table("score", ["model", "query_id"], "arm")
    needed = [" in ".join(arm) for arm in product(_CLUES, ALONE_PROMPTS)]
    if _CLUES[0] not in set(judged["setting"]):
        wide[needed[: len(ALONE_PROMPTS)]] = np.nan
    return wide[needed].reset_index()


def error_budget_figure(budget: pd.DataFrame, gold: str = "clue", note: str = "") -> Figure:
    """Draws a panel for each part: the accuracy lost over k, in points, a colour for each model.
    Takes `to_percent(cluster_means(…))` of `error_budget`, by model, stratum, k, part and metric;
    draws the rows of all questions. The title names the largest loss at the largest k; `gold` is
    what a benchmark calls an image that shows the answer. The caption ends with `note`.

    Judge noise and parts that are 0 everywhere are not drawn.
    """
    parts = budget[budget["part"].isin(list(PARTS)) & (budget["stratum"] == ALL)]
    named = {part: name.replace("clue", gold) for part, name in PARTS.items()}
    largest = parts["value"].abs().groupby(parts["part"]).max()
    absent = "; ".join(named[part] for part in PARTS if largest.get(part) == 0)
    net = "; ".join(named[part] for part in NET if largest.get(part, 0) > 0)
    last = parts[parts["k"] == parts["k"].max()]
    most = last.sort_values("value", na_position="first").iloc[-1]
    size = format_ci(*most[["value", "ci_low", "ci_high"]], decimals=0)
    where = f"{named[most['part']]} ({display_name(most['model'])})"
    return line_plot(
        parts[parts["part"].map(largest) > 0],
        x="k",
        xlabel="Retrieved images, k",
        ylabel="Accuracy lost (points; below 0: gained)",
        panels="part",
        names={part: name.capitalize() for part, name in named.items()},
        limits=(None, None),
        height=1.9,
        title=f"The largest loss at k = {most['k']} is {size.replace(' [', ' points [')}: {where}",
        caption="Parts of the accuracy that answers to the first k images lost, of all questions."
        f" Net differences of two answers: {net}. Below 0 the answer scores higher than the one it"
        " is compared with. At k = 1 there are no distractors."
        f"{absent and f' Not drawn, 0 at every k: {absent}.'}{note}",
    )
