"""Prompts about ambiguous questions (A.3, A.4, A.6), and parsers of the replies."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vrag_kit.analysis.comparisons import cluster_difference
from vrag_kit.errors import VragError
from vrag_kit.judging.rubric import UnparsedError, fill_template, one_line
from vrag_kit.judging.scale import scale_of
from vrag_kit.types import Benchmark, Document, LazyImage, Message, Prompt, Query, ordered

CLEAR, AMBIGUOUS = "CLEAR", "AMBIGUOUS"
LONGEST = 30
"""Maximum number of words of an explanation."""
WORDS: dict[str, Any] = json.loads(  # Any: texts, lists and mappings of them
    Path(__file__).with_name("ambiguity.json").read_text(encoding="utf-8")
)
"""The prompts as data, with their source; our additions are marked."""
_THOUGHT = re.compile(r"<think>.*?(?:</think>|$)", re.DOTALL)
_FENCED = re.compile(r"```(?:json)?(.*)```", re.DOTALL)
_LABELLED = re.compile(r"(?:[-•*]|\d+[.)])\s|rewritten question\s*:|rewrite\s*:", re.IGNORECASE)
_POINTS = re.compile(r"according to the (?:evidence|image|chart|passage)", re.IGNORECASE)


class Detection(NamedTuple):
    """A detector's result for a question."""

    status: str
    """`CLEAR` or `AMBIGUOUS`."""
    explanation: str
    """At most `LONGEST` words."""


def detection_prompt(query: Query) -> Prompt:
    """Builds the detection prompt for a question: A.3 for one with an image, A.4 for one without.
    Its first accepted answer is included for reference.
    """
    fields = {"q_esc": query.text, "a_esc": next(iter(query.answers), "")}
    if query.image is None:
        return (Message(role="user", parts=(fill_template(WORDS["without_image"], fields),)),)
    case = fill_template(WORDS["question_and_answer"], fields)
    return (Message(role="user", parts=(query.image, WORDS["with_image"] + case)),)


def query_rewrite_prompt(query: Query, evidence: Sequence[Document], explanation: str) -> Prompt:
    """Builds the prompt that rewrites a question (A.6) from evidence and the `explanation` why it
    was flagged; its own image comes first.
    """
    listed = fill_template(WORDS["flagged"], {"explanation": explanation})
    images: list[LazyImage] = []
    for item in evidence:
        if item.image is not None:
            images.append(item.image)
            listed += fill_template(WORDS["picture"], {"number": str(len(images))})
        if item.text is not None:
            listed += fill_template(WORDS["item"], {"text": one_line(item.text)})
    fields = {
        "evidence": listed.rstrip("\n"),
        "raw_question": query.text,
        "raw_answer": next(iter(query.answers), ""),
    }
    own = () if query.image is None else (query.image,)
    words = fill_template(WORDS["query_rewrite"], fields)
    return (Message(role="user", parts=(*own, *images, words)),)


def read_detection(raw: str) -> Detection:
    """Parses a reply that is one JSON object, apart from thoughts in tags and a code fence. Keys
    are "status" and "explanation", once each. Raises `UnparsedError` otherwise.
    """
    words = _THOUGHT.sub("", raw).strip()
    fenced = _FENCED.fullmatch(words)
    try:
        found = json.loads(fenced[1] if fenced else words, object_pairs_hook=_once_each)
    except (ValueError, RecursionError) as error:
        raise UnparsedError("it is not one JSON object") from error
    if not isinstance(found, dict) or set(found) != {"status", "explanation"}:
        raise UnparsedError("its keys are not status and explanation")
    status, explanation = found["status"], found["explanation"]
    if status not in (CLEAR, AMBIGUOUS):
        raise UnparsedError(f"status is {status!r}, not {CLEAR} or {AMBIGUOUS}")
    if not isinstance(explanation, str) or len(explanation.split()) > LONGEST:
        raise UnparsedError(f"explanation is no text of at most {LONGEST} words")
    return Detection(status, one_line(explanation))


