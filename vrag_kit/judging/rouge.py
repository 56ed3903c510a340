"""ROUGE-1 recall as in the package `rouge`, version 1.0.1: Visual-RAG's second metric of an answer
(Tables 14 and 16).

The package splits at full stops and white space, and nothing else: "black," and "Black" differ from
"black". A word counts once, whatever its frequency. Values of other ROUGE packages are not
comparable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from vrag_kit.judging.answered import ok_answers
from vrag_kit.types import Benchmark, Status


def rouge_recall(answer: str, references: Sequence[str]) -> float:
    """Return the share of a reference's distinct words that the answer has, in [0, 1].
    Of several references the highest counts, which is our choice: the paper does not say.

    Texts are not preprocessed. The package rejects texts that are empty or only full stops: here
    such an answer has 0, and such a reference is left out. NaN without any other reference.

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


def add_rouge(benchmark: Benchmark, answers: pd.DataFrame) -> pd.DataFrame:
    """Add the column rouge to a table of answers, judged or not: `rouge_recall`, in [0, 1].
    NaN where the call failed or the query's answers are hidden. An empty or truncated answer has 0.

    Equal answers to a query are scored once. Raises `VragError` for a row that answers no query.
    """
    good = ok_answers(benchmark, answers)
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
