"""Benchmarks with rewritten questions, and agreement of detectors on which questions need it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.papers.mrag_suite.ambiguity import AMBIGUOUS
from vrag_kit.papers.mrag_suite.detection import detector_kappa, flag_rates
from vrag_kit.papers.published import published
from vrag_kit.types import Benchmark

Statuses = Mapping[str, pd.DataFrame]
"""Maps a data set to a detector's result for its questions (`AmbiguityDetector.detect`)."""


def with_rewritten_questions(benchmark: Benchmark, rewrites: pd.DataFrame) -> Benchmark:
    """Replaces the text of questions by `rewrites` (query_id, question). Questions whose rewrite is
    "" (unparsed) stay as they are, and so do ids, answers and labels.

    Raises `VragError` for an unknown query.
    """
    told = dict(zip(rewrites["query_id"], rewrites["question"], strict=True))
    if unknown := [name for name in told if name not in benchmark.queries]:
        raise VragError(
            f"with_questions: query {unknown[0]!r} is not in {benchmark.name}; take rewrites of"
            " its own questions."
        )
    new = {name: words for name, words in told.items() if words}
    queries = dict(benchmark.queries)
    for name, words in new.items():
        queries[name] = replace(queries[name], text=words)
    named = json.dumps([benchmark.fingerprint, "said anew", sorted(new.items())])
    fingerprint = hashlib.sha256(named.encode()).hexdigest()
    return replace(benchmark, fingerprint=fingerprint, queries=queries)


def detection_agreement(assessed: Mapping[str, Statuses]) -> pd.DataFrame:
    """Computes the agreement of each two detectors, over the questions of all data sets. Columns:
    one, other, both (flagged by both), only_one, only_other, neither, value (Cohen's κ), ci_low,
    ci_high, n, n_failed (pairs with an unparsed status, in none of the counts).

    `assessed` maps a detector to its statuses. Intervals are over the groups of questions. With one
    detector there are no rows.
    """
    rows = []
    for one, other in combinations(assessed, 2):
        both = _together(assessed[one], assessed[other])
        known = both[(both["status"] != "") & (both["status_other"] != "")]
        first, second = known["status"] == AMBIGUOUS, known["status_other"] == AMBIGUOUS
        counts = (
            (first & second).sum(),
            (first & ~second).sum(),
            (~first & second).sum(),
            (~first & ~second).sum(),
        )
        found = detector_kappa(both["status"], both["status_other"], both["group"])
        numbers = (found.value, found.ci_low, found.ci_high, found.n, found.n_failed)
        rows.append((one, other, *map(int, counts), *numbers))
    columns = ["one", "other", "both", "only_one", "only_other", "neither"]
    return pd.DataFrame(rows, columns=[*columns, "value", "ci_low", "ci_high", "n", "n_failed"])


def flag_rates_by_detector(assessed: Mapping[str, Statuses]) -> pd.DataFrame:
    """Computes `flag_rates` of every detector, in percent, with the columns detector and
    `published`: the paper's share for that data set (Table 1), NaN if there is none.
    """
    tables = []
    for detector, statuses in assessed.items():
        tables.append(flag_rates(statuses).assign(detector=detector))
    table = pd.concat(tables, ignore_index=True)
    shares = {name: 100 * table[name] for name in ("value", "ci_low", "ci_high")}
    counts = published("mrag_suite", 1).pivot(index="dataset", columns="metric", values="value")
    share = 100 * counts["n_ambiguous"] / counts["n_full"]
    return table.assign(**shares, published=share.reindex(table["dataset"]).to_numpy(float))


def _together(one: Statuses, other: Statuses) -> pd.DataFrame:
    """The statuses of two assessors side by side: status, status_other, group."""
    parts = []
    for name, table in one.items():
        second = other[name].set_index("query_id")["status"].rename("status_other")
        part = table.join(second, on="query_id", how="inner")
        parts.append(part.assign(group=name + "/" + part["group"].astype(str)))
    return pd.concat(parts, ignore_index=True)
