"""The rows of a table of answers that hold one, and a check that they can be scored."""

from __future__ import annotations

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.types import Benchmark, Failure, Judgment, Query, Status


def answered(benchmark: Benchmark, answers: pd.DataFrame) -> pd.DataFrame:
    """The rows with the status "ok".

    Raises `VragError` when one of them is no text, or answers no query of `benchmark`.
    """
    good = answers[answers["status"] == "ok"]
    for row, query_id, answer in zip(good.index, good["query_id"], good["answer"], strict=True):
        if not isinstance(answer, str) or query_id not in benchmark.queries:
            raise VragError(
                f"row {row} of the answers: found query {query_id!r} and answer {answer!r} with the"
                f" status 'ok'; expected a query of {benchmark.name} and a text. A table that went"
                " through CSV must be read with keep_default_na=False."
            )
    return good


def hidden(query: Query) -> Judgment:
    """That a query whose answers are hidden cannot be judged."""
    words = f"query {query.query_id!r} has no accepted answer to compare with"
    return Judgment(answer_id="", label="", score=None, failure=Failure(Status.ERROR, words))
