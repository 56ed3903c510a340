"""Which questions are ambiguous, by a model or a rule, and what a model makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from vrag_kit.analysis.association import association
from vrag_kit.analysis.intervals import Estimate, estimate
from vrag_kit.generation.asking_options import Asking
from vrag_kit.generation.loading import load_generator
from vrag_kit.judging.strict import Asked, Reading, StrictAsker
from vrag_kit.options import Entry
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
"""Longest reply."""
_COLUMNS = ["query_id", "group", "status", "explanation", "detail"]


class RuleVerdict(Protocol):
    """What a rule says of a question."""

    @property
    def ambiguous(self) -> bool:
        """Whether it takes the question for ambiguous."""

    @property
    def explanation(self) -> str:
        """Why."""


class Assessor:
    """A model that is asked about questions; its words are kept and read anew each time,
    and what cannot be read is asked for once more.
    """

    def __init__(self, askers: Mapping[str, StrictAsker]) -> None:
        """`askers` has "detection" and "query"."""
        self.name = askers["detection"].generator.name
        self._askers = askers

    def detect(self, benchmark: Benchmark) -> pd.DataFrame:
        """A row a question: query_id, group, status ("CLEAR", "AMBIGUOUS"; "" where none
        could be read), explanation, detail (why there is none).
        """
        queries = list(benchmark.queries.values())
        asked = [
            Asked(prompt=detection_prompt(query), read=read_detection, owner=query.query_id)
            for query in queries
        ]
        rows = []
        for query, found in zip(queries, self._askers["detection"].ask(asked), strict=True):
            told = found.value or Detection("", "")
            rows.append((query.query_id, query.group, told.status, told.explanation, _why(found)))
        return pd.DataFrame(rows, columns=_COLUMNS)

    def rewrite_queries(self, benchmark: Benchmark, detections: pd.DataFrame) -> pd.DataFrame:
        """Each question that `detections` flag said anew from its gold evidence:
        query_id, original, question ("" where unreadable), detail.
        """
        flagged = detections[detections["status"] == AMBIGUOUS]
        asked, originals = [], []
        for query_id, why in zip(flagged["query_id"], flagged["explanation"], strict=True):
            query = benchmark.queries[query_id]
            gold = [benchmark.corpus[name] for name in benchmark.relevant(query_id)]
            prompt = query_rewrite_prompt(query, gold, why)
            asked.append(Asked(prompt=prompt, read=read_query_rewrite, owner=query_id))
            originals.append((query_id, query.text))
        found = self._askers["query"].ask(asked)
        rows = []
        for first, each in zip(originals, found, strict=True):
            rows.append((*first, each.value or "", _why(each)))
        return pd.DataFrame(rows, columns=["query_id", "original", "question", "detail"])


def load_assessor(
    entry: Entry,
    answers_dir: Path | str,
    *,
    run_with: Mapping[str, Any] | None = None,  # a notebook's parameter: values of any type
) -> Assessor:
    """The model that `entry` names as `load_generator` takes it, which decodes greedily
    unless its entry says otherwise (the paper judges at temperature 0); its words are
    kept in `answers_dir`.

    Of `run_with` device, batch_size and retry_failures count here too. Raises
    `VragError` as `load_generator` does.
    """
    default = Asking(decoding="greedy", max_new_tokens=MOST_TOKENS, batch_size=8)
    how = Asking.beside_answerers(run_with or {}, default)
    generator = load_generator(
        entry,
        device=how.device,
        decoding=how.decoding,
        max_new_tokens=how.max_new_tokens,
        concurrency=how.batch_size,
    )
    whats = {"detection": "detections", "query": "new questions"}
    askers = {}
    for name, what in whats.items():
        repair: Callable[[str], str] = _repairs(WORDS["repair"][name])
        askers[name] = StrictAsker(
            generator=generator, answers_dir=Path(answers_dir), how=how, what=what, repair=repair
        )
    return Assessor(askers)


def detected_by_rule(benchmark: Benchmark, rule: Callable[..., RuleVerdict]) -> pd.DataFrame:
    """What a rule says of every question, in the columns of `Assessor.detect`; `rule`
    takes a query.
    """
    rows = []
    for query in benchmark.queries.values():
        told = rule(query)
        status = AMBIGUOUS if told.ambiguous else CLEAR
        rows.append((query.query_id, query.group, status, told.explanation, ""))
    return pd.DataFrame(rows, columns=_COLUMNS)


def flag_rates(detections: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Flagged questions of each data set, as Table 1 counts them: dataset, flagged, value
    (their share of the readable ones), ci_low, ci_high (over groups), n, n_failed.
    """
    rows = []
    for name, table in detections.items():
        flags = _as_numbers(table["status"])
        found = estimate(flags.to_numpy(), table["group"])
        numbers = (found.value, found.ci_low, found.ci_high, found.n, found.n_failed)
        rows.append((name, int(flags.sum()), *numbers))
    columns = ["dataset", "flagged", "value", "ci_low", "ci_high", "n", "n_failed"]
    return pd.DataFrame(rows, columns=columns)


def status_kappa(one: pd.Series, other: pd.Series, groups: Sequence[str] | pd.Series) -> Estimate:
    """Cohen's kappa of two assessors' statuses of the same questions, in order, with an
    interval over `groups` (`association`); pairs with an unreadable one are left out, and
    counted in n_failed.
    """
    return association(_as_numbers(one), _as_numbers(other), groups, measure="kappa")


def _as_numbers(statuses: pd.Series) -> pd.Series:
    """1 for ambiguous, 0 for clear, NaN for what is neither."""
    return statuses.map({AMBIGUOUS: 1.0, CLEAR: 0.0}).astype(float)


def _why(found: Reading[Any]) -> str:  # whatever was to be read
    return str(found.failure) if found.failure else ""


def _repairs(words: str) -> Callable[[str], str]:
    return lambda reason: words.format(reason=reason)
