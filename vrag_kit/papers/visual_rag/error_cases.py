"""Cases of incorrect answers although the model saw the evidence: one row per case, for reading
(Visual-RAG, appendix F).
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.analysis.means import ARM, column_means
from vrag_kit.judging.scale import SHARES, Scale, scale_of
from vrag_kit.plotting.images import answer_gallery
from vrag_kit.tables import require_columns
from vrag_kit.types import Benchmark, ordered

KINDS = ("correct", "partially correct", "abstained", "incorrect")
_PROMPT = ["model", "query_id", "setting", "k", "draw"]
_CASE = ["question", "references", "answer", "outcome", "verdict", "score", "doc_ids", "answer_id"]


def classify_answers(score: pd.Series, abstained: pd.Series, scale: Scale = SHARES) -> pd.Series:
    """Classifies every judged answer as one of `KINDS`; missing where there is no verdict.

    Correct has the best score, partially correct another above 0 (or above the scale's worst,
    where that is more); the rest abstains or is incorrect.
    """
    kinds = pd.Series("incorrect", index=score.index)
    kinds = kinds.mask(abstained > 0, "abstained")
    kinds = kinds.mask(score > scale.nothing, "partially correct")
    kinds = kinds.mask(score == scale.best, "correct")
    return kinds.where(score.notna())


def error_cases(
    judged: pd.DataFrame, benchmark: Benchmark, *, setting: str = "gt_clue"
) -> pd.DataFrame:
    """The answers of a setting that are not fully correct, the incorrect ones first: the
    columns model, query_id, setting, k, draw, question, references, answer, outcome, verdict,
    score, doc_ids and answer_id, as far as `judged` has them; empty when all are correct.

    references are the accepted answers, doc_ids the images as shown. Equal answers of a model to
    the same question are one case (its first draw). Failed answers are left out: they are counted
    elsewhere, with their reason.
    """
    require_columns(judged, [*_PROMPT, "score", "abstained", "doc_ids"], "error_cases")
    scale = scale_of(judged)
    rows = judged[(judged["setting"] == setting) & (judged["score"] < scale.best)]
    rows = rows.drop_duplicates(["model", "query_id", "answer"])
    queries = [benchmark.queries[query_id] for query_id in rows["query_id"]]
    rows = rows.assign(
        outcome=classify_answers(rows["score"], rows["abstained"], scale),
        question=[query.text for query in queries],
        references=[" | ".join(query.answers) for query in queries],
    )
    order = rows["outcome"].map({"incorrect": 0, "abstained": 1, "partially correct": 2})
    rows = rows.assign(_order=order).sort_values(["_order", "query_id", "model"], kind="stable")
    return rows[[name for name in (*_PROMPT, *_CASE) if name in rows]].reset_index(drop=True)


def sample_cases(cases: pd.DataFrame, most: int, *, seed: int = 0) -> pd.DataFrame:
    """Samples up to `most` cases, each of another question, in random order; the same for the same
    seed.

    Abstentions are left out: they claim nothing that an image could show.
    """
    claimed = cases[cases["outcome"] != "abstained"]
    named = claimed[["query_id", "model", "setting", "k", "draw"]]
    names = ["/".join(map(str, name)) for name in named.itertuples(index=False)]
    rows = dict(zip(names, claimed.index, strict=True))
    drawn = claimed.loc[[rows[name] for name in ordered(rows, seed, "cases")]]
    return drawn.drop_duplicates("query_id").head(most)


def outcome_shares(judged: pd.DataFrame) -> pd.DataFrame:
    """Share of the judged answers that are correct, partially correct, abstained or incorrect:
    model, setting, k, outcome, metric, value in [0, 1], ci_low, ci_high, n, count.

    n counts queries, count the answers of the kind. The shares of an arm add up to 1.
    Intervals are over groups, with the draws of a query kept together.
    """
    require_columns(judged, ["query_id", "group", "score", "abstained"], "outcome_shares")
    known = judged[judged["score"].notna()]
    kinds = classify_answers(known["score"], known["abstained"], scale_of(judged))
    marked = known.assign(**{kind: (kinds == kind).astype(float) for kind in KINDS})
    shares = column_means(marked, KINDS, by=ARM).rename(columns={"metric": "outcome"})
    counts = marked.groupby(ARM, sort=False)[list(KINDS)].sum().astype(int).reset_index()
    table = shares.merge(counts.melt(ARM, var_name="outcome", value_name="count"))
    columns = ["value", "ci_low", "ci_high", "n", "count", "outcome", "metric"]
    return table.assign(metric="share")[[*ARM, *columns]]


def error_gallery(
    benchmark: Benchmark, cases: pd.DataFrame, *, most: int = 8, seed: int = 0
) -> Figure:
    """Draws up to `most` of the cases (from `error_cases`), as `sample_cases` chooses them, each
    with its first image: the model's answer above; the question, the accepted answers and the model
    below.
    """
    chosen = sample_cases(cases, most, seed=seed)
    kinds = cases["outcome"].value_counts().reindex(KINDS, fill_value=0)
    counts = (
        f"{kinds['incorrect']} incorrect and {kinds['partially correct']} partially correct answers"
    )
    return answer_gallery(
        benchmark,
        chosen,
        most=most,
        title=f"{len(chosen)} of the {len(cases) - kinds['abstained']} answers, in quotes, that"
        " are not correct although the image shows the answer",
        caption=f"""{benchmark.name}: {len(chosen)} of the {counts} (random sample, seed {seed}),
        one a question; {kinds["abstained"]} more abstain.""",
    )
