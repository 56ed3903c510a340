"""Where the points are lost between the question and the verdict: retrieval, eyesight,
wording, company, or the judge.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from vrag_kit.analysis.intervals import summarise
from vrag_kit.errors import VragError
from vrag_kit.frames import JUDGED, RUN
from vrag_kit.judging.scale import Scale, scale_of
from vrag_kit.types import Benchmark

RECOVERABLE = "no clue retrieved, one would help"
HOPELESS = "no clue retrieved, none would help"
MISREAD = "clue misread even alone"
WORDED = "clue alone misread in this wording"
IGNORED = "clue ignored or contradicted"
DOUBT = "judge in doubt"
CAUSES = (RECOVERABLE, HOPELESS, MISREAD, WORDED, IGNORED, DOUBT)
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
    RUN.check(run, ["query_id", "doc_id", "rank"], "first_clue_rank")
    relevant = [
        doc_id in benchmark.relevant(query_id)
        for query_id, doc_id in zip(run["query_id"], run["doc_id"], strict=True)
    ]
    best = run[relevant].groupby("query_id")["rank"].min()
    return best.reindex(list(benchmark.queries)).astype(float)


def error_budget(retrieved: pd.DataFrame, alone: pd.DataFrame, ranks: pd.Series) -> pd.DataFrame:
    """The points that each top-k answer lost, by cause: model, k, query_id, group,
    cause, value; over the causes they add up to the scale's best − score.

    `retrieved` are the judged top-k answers, `alone` those to one clue: the best ranked
    one (setting first_clue) and, in the mean over draws, any (gt_clue), each asked about
    in both of `WORDINGS`, as its column wording says. `ranks` are those of
    `first_clue_rank`. In this order, a lost point is put down to

    * the judge, where its verdicts on this answer, or on one to the best ranked clue,
      differ (which takes judge_samples > 1);
    * the retriever, where no clue is among the first k: as far as a clue alone, in this
      k's wording, recovers the point. What it does not, no retriever can win back;
    * the model's eyes: what is lost with the best ranked clue alone too, in either
      wording;
    * the wording: what is lost with that clue alone only in this k's wording;
    * company: the rest. So it is held against the same clue in the same words.

    At k = 1 there is no company: the answer is itself that to a clue alone in this k's
    wording, and the clue that might help is asked about as one image. A question for
    which a verdict is missing, for any model and k, is NaN for all: they are about the
    same questions, and what is left out is counted. A model and k without any verdict
    leave the others alone. Raises `VragError` where `alone` lacks a wording.
    """
    JUDGED.check(retrieved, ["setting", *_KEYS, "score"], "error_budget")
    scale = scale_of(retrieved)
    table = _scores(retrieved[retrieved["setting"] == "top_k"], _KEYS)
    table = table.merge(_alone(alone), on=["model", "query_id"], how="left")
    there = table["query_id"].map(ranks) <= table["k"]
    shares = _shares(table, there, scale)
    unknown = _unknown(table, pd.DataFrame(shares).isna().any(axis=1))
    parts = [
        table[_KEYS].assign(cause=cause, value=shares[cause].mask(unknown)) for cause in CAUSES
    ]
    return pd.concat(parts, ignore_index=True).assign(worst=0.0, best=scale.width)


def _scores(judged: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Mean score and largest spread of the answers to each query."""
    queries = judged.groupby(by, sort=False)
    return queries.agg(score=("score", "mean"), spread=("spread", "max")).reset_index()


