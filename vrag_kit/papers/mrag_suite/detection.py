"""Detection of ambiguous questions by a model or a rule, and their rewriting by a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from vrag_kit.analysis.agreement import association
from vrag_kit.analysis.estimates import Estimate, estimate
from vrag_kit.config import GREEDY, Entry, hardware_of
from vrag_kit.generation.generators import load_generator
from vrag_kit.judging.llm_judge import ParsedReply, Request, StructuredAsker
from vrag_kit.papers.mrag_suite.ambiguity import (
    AMBIGUOUS,
    CLEAR,
    WORDS,
    Detection,
    detection_prompt,
    query_rewrite_prompt,
    read_detection,
    read_query_rewrite,
)
from vrag_kit.types import Benchmark

MOST_TOKENS = 512
"""Maximum number of tokens of a reply."""
_COLUMNS = ["query_id", "group", "status", "explanation", "detail"]


class DetectionLike(Protocol):
    """Interface of a rule's result for a question."""

    @property
    def ambiguous(self) -> bool:
        """Whether the rule flags the question as ambiguous."""

    @property
    def explanation(self) -> str:
        """Reason of the rule."""


class AmbiguityDetector:
    """Detects and rewrites ambiguous questions with a model; replies are stored and parsed again
    each time, and an unparsed one is requested once more.
    """

    def __init__(self, askers: Mapping[str, StructuredAsker]) -> None:
        """`askers` has the keys "detection" and "query"."""
        self.name = askers["detection"].generator.name
        self._askers = askers

    def detect(self, benchmark: Benchmark) -> pd.DataFrame:
        """Returns one row per question: query_id, group, status ("CLEAR", "AMBIGUOUS"; "" if
        unparsed), explanation, detail (why there is none).
        """
        queries = list(benchmark.queries.values())
        asked = [
            Request(prompt=detection_prompt(query), read=read_detection, owner=query.query_id)
            for query in queries
        ]
        rows = []
        for query, found in zip(queries, self._askers["detection"].ask(asked), strict=True):
            told = found.value or Detection("", "")
            rows.append((query.query_id, query.group, told.status, told.explanation, _why(found)))
        return pd.DataFrame(rows, columns=_COLUMNS)

    def rewrite_queries(self, benchmark: Benchmark, detections: pd.DataFrame) -> pd.DataFrame:
        """Rewrites each question that `detections` flag from its gold evidence: query_id, original,
        question ("" if unparsed), detail.
        """
        flagged = detections[detections["status"] == AMBIGUOUS]
        asked, originals = [], []
        for query_id, why in zip(flagged["query_id"], flagged["explanation"], strict=True):
            query = benchmark.queries[query_id]
            gold = [benchmark.corpus[name] for name in benchmark.relevant(query_id)]
            prompt = query_rewrite_prompt(query, gold, why)
            asked.append(Request(prompt=prompt, read=read_query_rewrite, owner=query_id))
            originals.append((query_id, query.text))
        found = self._askers["query"].ask(asked)
        rows = []
        for first, each in zip(originals, found, strict=True):
            rows.append((*first, each.value or "", _why(each)))
        return pd.DataFrame(rows, columns=["query_id", "original", "question", "detail"])


def load_ambiguity_detector(
    entry: Entry,
    answers_dir: Path | str,
    *,
    hardware: Mapping[str, Any] | None = None,  # a notebook's parameter: values of any type
) -> AmbiguityDetector:
    """Loads a detector with the model that `entry` names, as in `load_generator`. It decodes
    greedily by default (the paper judges at temperature 0); its replies are stored in
    `answers_dir`.

    `hardware` names fields of `Hardware`. Raises `VragError` as `load_generator` does.
    """
    hardware = {"batch_size": 8, **(hardware or {})}
    decoding = {**GREEDY, "max_new_tokens": MOST_TOKENS}
    generator = load_generator(entry, decoding=decoding, hardware=hardware)
    how = hardware_of(hardware)
    whats = {"detection": "detections", "query": "new questions"}
    askers = {}
    for name, what in whats.items():
        repair: Callable[[str], str] = _repairs(WORDS["repair"][name])
        askers[name] = StructuredAsker(
            generator=generator,
            answers_dir=Path(answers_dir),
            hardware=how,
            what=what,
            repair=repair,
        )
    return AmbiguityDetector(askers)


def detect_with_rule(benchmark: Benchmark, rule: Callable[..., DetectionLike]) -> pd.DataFrame:
    """Applies a rule to every question, with the columns of `AmbiguityDetector.detect`; `rule`
    takes a query.
    """
    rows = []
    for query in benchmark.queries.values():
        told = rule(query)
        status = AMBIGUOUS if told.ambiguous else CLEAR
        rows.append((query.query_id, query.group, status, told.explanation, ""))
    return pd.DataFrame(rows, columns=_COLUMNS)


def flag_rates(detections: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Computes the share of flagged questions of each data set, as in Table 1: dataset, n_flagged,
    value (share of the parsed ones), ci_low, ci_high (over groups), n, n_failed.
    """
    rows = []
    for name, table in detections.items():
        flags = _as_numbers(table["status"])
        found = estimate(flags.to_numpy(), table["group"])
        numbers = (found.value, found.ci_low, found.ci_high, found.n, found.n_failed)
        rows.append((name, int(flags.sum()), *numbers))
    columns = ["dataset", "n_flagged", "value", "ci_low", "ci_high", "n", "n_failed"]
    return pd.DataFrame(rows, columns=columns)


def detector_kappa(one: pd.Series, other: pd.Series, groups: Sequence[str] | pd.Series) -> Estimate:
    """Computes Cohen's kappa of two detectors' statuses of the same questions, in order, with an
    interval over `groups` (`association`); pairs with an unparsed one are excluded, and counted in
    n_failed.
    """
    return association(_as_numbers(one), _as_numbers(other), groups, measure="kappa")


def _as_numbers(statuses: pd.Series) -> pd.Series:
    """1 for ambiguous, 0 for clear, NaN for what is neither."""
    return statuses.map({AMBIGUOUS: 1.0, CLEAR: 0.0}).astype(float)


def _why(found: ParsedReply[Any]) -> str:  # whatever was to be read
    return str(found.failure) if found.failure else ""


def _repairs(words: str) -> Callable[[str], str]:
    return lambda reason: words.format(reason=reason)
