"""Ambiguous questions of the suite: made so on purpose, so that it is known which are; detected, by
a rule or by models that parameters name; and rewritten.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from vrag_kit.config import Entry
from vrag_kit.papers.mrag_suite import ambiguity as paper
from vrag_kit.synthetic.mrag_suite.facts import PARTS
from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.traits import stream
from vrag_kit.types import Benchmark, Query, QueryId
from vrag_kit.workspace import Workspace

RULE = "rule"
"""The detector that knows the guide's wording, and no other."""
TRUTH = "gold label"
"""The detector with the questions that were made ambiguous."""
PUT_BACK = "oracle"
"""The rewriter that restores the original question."""
SUBJECT, PART = "subject", "part"
_NOUNS = {kind.noun: kind.name for kind in KINDS.values()}
_NAME = re.compile(
    r"(?:the )?(?:[A-Z]\w+ )+?(?P<noun>[A-Z]\w+) \((?:scientific name: )?[A-Z][a-z]+ [a-z]+\)"
)
_OF_PART = re.compile(rf"\bthe (?:{'|'.join(PARTS)}) of (?=[A-Z])")
_HINT = re.compile(r", (?:which|that) [^,?]*\?$")
_LOOK = re.compile(r"\bcolors?\b|\bpattern\b|\blooks? like\b")
_A_PART = re.compile(r"\bthe (?!main color of)[a-z]+(?: [a-z]+)* of (?:the )?(?:[A-Z]|this\b)")
_NAMED = re.compile(r"\([^)]*[A-Z][a-z]+ [a-z]+\)|\b[A-Z]\w+ [A-Z]\w+")


def make_ambiguous(benchmark: Benchmark, share: float) -> tuple[Benchmark, dict[QueryId, str]]:
    """Return (benchmark, query → what its question lacks now, "" for those left clear).

    Of the queries in a random order, which their ids determine, a `share` loses in turn the
    species' name ("of this moth") or the part; one that has no part loses the name. Ids, answers
    and labels stay. Questions about an image of their own, which need no name, stay clear and are
    not part of the share.
    """
    losses = {query_id: _droppable(query) for query_id, query in benchmark.queries.items()}
    candidates = [query_id for query_id, ways in losses.items() if ways]
    order = sorted(candidates, key=lambda query_id: stream("ambiguous", 0, query_id).random())
    lacks = dict.fromkeys(benchmark.queries, "")
    queries = dict(benchmark.queries)
    for number, query_id in enumerate(order[: round(share * len(order))]):
        query, ways = queries[query_id], losses[query_id]
        lacks[query_id] = ways[number % len(ways)]
        queries[query_id] = replace(query, text=_without(query.text, lacks[query_id]))
    return benchmark.derive(f"ambiguous/{share}/0", queries=queries), lacks


def detect_by_rule(query: Query) -> str:
    """Return why a question is ambiguous: it names neither species nor image, or asks for a look
    without a part; "" for a clear one.

    It is a rule about the guide's wording, no reader of questions.
    """
    text = query.text
    if query.image is None and not _NAMED.search(text):
        return "The question does not say which species it is about."
    if _LOOK.search(text) and not _A_PART.search(text):
        return "The question does not say which part is meant."
    return ""


def _droppable(query: Query) -> tuple[str, ...]:
    """What a question can lose."""
    if query.image is not None or not _NAME.search(query.text):
        return ()
    has_part = _LOOK.search(query.text) and _A_PART.search(query.text)
    return (SUBJECT, PART) if has_part else (SUBJECT,)


def _without(text: str, what: str) -> str:
    if what == SUBJECT:
        return _NAME.sub(lambda found: f"this {_NOUNS.get(found['noun'], 'species')}", text)
    bare = _OF_PART.sub("", _HINT.sub("?", text))
    return bare.replace(" do ", " does ").replace("What color are ", "What color is ")


def open_ambiguous(
    suite: Mapping[str, Benchmark], share: float
) -> tuple[dict[str, Benchmark], pd.DataFrame]:
    """Return (data sets of which a `share` of the questions was made ambiguous, detections by
    `TRUTH` with what was left out as explanation), as in `detect_ambiguity`. With a share of 0 the
    data sets are as they are, without detections. See `make_ambiguous`.
    """
    columns = ["dataset", "detector", *paper.DETECTION]
    if not share:
        return dict(suite), pd.DataFrame(columns=columns)
    changed, tables = {}, []
    for name, benchmark in suite.items():
        changed[name], lacks = make_ambiguous(benchmark, share)
        tables.append(_detections(benchmark, lacks).assign(dataset=name, detector=TRUTH))
    return changed, pd.concat(tables, ignore_index=True)[columns]


def _detections(benchmark: Benchmark, reasons: Mapping[QueryId, str]) -> pd.DataFrame:
    """Query → why it is ambiguous, "" for a clear one, as detections."""
    rows = []
    for query_id, why in reasons.items():
        status = paper.AMBIGUOUS if why else paper.CLEAR
        rows.append((query_id, benchmark.queries[query_id].group, status, why, ""))
    return pd.DataFrame(rows, columns=paper.DETECTION)


def detect_ambiguity(
    detectors: Sequence[Entry], suite: Mapping[str, Benchmark], at: Workspace
) -> pd.DataFrame:
    """Return the statuses of all data sets' questions by each detector: "rule" (`detect_by_rule`),
    or a model with the paper's prompt. Columns: dataset, detector, and those of
    `detect_ambiguous`. Raises as `load_detector` does.
    """
    tables = []
    for entry in detectors:
        model = None if entry == RULE else paper.load_detector(entry, at)
        for dataset, benchmark in suite.items():
            if model is None:
                reasons = {name: detect_by_rule(query) for name, query in benchmark.queries.items()}
                table = _detections(benchmark, reasons).assign(detector=RULE)
            else:
                table = paper.detect_ambiguous(model, benchmark, at).assign(detector=model.name)
            tables.append(table.assign(dataset=dataset))
    return pd.concat(tables, ignore_index=True)


def rewrite_questions(
    suite: Mapping[str, Benchmark],
    detections: pd.DataFrame,
    rewriter: Entry,
    at: Workspace,
    *,
    originals: Mapping[str, Benchmark],
) -> tuple[dict[str, Benchmark], pd.DataFrame]:
    """Return (data sets in which the questions that one detector flagged are rewritten, the
    rewrites: dataset, query_id, original, question, detail).

    `rewriter` is a model, which is shown the gold evidence and the accepted answer, or `PUT_BACK`:
    then a flagged question is worded as in `originals`.
    """
    model = None if rewriter == PUT_BACK else paper.load_detector(rewriter, at)
    rewritten, tables = {}, []
    for name, benchmark in suite.items():
        found = detections[detections["dataset"] == name]
        if model is not None:
            table = paper.rewrite_ambiguous(model, benchmark, found, at)
        else:
            flagged = found.loc[found["status"] == paper.AMBIGUOUS, "query_id"]
            table = pd.DataFrame({"query_id": flagged, "detail": ""})
            table["original"] = [benchmark.queries[each].text for each in flagged]
            table["question"] = [originals[name].queries[each].text for each in flagged]
        rewritten[name] = paper.with_rewritten_questions(benchmark, table)
        tables.append(table.assign(dataset=name))
    return rewritten, pd.concat(tables, ignore_index=True)
