"""Ambiguous questions: the paper's prompts that detect and rewrite them (A.3, A.4, A.6), strict
parsers of the replies, a model that is asked, and what ambiguity costs (Tables 7 and 8): agreement
of detectors, ambiguous questions against clear ones, and rewritten questions against themselves.

A table of detections has dataset, detector, query_id, group and status ("AMBIGUOUS", "CLEAR"; ""
if a reply could not be parsed).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from vrag_kit.analysis.agreement import association
from vrag_kit.analysis.comparisons import cluster_difference, holm, paired_differences
from vrag_kit.analysis.estimates import Estimate
from vrag_kit.analysis.means import per_query, to_percent
from vrag_kit.config import GREEDY, Entry
from vrag_kit.generation.generators import Generator, load_generator
from vrag_kit.generation.prompts import strip_thoughts
from vrag_kit.judging.llm_judge import Request, StructuredAsker
from vrag_kit.judging.rubric import UnparsedError, fill_template, one_line
from vrag_kit.judging.scale import scale_of
from vrag_kit.types import Benchmark, Document, Message, Prompt, Query, QueryId, ordered
from vrag_kit.workspace import Workspace

CLEAR, AMBIGUOUS = "CLEAR", "AMBIGUOUS"
LONGEST = 30
"""Maximum number of words of an explanation."""
WORDS: dict[str, Any] = json.loads(  # Any: texts, lists and mappings of them
    Path(__file__).with_name("ambiguity.json").read_text(encoding="utf-8")
)
"""The prompts as data, with their source; our additions are marked."""
T = TypeVar("T")
_FENCED = re.compile(r"```(?:json)?(.*)```", re.DOTALL)
_LABELLED = re.compile(r"(?:[-•*]|\d+[.)])\s|rewritten question\s*:|rewrite\s*:", re.IGNORECASE)
_POINTS = re.compile(r"according to the (?:evidence|image|chart|passage)", re.IGNORECASE)


def detection_prompt(query: Query) -> Prompt:
    """Builds the detection prompt for a question: A.3 for one with an image, A.4 for one without.
    Its first accepted answer is included for reference.
    """
    fields = {"q_esc": query.text, "a_esc": next(iter(query.answers), "")}
    if query.image is None:
        return (Message(role="user", parts=(fill_template(WORDS["without_image"], fields),)),)
    case = fill_template(WORDS["question_and_answer"], fields)
    return (Message(role="user", parts=(query.image, WORDS["with_image"] + case)),)


def query_rewrite_prompt(query: Query, evidence: Iterable[Document], explanation: str) -> Prompt:
    """Builds the prompt that rewrites a question (A.6) from evidence and the `explanation` why it
    was flagged; its own image comes first.
    """
    listed = fill_template(WORDS["flagged"], {"explanation": explanation})
    images = []
    for item in evidence:
        if item.image is not None:
            images.append(item.image)
            listed += fill_template(WORDS["picture"], {"number": str(len(images))})
        if item.text is not None:
            listed += fill_template(WORDS["item"], {"text": one_line(item.text)})
    own = () if query.image is None else (query.image,)
    answer = next(iter(query.answers), "")
    fields = {"evidence": listed.rstrip("\n"), "raw_question": query.text, "raw_answer": answer}
    words = fill_template(WORDS["query_rewrite"], fields)
    return (Message(role="user", parts=(*own, *images, words)),)


def read_detection(raw: str) -> tuple[str, str]:
    """Parses a reply that is one JSON object, apart from thoughts in tags and a code fence. Keys
    are "status" and "explanation", once each. Returns the status, `CLEAR` or `AMBIGUOUS`, and the
    explanation, of at most `LONGEST` words. Raises `UnparsedError` otherwise.
    """
    words = strip_thoughts(raw)
    fenced = _FENCED.fullmatch(words)
    try:
        found = json.loads(fenced[1] if fenced else words, object_pairs_hook=tuple)
    except (ValueError, RecursionError) as error:
        raise UnparsedError("it is not one JSON object") from error
    keys = [key for key, _ in found] if isinstance(found, tuple) else []
    if sorted(keys) != ["explanation", "status"]:
        raise UnparsedError("its keys are not status and explanation")
    status, explanation = dict(found)["status"], dict(found)["explanation"]
    if status not in (CLEAR, AMBIGUOUS):
        raise UnparsedError(f"status is {status!r}, not {CLEAR} or {AMBIGUOUS}")
    if not isinstance(explanation, str) or len(explanation.split()) > LONGEST:
        raise UnparsedError(f"explanation is no text of at most {LONGEST} words")
    return status, one_line(explanation)


def read_query_rewrite(raw: str) -> str:
    """Parses a reply to `query_rewrite_prompt`, which must be one line. Raises `UnparsedError` for
    several lines or none, a label or bullet before it, and references to the evidence, which the
    prompt forbids.
    """
    lines = [line.strip() for line in strip_thoughts(raw).splitlines() if line.strip()]
    if len(lines) != 1:
        raise UnparsedError(f"it has {len(lines)} lines, not one")
    if _LABELLED.match(lines[0]):
        raise UnparsedError("a label or bullet stands before the question")
    if _POINTS.search(lines[0]):
        raise UnparsedError("it points at the evidence")
    return lines[0]


DETECTION = ["query_id", "group", "status", "explanation", "detail"]
"""Columns of a detector's results; detail says why a status is missing ("")."""


