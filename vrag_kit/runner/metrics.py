"""Retrieval metrics of a TREC run, as `vrag metrics` prints them."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence, Sized
from pathlib import Path

from vrag_kit.retrieval import evaluate, mean_metrics, read_qrels, read_run
from vrag_kit.retrieval.metrics import BY_DEPTH, DEPTH, shallow_queries, truncated_depth


def print_metrics(qrels: Path, run_file: Path, metrics: Sequence[str], *, as_json: bool) -> None:
    """Print the mean metrics of a run, including custom `metrics`. Notes on queries left out or
    counted as 0 go to stderr. There is no value where k exceeds the depth of the run
    (`truncated_depth`). Raises `VragError` for unreadable files and unknown metrics.
    """
    labels, results = read_qrels(qrels), read_run(run_file)
    per_query = evaluate(results, labels, metrics=metrics)
    deepest = truncated_depth(results, labels)
    beyond = per_query["k"] > (per_query["k"].max() if deepest is None else deepest)
    table = mean_metrics(per_query.assign(value=per_query["value"].mask(beyond)))
    if as_json:
        rows = json.loads(table.to_json(orient="records", double_precision=15))
        print(json.dumps(rows, indent=1))
    else:
        print(table.to_string(index=False, na_rep="no value"))
    ranked, shallow = set(results["query_id"]), shallow_queries(results, labels)
    irrelevant = [each for each in labels.values() if max(each.values(), default=0) < 1]
    _note(labels.keys() - ranked, "of the labels have no results in the run and count as 0")
    _note(ranked - labels.keys(), "of the run have no labels and are left out")
    _note(shallow, f"have fewer than {DEPTH} results and more labels, and so no {BY_DEPTH}")
    _note(irrelevant, "have no relevant document and are left out of the means")
    if beyond.any():
        ks = ", ".join(map(str, per_query.loc[beyond, "k"].unique()))
        note = f"the run has at most {deepest} results a query: no value at k = {ks}"
        print(f"note: {note}", file=sys.stderr)


def _note(queries: Sized, found: str) -> None:
    if queries:
        print(f"note: {len(queries)} queries {found}", file=sys.stderr)
