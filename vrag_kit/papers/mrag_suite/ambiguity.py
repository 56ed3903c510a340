"""Prompts about ambiguous questions (A.3, A.4, A.6), and parsers of the replies."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vrag_kit.analysis.comparisons import cluster_difference
from vrag_kit.analysis.estimates import estimate
from vrag_kit.errors import VragError
from vrag_kit.judging.rubric import UnparsedError
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


@dataclass(frozen=True, slots=True)
class Detection:
    """A detector's result for a question."""

    status: str
    """`CLEAR` or `AMBIGUOUS`."""
    explanation: str
    """At most `LONGEST` words."""


def detection_prompt(query: Query) -> Prompt:
    """Builds the detection prompt for a question: A.3 for one with an image, A.4 for one without.
    Its first accepted answer is included for reference.
    """
    answer = query.answers[0] if query.answers else ""
    case = _filled(WORDS["question_and_answer"], q_esc=query.text, a_esc=answer)
    if query.image is None:
        words = WORDS["without_image"].removesuffix(WORDS["question_and_answer"]) + case
        return (Message(role="user", parts=(words,)),)
    return (Message(role="user", parts=(query.image, WORDS["with_image"] + case)),)


def query_rewrite_prompt(query: Query, evidence: Sequence[Document], explanation: str) -> Prompt:
    """Builds the prompt that rewrites a question (A.6) from evidence and the `explanation` why it
    was flagged; its own image comes first.
    """
    pictures, listed = _listed(evidence)
    own = () if query.image is None else (query.image,)
    why = _filled(WORDS["flagged"], explanation=explanation)
    words = _filled(
        WORDS["query_rewrite"],
        evidence=why + listed,
        raw_question=query.text,
        raw_answer=query.answers[0] if query.answers else "",
    )
    return (Message(role="user", parts=(*own, *pictures, words)),)


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
    return Detection(status, " ".join(explanation.split()))


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


def _listed(evidence: Sequence[Document]) -> tuple[list[LazyImage], str]:
    """The pictures, and all items as a list."""
    pictures: list[LazyImage] = []
    listed = ""
    for item in evidence:
        if item.image is not None:
            pictures.append(item.image)
            listed += _filled(WORDS["picture"], number=str(len(pictures)))
        if item.text is not None:
            listed += _filled(WORDS["item"], text=" ".join(item.text.split()))
    return pictures, listed.rstrip("\n")


def _filled(template: str, **words: str) -> str:
    """The template with its fields filled in one pass: braces in a question stay, and so
    do those of the template that are no fields.
    """
    names = "|".join(words)
    return re.sub(rf"\{{({names})\}}", lambda place: words[place[1]], template)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:  # Any: what JSON holds
    """A JSON object; raises ValueError for a key that is there twice."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)


def match_clear_questions(
    benchmark: Benchmark,
    statuses: pd.DataFrame,
    memorised: Mapping[str, Collection[str]] | None = None,
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """Matches each ambiguous question with a clear one of the same data set. Columns: ambiguous,
    clear, group and clear_group (of either question), words_apart.

    `statuses` has query_id and status. If `memorised` gives the groups in each model's training
    data (`trained_groups`), partners agree in that. Partners have the nearest number of words, and
    are used once each; the ambiguous questions choose in an order by hash, which also breaks ties.
    Those for which none is left have no pair. The paper calls its clear questions "matched", or
    "random", without saying how.
    """
    status = statuses.set_index("query_id")["status"]
    groups = benchmark.groups
    length = {name: len(query.text.split()) for name, query in benchmark.queries.items()}
    knows = {
        name: [groups[name] in of_model for of_model in (memorised or {}).values()]
        for name in length
    }
    free = ordered(status.index[status == CLEAR], seed, "clear partner")
    rows = []
    for name in ordered(status.index[status == AMBIGUOUS], seed, "ambiguous"):
        alike = [other for other in free if knows[other] == knows[name]]
        if not alike:
            continue
        partner = min(alike, key=lambda other: abs(length[other] - length[name]))
        free.remove(partner)
        apart = abs(length[partner] - length[name])
        rows.append((name, partner, groups[name], groups[partner], apart))
    columns = ["ambiguous", "clear", "group", "clear_group", "words_apart"]
    return pd.DataFrame(rows, columns=columns)


def ambiguous_minus_clear(
    values: pd.DataFrame, pairs: pd.DataFrame, *, by: Sequence[str] = ("model",)
) -> pd.DataFrame:
    """Computes means over the pairs: `by`, split ("clear", "ambiguous", "difference"), value,
    ci_low, ci_high, n (pairs), n_failed, p (of the difference; NaN for its sides).

    `values` come from `per_query` (query_id, value, score_min and score_max, `by`). A pair without
    a value on one side is in none of the three means, and counted in n_failed; one without rows on
    both sides, as in another stratum, is not counted.

    Each side's interval is over its own groups, and the difference's over those of both
    (`cluster_difference`): a group may have questions on either side. Matching by length is
    ignored: a correlation of partners would only narrow the interval. Raises `VragError` without
    pairs.
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
        clear, ambiguous = asked["clear"].map(value), asked["ambiguous"].map(value)
        both = (clear.notna() & ambiguous.notna()).to_numpy()
        counts = int(both.sum()), int((~both).sum())
        sides = {"clear": (clear, "clear_group"), "ambiguous": (ambiguous, "group")}
        for side, (of_side, group) in sides.items():
            found = estimate(of_side[both].to_numpy(float), asked[group][both], scale=scale)
            rows.append((*key, side, found.value, found.ci_low, found.ci_high, *counts, math.nan))
        if not both.any():
            rows.append((*key, "difference", *[math.nan] * 3, *counts, math.nan))
            continue
        joined = pd.concat([ambiguous[both], clear[both]]).to_numpy(float)
        groups = pd.concat([asked["group"][both], asked["clear_group"][both]])
        first = np.arange(len(joined)) < counts[0]
        difference = cluster_difference(joined, groups, first, scale)
        numbers = (difference.value, *difference.interval(), *counts, difference.p_value())
        rows.append((*key, "difference", *numbers))
    columns = [*by, "split", "value", "ci_low", "ci_high", "n", "n_failed", "p"]
    return pd.DataFrame(rows, columns=columns)


def match_suite_questions(
    suite: Mapping[str, Benchmark],
    statuses: Mapping[str, pd.DataFrame],
    memorised: Mapping[str, Mapping[str, Collection[str]]] | None = None,
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """Runs `match_clear_questions` on each data set and adds the column dataset; `memorised` is by
    data set.
    """
    parts = []
    for name, benchmark in suite.items():
        of_set = (memorised or {}).get(name)
        pairs = match_clear_questions(benchmark, statuses[name], of_set, seed=seed)
        parts.append(pairs.assign(dataset=name))
    return pd.concat(parts, ignore_index=True)
