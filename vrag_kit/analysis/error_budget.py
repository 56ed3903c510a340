"""Points lost between the question and the verdict, told apart by what one clue alone
earns in place of the images retrieved, net.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from vrag_kit.analysis.intervals import summarise
from vrag_kit.errors import VragError
from vrag_kit.frames import require_columns
from vrag_kit.judging.scale import Scale, scale_of
from vrag_kit.types import Benchmark

WON_BACK = "no clue retrieved: one would win back, net"
LOST_TOO = "no clue retrieved: lost with one too"
MISREAD = "clue retrieved: lost with it alone too"
WORDED = "clue retrieved: won back by the wording of one image, net"
COMPANY = "clue retrieved: won back by showing it alone, net"
PARTS = (WON_BACK, LOST_TOO, MISREAD, WORDED, COMPANY)
"""What an answer among k images lost. Where no clue is among them:

* `WON_BACK`: a clue alone in this k's wording − the answer;
* `LOST_TOO`: best − a clue alone in this k's wording.

Where there is one, the best ranked clue is held against it:

* `MISREAD`: best − that clue alone as one image;
* `WORDED`: that − the same clue alone in this k's wording;
* `COMPANY`: that − the answer.
"""
NET = (WON_BACK, WORDED, COMPANY)
"""The parts that are differences of two answers, and may be negative."""
DOUBT = "apart: spread of the judge's verdicts"
WORDINGS = ("one image", "several images")
"""How one clue alone is asked about: in the wording of a GT clue, and in that in which
several images are shown.
"""
_FOUND = [f"first_clue in {wording}" for wording in WORDINGS]
_ANY = [f"gt_clue in {wording}" for wording in WORDINGS]
_KEYS = ["model", "k", "query_id", "group"]


def first_clue_rank(benchmark: Benchmark, run: pd.DataFrame) -> pd.Series:
    """Rank of each query's best ranked clue, from 1; NaN where the run has none.

    Indexed by query_id.
    """
    require_columns(run, ["query_id", "doc_id", "rank"], "first_clue_rank")
    relevant = [
        doc_id in benchmark.relevant(query_id)
        for query_id, doc_id in zip(run["query_id"], run["doc_id"], strict=True)
    ]
    best = run[relevant].groupby("query_id")["rank"].min()
    return best.reindex(list(benchmark.queries)).astype(float)


def error_budget(
    retrieved: pd.DataFrame,
    alone: pd.DataFrame,
    ranks: pd.Series,
    *,
    one_wording: bool = False,
) -> pd.DataFrame:
    """The points that each top-k answer lost, in `PARTS`: model, k, query_id, group,
    part, metric, value; over the parts (metric "lost") they add up to the scale's best
    − score.

    `retrieved` are the judged top-k answers, `alone` those to one clue: the best ranked
    one (setting first_clue) and, in the mean over draws, any (gt_clue), each asked about
    in both of `WORDINGS`, as its column wording says. `ranks` are those of
    `first_clue_rank`. Those in `NET` keep their sign, so that chance, which helps either
    answer alike, cancels in the mean: a negative one says that the answer earns more
    than what it is held against. At k = 1 there is no company, and no row of it: the
    answer is itself that to a clue alone in this k's wording, and the clue that might
    help is asked about as one image.

    Where the judge gave several verdicts (judge_samples > 1), rows with the part `DOUBT`
    and the metric "spread" tell the standard deviation of those on each top-k answer; it
    is in no sum.

    A question for which a verdict is missing, for any model and k, is NaN for all: they
    are about the same questions, and what is left out is counted. A model and k without
    any verdict leave the others alone. Raises `VragError` where `alone` lacks a wording.

    Where a protocol words one picture and several alike (`one_wording`), `alone` needs no
    column of wordings, and there are no rows of `WORDED`.
    """
    require_columns(retrieved, ["setting", *_KEYS, "score", "spread"], "error_budget")
    scale = scale_of(retrieved)
    top_k = retrieved[retrieved["setting"] == "top_k"].groupby(_KEYS, sort=False)
    table = top_k[["score", "spread"]].mean().reset_index()
    if one_wording:
        alone = pd.concat([alone.assign(wording=name) for name in WORDINGS])
    table = table.merge(_alone(alone), on=["model", "query_id"], how="left")
    there = table["query_id"].map(ranks) <= table["k"]
    values = _parts(table, there, scale, one_wording)
    unknown = _unknown(table, pd.DataFrame(values).isna().any(axis=1))
    if table["spread"].notna().any():
        values[DOUBT] = table["spread"]
    rows = [_rows(table, part, value.mask(unknown), scale) for part, value in values.items()]
    budget = pd.concat(rows, ignore_index=True)
    nobody = (budget["part"] == COMPANY) & (budget["k"] == 1)
    unworded = (budget["part"] == WORDED) & one_wording
    return budget[~(nobody | unworded)].reset_index(drop=True)


def _rows(table: pd.DataFrame, part: str, value: pd.Series, scale: Scale) -> pd.DataFrame:
    """The rows of one part of the budget."""
    return table[_KEYS].assign(
        part=part,
        metric="spread" if part == DOUBT else "lost",
        value=value,
        worst=-scale.width if part in NET else 0.0,
        best=scale.width,
    )


def _alone(judged: pd.DataFrame) -> pd.DataFrame:
    """The mean scores of one clue alone: model, query_id, and a column "<setting> in
    <wording>" for each.
    """
    require_columns(judged, ["model", "setting", "query_id", "score"], "error_budget")
    wording = judged["wording"] if "wording" in judged else pd.Series("no wording", judged.index)
    arms = judged["setting"] + " in " + wording
    needed = [*_FOUND, *_ANY] if "first_clue" in set(judged["setting"]) else _ANY
    if missing := [arm for arm in needed if arm not in set(arms)]:
        raise VragError(
            f"error_budget: among the answers to one clue alone is no {missing[0]!r}; found"
            f" {', '.join(arms.unique()) or 'none'}. Ask in both wordings, and put the tables"
            " together with the column `wording`."
        )
    wide = judged.assign(arm=arms).pivot_table(
        index=["model", "query_id"], columns="arm", values="score"
    )
    return wide.reindex(columns=[*_FOUND, *_ANY]).reset_index()


def _parts(
    table: pd.DataFrame, there: pd.Series, scale: Scale, one_wording: bool
) -> dict[str, pd.Series]:
    """The points in each part, 0 where it does not apply; NaN where a score of it is
    missing.
    """
    single, (one, several) = table["k"] == 1, WORDINGS
    given = table[f"gt_clue in {several}"].mask(single, table[f"gt_clue in {one}"])
    found = table[f"first_clue in {one}"]
    in_words = table[f"first_clue in {several}"].mask(single, table["score"])  # alone already
    if one_wording:
        found = in_words
    return {
        WON_BACK: (given - table["score"]).mask(there, 0.0),
        LOST_TOO: (scale.best - given).mask(there, 0.0),
        MISREAD: (scale.best - found).where(there, 0.0),
        WORDED: (found - in_words).where(there, 0.0),
        COMPANY: (in_words - table["score"]).where(there, 0.0),
    }


def _unknown(table: pd.DataFrame, missing: pd.Series) -> pd.Series:
    """Whether each row's question lacks a value, for any model and k that has some."""
    of_arm = missing.groupby([table["model"], table["k"]])
    counts = missing & ~of_arm.transform("all")
    return missing | counts.groupby(table["query_id"]).transform("any")