def read_query_rewrite(raw: str) -> str:
    """Parses a reply to `query_rewrite_prompt`, which must be one line. Raises `UnparsedError` for
    several lines or none, a label or bullet before it, and references to the evidence, which the
    prompt forbids.
    """
    lines = [line.strip() for line in _THOUGHT.sub("", raw).splitlines() if line.strip()]
    if len(lines) != 1:
        raise UnparsedError(f"it has {len(lines)} lines, not one")
    if _LABELLED.match(lines[0]):
        raise UnparsedError("a label or bullet stands before the question")
    if _POINTS.search(lines[0]):
        raise UnparsedError("it points at the evidence")
    return lines[0]


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:  # Any: what JSON holds
    """A JSON object; raises ValueError for a key that is there twice."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)


def match_clear_questions(
    suite: Mapping[str, Benchmark],
    statuses: Mapping[str, pd.DataFrame],
    memorised: Mapping[str, Mapping[str, Collection[str]]] | None = None,
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """Matches each ambiguous question with a clear one of the same data set. Columns: ambiguous,
    clear, group and clear_group (of either question), words_apart, dataset.

    `statuses` have query_id and status. If `memorised` gives, by data set, the groups in each
    model's training data (`trained_groups`), partners agree in that. Partners have the nearest
    number of words, and are used once each; the ambiguous questions choose in an order by hash,
    which also breaks ties. Those for which none is left have no pair. The paper calls its clear
    questions "matched", or "random", without saying how.
    """
    rows = []
    for dataset, benchmark in suite.items():
        status = statuses[dataset].set_index("query_id")["status"]
        groups = benchmark.groups
        trained = (memorised or {}).get(dataset, {}).values()
        length = {name: len(query.text.split()) for name, query in benchmark.queries.items()}
        knows = {name: [groups[name] in of_model for of_model in trained] for name in length}
        free = ordered(status.index[status == CLEAR], seed, "clear partner")
        for name in ordered(status.index[status == AMBIGUOUS], seed, "ambiguous"):
            alike = [other for other in free if knows[other] == knows[name]]
            if not alike:
                continue
            apart = {other: abs(length[other] - length[name]) for other in alike}
            partner = min(apart, key=apart.__getitem__)
            free.remove(partner)
            rows.append((name, partner, groups[name], groups[partner], apart[partner], dataset))
    columns = ["ambiguous", "clear", "group", "clear_group", "words_apart", "dataset"]
    return pd.DataFrame(rows, columns=columns)


def ambiguous_minus_clear(
    values: pd.DataFrame, pairs: pd.DataFrame, *, by: Sequence[str]
) -> pd.DataFrame:
    """Computes the mean over ambiguous questions minus that over their clear partners: `by`, value,
    ci_low, ci_high, n (pairs), n_failed, p.

    `values` come from `per_query` (query_id, value, score_min and score_max, `by`). A pair without
    a value on one side is in neither mean, and counted in n_failed; one without rows on both sides,
    as in another stratum, is not counted.

    The interval is over the groups of both sides (`cluster_difference`): a group may have questions
    on either. Matching by length is ignored: a correlation of partners would only narrow the
    interval. Raises `VragError` without pairs.
    """
    if pairs.empty:
        raise VragError(
            "ambiguous_minus_clear: there are no pairs; both ambiguous and clear questions of one"
            " data set are needed."
        )
    scale = scale_of(values)
    rows = []
    for key, part in values.groupby(list(by), sort=False):
        value = part.drop_duplicates("query_id").set_index("query_id")["value"]
        asked = pairs[pairs["clear"].isin(value.index) & pairs["ambiguous"].isin(value.index)]
        sides = pd.DataFrame({name: asked[name].map(value) for name in ("ambiguous", "clear")})
        both = sides.notna().all(axis=1)
        counts = int(both.sum()), int((~both).sum())
        numbers = [math.nan] * 4
        if both.any():
            groups = pd.concat([asked["group"][both], asked["clear_group"][both]])
            known = sides[both].to_numpy(float).ravel(order="F")
            is_ambiguous = np.arange(len(known)) < counts[0]
            found = cluster_difference(known, groups, is_ambiguous, scale)
            numbers = [found.value, *found.interval(), found.p_value()]
        rows.append((*key, *numbers[:3], *counts, numbers[3]))
    return pd.DataFrame(rows, columns=[*by, "value", "ci_low", "ci_high", "n", "n_failed", "p"])