def load_detector(entry: Entry, at: Workspace) -> Generator:
    """Loads the model that `entry` names, as `load_generator` does. It decodes greedily by default
    (the paper judges at temperature 0).
    """
    return load_generator(entry, decoding={**GREEDY, "max_new_tokens": 512}, at=at)


def detect_ambiguous(model: Generator, benchmark: Benchmark, at: Workspace) -> pd.DataFrame:
    """Asks a model about each question: query_id, group, status ("CLEAR", "AMBIGUOUS"; "" if
    unparsed), explanation, detail (why there is none). Replies are stored and parsed again each
    time; an unparsed one is requested once more.
    """
    queries, rows = benchmark.queries, []
    prompts = {name: detection_prompt(query) for name, query in queries.items()}
    for name, found, why in _ask(model, at, "detections", prompts, read_detection):
        rows.append((name, queries[name].group, *(found or ("", "")), why))
    return pd.DataFrame(rows, columns=DETECTION)


def rewrite_ambiguous(
    model: Generator, benchmark: Benchmark, detections: pd.DataFrame, at: Workspace
) -> pd.DataFrame:
    """Rewrites each question that `detections` flag from its gold evidence: query_id, original,
    question ("" if unparsed), detail. Replies are stored as in `detect_ambiguous`.
    """
    flagged, prompts = detections[detections["status"] == AMBIGUOUS], {}
    for name, why in zip(flagged["query_id"], flagged["explanation"], strict=True):
        gold = [benchmark.corpus[each] for each in benchmark.relevant(name)]
        prompts[name] = query_rewrite_prompt(benchmark.queries[name], gold, why)
    rows = []
    for name, new, why in _ask(model, at, "new questions", prompts, read_query_rewrite):
        rows.append((name, benchmark.queries[name].text, new or "", why))
    return pd.DataFrame(rows, columns=["query_id", "original", "question", "detail"])


def _ask(
    model: Generator,
    at: Workspace,
    what: str,
    prompts: Mapping[QueryId, Prompt],
    read: Callable[[str], T],
) -> list[tuple[QueryId, T | None, str]]:
    """Each query, the parsed reply to its prompt, and why there is none."""
    repair = WORDS["repair"][what]
    asker = StructuredAsker(
        generator=model, at=at, what=what, repair=lambda reason: repair.format(reason=reason)
    )
    asked = [Request(prompt=each, read=read, owner=name) for name, each in prompts.items()]
    replies = zip(prompts, asker.ask(asked), strict=True)
    return [(name, reply.value, str(reply.failure or "")) for name, reply in replies]


