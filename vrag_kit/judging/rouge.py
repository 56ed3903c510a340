"""ROUGE-1 recall, as the package `rouge`, version 1.0.1, counts it: the paper's second
measure of an answer (Visual-RAG, Tables 14 and 16).

The package splits at full stops and white space, and nothing else: "black," is another
word than "black", and so is "Black". A word counts once, however often it stands there.
Numbers of other ROUGE packages are not comparable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from vrag_kit.judging.answered import answered
from vrag_kit.types import Benchmark, Status


def rouge_recall(answer: str, references: Sequence[str]) -> float:
    """The share of a reference's distinct words that the answer holds, in [0, 1]; of
    several references the highest, which is our choice: the paper does not say.

    Texts go in as they are. The package refuses texts that are empty or only full
    stops: here such an answer has 0, and such a reference is left out. NaN without any
    other reference: there is nothing to recall.

    Lin (2004), "ROUGE: A Package for Automatic Evaluation of Summaries".
    """
    from rouge import Rouge

    worded = [reference for reference in references if _has_words(reference)]
    if not worded:
        return math.nan
    if not _has_words(answer):
        return 0.0
    scores = Rouge(metrics=["rouge-1"], stats=["r"]).get_scores([answer] * len(worded), worded)
    return max(float(score["rouge-1"]["r"]) for score in scores)


def rouge_all(benchmark: Benchmark, answers: pd.DataFrame) -> pd.DataFrame:
    """The table of answers, judged or not, with the column rouge added: `rouge_recall`
    in [0, 1], NaN where the call failed or the query's answers are hidden. An answer that
    is empty or was cut off has 0.

    Equal answers to a query are compared once. Raises `VragError` for a row that is no
    answer to a query.
    """
    good = answered(benchmark, answers)
    pairs = set(zip(good["query_id"], good["answer"], strict=True))
    found = {
        (query_id, answer): rouge_recall(answer, benchmark.queries[query_id].answers)
        for query_id, answer in pairs
    }
    shares = []
    for query_id, answer, status in answers[["query_id", "answer", "status"]].itertuples(
        index=False
    ):
        silent = status != "ok" and Status(status).is_answer
        nothing = 0.0 if silent and benchmark.queries[query_id].answers else math.nan
        shares.append(found.get((query_id, answer), math.nan) if status == "ok" else nothing)
    return answers.assign(rouge=shares)


def _has_words(text: str) -> bool:
    return bool(text.strip("."))