def _alone(judged: pd.DataFrame) -> pd.DataFrame:
    """The scores of one clue alone: model, query_id, a column "<setting> in <wording>"
    for each, and "spread alone", the largest of the best ranked clue's verdicts.
    """
    JUDGED.check(judged, ["model", "setting", "query_id", "score"], "error_budget")
    wording = judged["wording"] if "wording" in judged else pd.Series("no wording", judged.index)
    arms = judged["setting"] + " in " + wording
    needed = [*_FOUND, *_ANY] if "first_clue" in set(judged["setting"]) else _ANY
    if missing := [arm for arm in needed if arm not in set(arms)]:
        raise VragError(
            f"error_budget: among the answers to one clue alone is no {missing[0]!r}; found"
            f" {', '.join(arms.unique()) or 'none'}. Ask in both wordings, and put the tables"
            " together with the column `wording`."
        )
    queries = ["model", "query_id"]
    means = _scores(judged.assign(arm=arms), [*queries, "setting", "arm"])
    wide = means.pivot(index=queries, columns="arm", values="score")
    wide = wide.reindex(columns=[*_FOUND, *_ANY])
    found = means[means["setting"] == "first_clue"].groupby(queries)["spread"].max()
    return wide.join(found.rename("spread alone")).reset_index()


def _shares(table: pd.DataFrame, there: pd.Series, scale: Scale) -> dict[str, pd.Series]:
    """The points lost to each cause; NaN where a score that decides it is missing."""
    lost, single = scale.best - table["score"], table["k"] == 1
    one, several = WORDINGS
    given = table[f"gt_clue in {several}"].mask(single, table[f"gt_clue in {one}"])
    found = table[f"first_clue in {several}"].mask(single, table["score"])  # it is alone already
    doubt = (table["spread"] > 0) | (there & (table["spread alone"] > 0))
    hopeless = _lesser(lost, scale.best - given)
    in_words = _lesser(lost, scale.best - found)
    misread = _lesser(in_words, scale.best - table[f"first_clue in {one}"])
    away, seen = ~there & ~doubt, there & ~doubt
    return {
        RECOVERABLE: (lost - hopeless).where(away, 0.0),
        HOPELESS: hopeless.where(away, 0.0),
        MISREAD: misread.where(seen, 0.0),
        WORDED: (in_words - misread).where(seen, 0.0),
        IGNORED: (lost - in_words).where(seen, 0.0),
        DOUBT: lost.where(doubt, 0.0),
    }


def _lesser(first: pd.Series, second: pd.Series) -> pd.Series:
    """The smaller of two, row by row; NaN where one is missing."""
    return pd.concat([first, second], axis=1).min(axis=1, skipna=False)


def _unknown(table: pd.DataFrame, missing: pd.Series) -> pd.Series:
    """Whether each row's question lacks a value, for any model and k that has some."""
    of_arm = missing.groupby([table["model"], table["k"]])
    counts = missing & ~of_arm.transform("all")
    return missing | counts.groupby(table["query_id"]).transform("any")


def mean_budget(budget: pd.DataFrame, *, by: Sequence[str] = ("model", "k")) -> pd.DataFrame:
    """Mean points lost a question to each cause: `by`, cause, metric, value, ci_low,
    ci_high, n, n_failed.
    """
    return summarise(budget, [*by, "cause"]).assign(metric="lost")


def accuracy_given_clue(retrieved: pd.DataFrame, ranks: pd.Series) -> pd.DataFrame:
    """Accuracy apart for questions with and without a clue among the first k: model, k,
    clue ("yes" or "no"), metric, value on the judge's scale, ci_low, ci_high, n,
    n_failed. `ranks` are those of `first_clue_rank`.

    The two sets of questions differ, and change with k: with a clue are the easier ones
    for the retriever, which may be easier for the model too.
    """
    JUDGED.check(retrieved, ["setting", *_KEYS, "score"], "accuracy_given_clue")
    rows, scale = retrieved[retrieved["setting"] == "top_k"], scale_of(retrieved)
    there = rows["query_id"].map(ranks) <= rows["k"]
    rows = rows.assign(clue=np.where(there, "yes", "no"))
    queries = rows.groupby(["model", "k", "clue", "query_id", "group"], sort=False)
    means = queries["score"].mean().rename("value").reset_index()
    means = means.assign(worst=scale.worst, best=scale.best)
    return summarise(means, ["model", "k", "clue"]).assign(metric="accuracy")