def with_rewritten_questions(benchmark: Benchmark, rewrites: pd.DataFrame) -> Benchmark:
    """Replaces the text of questions by `rewrites` (query_id, question). Questions whose rewrite is
    "" (unparsed) stay as they are, and so do ids, answers and labels.

    Raises `KeyError` for an unknown query.
    """
    parsed = rewrites[rewrites["question"] != ""]
    new = dict(zip(parsed["query_id"], parsed["question"], strict=True))
    texts = {name: replace(benchmark.queries[name], text=words) for name, words in new.items()}
    tag = json.dumps(["rewritten", sorted(new.items())])
    return benchmark.derive(tag, queries={**benchmark.queries, **texts})


CHECK = "check: oracle rewrite − clear"
"""The contrast of rewritten and clear questions where questions were made ambiguous at random and
then restored: two random halves of the same questions, with expected difference 0.
"""
_ARM = ["evidence_source", "dataset", "metric", "stratum", "model"]


def detection_agreement(detections: pd.DataFrame) -> pd.DataFrame:
    """Computes the agreement of each two detectors, over the questions of all data sets. Columns:
    one, other, both (flagged by both), only_one, only_other, neither, value (Cohen's κ), ci_low,
    ci_high, n, n_failed (pairs with an unparsed status, in none of the counts). Intervals are over
    the groups of questions. With one detector there are no rows.
    """
    flags = detections.assign(value=detections["status"].map({AMBIGUOUS: 1.0, CLEAR: 0.0}))
    keys = ["dataset", "query_id", "group"]
    wide = flags.pivot(index=keys, columns="detector", values="value")
    groups = wide.index.map("{0[0]}/{0[2]}".format)
    rows = []
    for one, other in combinations(detections["detector"].unique(), 2):
        counts = wide[[one, other]].dropna().value_counts()
        cells = [counts.get(pair, 0) for pair in product((1.0, 0.0), repeat=2)]
        kappa = association(wide[one], wide[other], groups.to_series(), measure="kappa")
        rows.append((one, other, *cells, *kappa))
    columns = ["one", "other", "both", "only_one", "only_other", "neither"]
    return pd.DataFrame(rows, columns=[*columns, *Estimate._fields])


def match_clear_questions(
    suite: Mapping[str, Benchmark],
    detections: pd.DataFrame,
    memorised: Mapping[str, Mapping[str, Collection[str]]],
) -> pd.DataFrame:
    """Matches each ambiguous question with a clear one of the same data set. Columns: dataset,
    ambiguous, clear, group and clear_group (of either question), words_apart.

    `detections` are those of one detector, `memorised` gives by data set the groups in each model's
    training data (`trained_groups`): partners agree in that. Partners have the nearest number of
    words, and are used once each; the ambiguous questions choose in an order by hash,
    which also breaks ties. Those for which none is left have no pair. The paper calls its clear
    questions "matched", or "random", without saying how.
    """
    rows = []
    for dataset, benchmark in suite.items():
        status = detections[detections["dataset"] == dataset].set_index("query_id")["status"]
        groups, trained = benchmark.groups, memorised[dataset].values()
        length = {name: len(query.text.split()) for name, query in benchmark.queries.items()}
        knows = {name: [groups[name] in of_model for of_model in trained] for name in length}
        free = ordered(status.index[status == CLEAR], 0, "clear partner")
        for name in ordered(status.index[status == AMBIGUOUS], 0, "ambiguous"):
            alike = [other for other in free if knows[other] == knows[name]]
            apart = {other: abs(length[other] - length[name]) for other in alike}
            if apart:
                partner = min(apart, key=apart.__getitem__)
                free.remove(partner)
                rows.append((dataset, name, partner, groups[name], groups[partner], apart[partner]))
    columns = ["dataset", "ambiguous", "clear", "group", "clear_group", "words_apart"]
    return pd.DataFrame(rows, columns=columns)


