"""Ambiguous questions of the suite: made so on purpose, so that it is known which are; detected, by
a rule or by models that parameters name; and rewritten.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from vrag_kit.config import Entry
from vrag_kit.papers import mrag_suite as paper
from vrag_kit.papers.mrag_suite.ambiguity import AMBIGUOUS, CLEAR
from vrag_kit.synthetic.mrag_suite.facts import PARTS
from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.traits import stream
from vrag_kit.types import Benchmark, JsonView, Query, QueryId

RULE = "rule"
"""The detector that knows the guide's wording, and no other."""
TRUTH = "gold label"
"""The detector with the questions that were made ambiguous."""
PUT_BACK = "oracle"
"""The rewriter that restores the original question."""
SUBJECT, PART = "subject", "part"
Detections = dict[str, dict[str, pd.DataFrame]]
"""Detector → data set → statuses, in the columns of `AmbiguityDetector.detect`."""
_NOUNS = {kind.noun: kind.name for kind in KINDS.values()}
_NAME = re.compile(
    r"(?:the )?(?:[A-Z]\w+ )+?(?P<noun>[A-Z]\w+) \((?:scientific name: )?[A-Z][a-z]+ [a-z]+\)"
)
_OF_PART = re.compile(rf"\bthe (?:{'|'.join(PARTS)}) of (?=[A-Z])")
_HINT = re.compile(r", (?:which|that) [^,?]*\?$")
_LOOK = re.compile(r"\bcolors?\b|\bpattern\b|\blooks? like\b")
_A_PART = re.compile(r"\bthe (?!main color of)[a-z]+(?: [a-z]+)* of (?:the )?(?:[A-Z]|this\b)")
_NAMED = re.compile(r"\([^)]*[A-Z][a-z]+ [a-z]+\)|\b[A-Z]\w+ [A-Z]\w+")


def make_ambiguous(
    benchmark: Benchmark, *, share: float = 0.5, seed: int = 0
) -> tuple[Benchmark, dict[QueryId, str]]:
    """Return (benchmark, query → what its question lacks now, "" for those left clear).

    Of the queries in a random order, which `seed` and their ids determine, a `share` loses in turn
    the species' name ("of this moth") or the part; one that has no part loses the name. Ids,
    answers and labels stay. Questions about an image of their own, which need no name, stay clear
    and are not part of the share.
    """
    losses = {query_id: _droppable(query) for query_id, query in benchmark.queries.items()}
    candidates = [query_id for query_id, ways in losses.items() if ways]
    order = sorted(candidates, key=lambda query_id: stream("ambiguous", seed, query_id).random())
    lacks = dict.fromkeys(benchmark.queries, "")
    queries = dict(benchmark.queries)
    for number, query_id in enumerate(order[: round(share * len(order))]):
        what = losses[query_id][number % len(losses[query_id])]
        lacks[query_id] = what
        queries[query_id] = replace(queries[query_id], text=_without(queries[query_id].text, what))
    named = f"{benchmark.fingerprint}/ambiguous/{share}/{seed}"
    fingerprint = hashlib.sha256(named.encode()).hexdigest()
    return replace(benchmark, fingerprint=fingerprint, queries=queries), lacks


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
    suite: Mapping[str, Benchmark], share: float, *, seed: int = 0
) -> tuple[dict[str, Benchmark], Detections]:
    """Return (data sets of which a `share` of the questions was made ambiguous, the detector
    `TRUTH` with what was left out as explanation); with a share of 0 the data sets as they are, and
    no detector. See `make_ambiguous`.
    """
    if share == 0:
        return dict(suite), {}
    changed, truth = {}, {}
    for name, benchmark in suite.items():
        changed[name], lacks = make_ambiguous(benchmark, share=share, seed=seed)
        groups = [query.group for query in benchmark.queries.values()]
        table = pd.DataFrame({"query_id": list(lacks), "group": groups})
        status = [AMBIGUOUS if what else CLEAR for what in lacks.values()]
        truth[name] = table.assign(status=status, explanation=list(lacks.values()), detail="")
    return changed, {TRUTH: truth}


def detect_ambiguity(
    assessors: Sequence[Entry],
    suite: Mapping[str, Benchmark],
    answers_dir: Path | str,
    *,
    hardware: JsonView | None = None,
) -> Detections:
    """Return the statuses of each data set's questions by detector: "rule" (`detect_by_rule`), or a
    model with the paper's prompt. Raises as `load_ambiguity_detector` does.
    """
    found: Detections = {}
    for entry in assessors:
        if entry == RULE:
            found[RULE] = {
                name: paper.detection.detect_with_rule(each, detect_by_rule)
                for name, each in suite.items()
            }
        else:
            detector = paper.detection.load_ambiguity_detector(
                entry, answers_dir, hardware=hardware
            )
            found[detector.name] = {name: detector.detect(each) for name, each in suite.items()}
    return found


def rewrite_questions(
    suite: Mapping[str, Benchmark],
    statuses: Mapping[str, pd.DataFrame],
    rewriter: Entry,
    answers_dir: Path | str,
    *,
    originals: Mapping[str, Benchmark],
    hardware: JsonView | None = None,
) -> tuple[dict[str, Benchmark], pd.DataFrame]:
    """Return (data sets in which flagged questions are rewritten, the rewrites: dataset, query_id,
    original, question, detail).

    `rewriter` is a model, which is shown the gold evidence and the accepted answer, or `PUT_BACK`:
    then a flagged question is worded as in `originals`.
    """
    model = None
    if rewriter != PUT_BACK:
        model = paper.detection.load_ambiguity_detector(rewriter, answers_dir, hardware=hardware)
    rewritten, tables = {}, []
    for name, benchmark in suite.items():
        if model is None:
            flagged = statuses[name].query("status == @AMBIGUOUS")["query_id"]
            table = pd.DataFrame({"query_id": flagged, "detail": ""})
            table["original"] = [benchmark.queries[each].text for each in flagged]
            table["question"] = [originals[name].queries[each].text for each in flagged]
        else:
            table = model.rewrite_queries(benchmark, statuses[name])
        rewritten[name] = paper.detection.with_rewritten_questions(benchmark, table)
        tables.append(table.assign(dataset=name))
    rewrites = pd.concat(tables, ignore_index=True)
    return rewritten, rewrites[["dataset", "query_id", "original", "question", "detail"]]
