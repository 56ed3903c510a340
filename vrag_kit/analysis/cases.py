"""Answers that are wrong although the model saw what it needed: one row a case, to be
read one by one (Visual-RAG, appendix F).
"""

from __future__ import annotations

import pandas as pd

from vrag_kit.analysis.accuracy import ARM
from vrag_kit.analysis.intervals import summarise
from vrag_kit.frames import require_columns
from vrag_kit.judging.scale import SHARES, Scale, scale_of
from vrag_kit.order import ordered
from vrag_kit.types import Benchmark

KINDS = ("right", "partly right", "declined", "wrong")
COLUMNS = [
    "model",
    "query_id",
    "setting",
    "k",
    "draw",
    "question",
    "references",
    "answer",
    "kind",
    "verdict",
    "score",
    "doc_ids",
]
_ANSWER = ["model", "query_id", "setting", "k", "draw", "score", "abstained", "doc_ids"]


def kind_of(score: pd.Series, abstained: pd.Series, scale: Scale = SHARES) -> pd.Series:
    """One of `KINDS` for every judged answer; missing where there is no verdict.

    Right has the best score, partly right another above 0 (or above the scale's worst,
    where that is more); the rest declines or is wrong.
    """
    kinds = pd.Series("wrong", index=score.index)
    kinds = kinds.mask(abstained > 0, "declined")
    kinds = kinds.mask(score > scale.nothing, "partly right")
    kinds = kinds.mask(score == scale.best, "right")
    return kinds.where(score.notna())


def error_cases(
    judged: pd.DataFrame, benchmark: Benchmark, *, setting: str = "gt_clue"
) -> pd.DataFrame:
    """The answers of a setting that are not fully right, the wrong ones first: the
    columns `COLUMNS`; empty when all are right.

    references are the accepted answers, doc_ids the images as shown, which each row of
    answers carries. Equal answers of a model to the same question are one case (its
    first draw). Failed answers are no cases: they are counted elsewhere, with their
    reason.
    """
    require_columns(judged, _ANSWER, "error_cases")
    scale = scale_of(judged)
    rows = judged[(judged["setting"] == setting) & (judged["score"] < scale.best)]
    rows = rows.drop_duplicates(["model", "query_id", "answer"])
    queries = [benchmark.queries[query_id] for query_id in rows["query_id"]]
    rows = rows.assign(
        kind=kind_of(rows["score"], rows["abstained"], scale),
        question=[query.text for query in queries],
        references=[" | ".join(query.answers) for query in queries],
    )
    order = rows["kind"].map({"wrong": 0, "declined": 1, "partly right": 2})
    rows = rows.assign(_order=order).sort_values(["_order", "query_id", "model"], kind="stable")
    return rows[COLUMNS].reset_index(drop=True)


def sample_cases(cases: pd.DataFrame, most: int, *, seed: int = 0) -> pd.DataFrame:
    """Up to `most` of the cases that claim something, each of another question, in
    random order; the same for the same seed.

    Declined ones are left out: that nothing was claimed needs no picture.
    """
    claimed = cases[cases["kind"] != "declined"]
    named = claimed[["query_id", "model", "setting", "k", "draw"]]
    names = ["/".join(map(str, name)) for name in named.itertuples(index=False)]
    rows = dict(zip(names, claimed.index, strict=True))
    drawn = claimed.loc[[rows[name] for name in ordered(rows, seed, "cases")]]
    return drawn.drop_duplicates("query_id").head(most)


def kinds_of_answers(judged: pd.DataFrame) -> pd.DataFrame:
    """Share of the judged answers that are right, partly right, declined or wrong:
    model, setting, k, kind, metric, value in [0, 1], ci_low, ci_high, n, count.

    n counts queries, count the answers of the kind. The shares of an arm add up to 1.
    Intervals are over groups, with the draws of a query kept together.
    """
    require_columns(judged, ["query_id", "group", "score", "abstained"], "kinds_of_answers")
    known = judged[judged["score"].notna()]
    kinds = kind_of(known["score"], known["abstained"], scale_of(judged))
    tables = []
    for kind in KINDS:
        marked = known.assign(value=(kinds == kind).astype(float))
        queries = marked.groupby([*ARM, "query_id", "group"], sort=False)
        shares = queries["value"].mean().reset_index()
        table = summarise(shares, ARM).drop(columns="n_failed")
        counts = marked.groupby(ARM, sort=False)["value"].sum().astype(int).rename("count")
        table = table.merge(counts.reset_index(), on=ARM)
        tables.append(table.assign(kind=kind, metric="share"))
    return pd.concat(tables, ignore_index=True)