def ambiguous_minus_clear(
    values: pd.DataFrame, pairs: pd.DataFrame, *, by: Sequence[str]
) -> pd.DataFrame:
    """Computes the mean over ambiguous questions minus that over their clear partners: `by`, value,
    ci_low, ci_high, n (pairs), n_failed, p.

    `values` come from `per_query` (dataset, query_id, value, score_min and score_max, `by`). A pair
    without a value on one side is in neither mean, and counted in n_failed; one without rows on
    both sides, as in another stratum, is not counted. A data set without a pair has no rows.

    The interval is over the groups of both sides (`cluster_difference`): a group may have questions
    on either. Matching by length is ignored: a correlation of partners would only narrow the
    interval.
    """
    scale = scale_of(values)
    rows = []
    for key, part in values.groupby(list(by), sort=False):
        own = pairs[pairs["dataset"] == part["dataset"].iloc[0]]
        if own.empty:
            continue
        value = part.drop_duplicates("query_id").set_index("query_id")["value"]
        scored = value.dropna().index
        asked = own[own["clear"].isin(value.index) & own["ambiguous"].isin(value.index)]
        known = asked[asked["clear"].isin(scored) & asked["ambiguous"].isin(scored)]
        scores = pd.concat([known["ambiguous"], known["clear"]]).map(value).to_numpy(float)
        groups, n = pd.concat([known["group"], known["clear_group"]]), len(known)
        found = cluster_difference(scores, groups, np.arange(2 * n) < n, scale)
        counts = n, len(asked) - n
        rows.append((*key, found.value, *found.interval(), *counts, found.p_value()))
    return pd.DataFrame(rows, columns=[*by, "value", "ci_low", "ci_high", "n", "n_failed", "p"])


def ambiguity_contrasts(
    judged: pd.DataFrame, detections: pd.DataFrame, pairs: pd.DataFrame, *, restored: bool = False
) -> pd.DataFrame:
    """Computes the three contrasts of every source of evidence, data set, stratum and model, in
    points. Columns: evidence_source, dataset, metric, stratum, model, value, ci_low, ci_high, n
    (pairs, or flagged questions), n_failed, p (of one test), contrast, baseline, unit, p_holm (of a
    `CHECK`, for the number of checks).

    `judged` are tables of `training_strata` with the columns evidence_source and version
    ("original" or "rewritten"), `detections` those of one detector, `pairs` come from
    `match_clear_questions`. The first two contrasts follow Table 8, over pairs of different
    questions; in the third a flagged question is compared with itself. With `restored`, where the
    ambiguous questions were chosen at random and only their wording was put back, the second one is
    called `CHECK`.
    """
    values = per_query(judged, by=["version", *_ARM])
    contrasts = {"original": "ambiguous − clear"}
    contrasts["rewritten"] = CHECK if restored else "rewritten − clear"
    tables = []
    for version, contrast in contrasts.items():
        found = ambiguous_minus_clear(values[values["version"] == version], pairs, by=_ARM)
        tables.append(found.assign(contrast=contrast, baseline="clear"))
    flagged = detections.loc[detections["status"] == AMBIGUOUS, ["dataset", "query_id"]]
    both = values.merge(flagged, on=["dataset", "query_id"])
    found = paired_differences(both, arm="version", by=_ARM, baseline="original")
    found = found.drop(columns=["version", "p_holm"]).assign(contrast="rewritten − original")
    table = to_percent(pd.concat([*tables, found], ignore_index=True))
    checks = table["p"].where(table["contrast"] == CHECK)
    return table.assign(p_holm=holm(checks.to_numpy(float)))
