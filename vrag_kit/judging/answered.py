"""Select the successful answers of a table, and check that they can be scored."""

from __future__ import annotations

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.types import Benchmark, Failure, Judgment, Query, Status


def ok_answers(benchmark: Benchmark, answers: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the status "ok".

    Raises `VragError` if an answer is no text, or its query is not in `benchmark`.
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


def no_reference_failure(query: Query) -> Judgment:
    """Return a failed verdict: the query has no accepted answer to compare with."""
    words = f"query {query.query_id!r} has no accepted answer to compare with"
    return Judgment(answer_id="", label="", score=None, failure=Failure(Status.ERROR, words))