def mean_budget(budget: pd.DataFrame, *, by: Sequence[str] = ("model", "k")) -> pd.DataFrame:
    """Mean points a question in each part, over all questions: `by`, part, metric
    ("lost", or "spread" of the judge), value, ci_low, ci_high, n, n_failed.
    """
    return summarise(budget, [*by, "part", "metric"])


def accuracy_given_clue(retrieved: pd.DataFrame, ranks: pd.Series) -> pd.DataFrame:
    """Accuracy apart for questions with and without a clue among the first k: model, k,
    clue ("yes" or "no"), metric, value on the judge's scale, ci_low, ci_high, n,
    n_failed. `ranks` are those of `first_clue_rank`.

    The two sets of questions differ, and change with k: with a clue are the easier ones
    for the retriever, which may be easier for the model too.
    """
    require_columns(retrieved, ["setting", *_KEYS, "score"], "accuracy_given_clue")
    rows, scale = retrieved[retrieved["setting"] == "top_k"], scale_of(retrieved)
    there = rows["query_id"].map(ranks) <= rows["k"]
    rows = rows.assign(clue=np.where(there, "yes", "no"))
    queries = rows.groupby(["model", "k", "clue", "query_id", "group"], sort=False)
    means = queries["score"].mean().rename("value").reset_index()
    means = means.assign(worst=scale.worst, best=scale.best)
    return summarise(means, ["model", "k", "clue"]).assign(metric="accuracy")
