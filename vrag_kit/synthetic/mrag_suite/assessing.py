"""Which questions of a suite are ambiguous, as parameters name who says so, and the same
questions said anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from vrag_kit.config import Entry
from vrag_kit.papers.mrag_suite.ambiguity import AMBIGUOUS, CLEAR
from vrag_kit.papers.mrag_suite.detection import detect_with_rule, load_ambiguity_detector
from vrag_kit.papers.mrag_suite.rewriting import with_rewritten_questions
from vrag_kit.synthetic.mrag_suite.ambiguity import detect_by_rule, make_ambiguous
from vrag_kit.types import Benchmark

RULE = "rule"
"""The assessor that knows the guide's wording, and no other."""
TRUTH = "gold label"
"""The assessor who made the questions ambiguous."""
PUT_BACK = "oracle"
"""The rewriter that knows what was left out."""
Assessed = dict[str, dict[str, pd.DataFrame]]
"""Assessor → data set → statuses, in the columns of `Assessor.detect`."""


def open_ambiguous(
    suite: Mapping[str, Benchmark], share: float, *, seed: int = 0
) -> tuple[dict[str, Benchmark], Assessed]:
    """(data sets of which a `share` of the questions was made ambiguous, what was left out
    as an assessor's statuses); with a share of 0 the data sets as they are, and no such
    assessor, as nobody knows. See `make_ambiguous`.
    """
    if share == 0:
        return dict(suite), {}
    asked, truth = {}, {}
    for name, benchmark in suite.items():
        asked[name], lacks = make_ambiguous(benchmark, share=share, seed=seed)
        rows = []
        for query_id, query in benchmark.queries.items():
            status = AMBIGUOUS if lacks[query_id] else CLEAR
            rows.append((query_id, query.group, status, lacks[query_id], ""))
        columns = ["query_id", "group", "status", "explanation", "detail"]
        truth[name] = pd.DataFrame(rows, columns=columns)
    return asked, {TRUTH: truth}


def detect_ambiguity(
    assessors: Sequence[Entry],
    suite: Mapping[str, Benchmark],
    answers_dir: Path | str,
    *,
    hardware: Mapping[str, Any] | None = None,  # a notebook's parameter: values of any type
) -> Assessed:
    """What each assessor says of each data set's questions: "rule" (`detect_by_rule`), or
    a model, asked in the paper's words. Raises as `load_ambiguity_detector` does.
    """
    found: Assessed = {}
    for entry in assessors:
        if entry == RULE:
            by_rule = {
                name: detect_with_rule(benchmark, detect_by_rule)
                for name, benchmark in suite.items()
            }
            found[RULE] = by_rule
            continue
        assessor = load_ambiguity_detector(entry, answers_dir, hardware=hardware)
        found[assessor.name] = {name: assessor.detect(each) for name, each in suite.items()}
    return found


def rewrite_questions(
    suite: Mapping[str, Benchmark],
    statuses: Mapping[str, pd.DataFrame],
    rewriter: Entry,
    answers_dir: Path | str,
    *,
    originals: Mapping[str, Benchmark],
    hardware: Mapping[str, Any] | None = None,  # a notebook's parameter: values of any type
) -> tuple[dict[str, Benchmark], pd.DataFrame]:
    """(data sets in which flagged questions are said anew, the rewrites: dataset,
    query_id, original, question, detail).

    `rewriter` is a model, which is shown the gold evidence and the accepted answer, or "put
    back": then a flagged question is worded as in `originals`.
    """
    model = None
    if rewriter != PUT_BACK:
        model = load_ambiguity_detector(rewriter, answers_dir, hardware=hardware)
    anew, tables = {}, []
    for name, benchmark in suite.items():
        if model is None:
            table = _put_back(benchmark, originals[name], statuses[name])
        else:
            table = model.rewrite_queries(benchmark, statuses[name])
        anew[name] = with_rewritten_questions(benchmark, table)
        tables.append(table.assign(dataset=name))
    rewrites = pd.concat(tables, ignore_index=True)
    return anew, rewrites[["dataset", "query_id", "original", "question", "detail"]]


def _put_back(asked: Benchmark, original: Benchmark, statuses: pd.DataFrame) -> pd.DataFrame:
    """Flagged questions as they were, in the columns of `Assessor.rewrite_queries`."""
    rows = []
    for query_id in statuses[statuses["status"] == AMBIGUOUS]["query_id"]:
        words = original.queries[query_id].text
        rows.append((query_id, asked.queries[query_id].text, words, ""))
    return pd.DataFrame(rows, columns=["query_id", "original", "question", "detail"])
