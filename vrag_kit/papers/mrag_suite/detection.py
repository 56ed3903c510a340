"""Detection of ambiguous questions by a model or a rule, and their rewriting by a model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd

from vrag_kit.analysis.agreement import association
from vrag_kit.analysis.comparisons import holm, paired_differences
from vrag_kit.analysis.estimates import Estimate, estimate
from vrag_kit.analysis.means import per_query, to_percent
from vrag_kit.analysis.results import save_collection_answers
from vrag_kit.analysis.strata import sort_strata
from vrag_kit.config import GREEDY, Entry, hardware_of
from vrag_kit.errors import VragError
from vrag_kit.generation.generators import load_generator
from vrag_kit.judging.llm_judge import ParsedReply, Request, StructuredAsker
from vrag_kit.papers.mrag_suite.ambiguity import (
    AMBIGUOUS,
    CLEAR,
    WORDS,
    Detection,
    ambiguous_minus_clear,
    detection_prompt,
    query_rewrite_prompt,
    read_detection,
    read_query_rewrite,
)
from vrag_kit.papers.published import published
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


LESS_CLEAR = "ambiguous − clear"
REWRITTEN_MINUS_CLEAR = "rewritten − clear"
REWRITTEN_MINUS_ORIGINAL = "rewritten − original"
"""The three contrasts: two over pairs of questions, one of each question with itself."""
CHECK = "check: oracle rewrite − clear"
"""Label of `REWRITTEN_MINUS_CLEAR` where questions were made ambiguous at random and then restored:
two random halves of the same questions, with expected difference 0.
"""
_ASKED, _ANEW = "original", "rewritten"
_CLEAR = "clear"
_NUMBERS = ["value", "ci_low", "ci_high", "n", "n_failed", "p", "unit", "baseline"]


def ambiguity_contrasts(
    statuses: Statuses,
    pairs: pd.DataFrame,
    as_asked: Mapping[str, pd.DataFrame],
    rewritten: Mapping[str, pd.DataFrame],
) -> pd.DataFrame:
    """Computes the three contrasts of every data set, stratum and model, in points. Columns:
    dataset, stratum, contrast, model, metric, value, ci_low, ci_high, n (pairs, or flagged
    questions), n_failed, p (of one test), unit, baseline.

    `pairs` come from `match_suite_questions`; `as_asked` and `rewritten` are judged answers
    (`judge_suite`, then `training_strata`) to the original and the rewritten questions, in one arm.
    The first two contrasts follow Table 8, over pairs of different questions; in the third a
    flagged question is compared with itself. A data set without a pair has no rows of the first
    two, one without a flagged question none at all.
    """
    tables = []
    by = ["stratum", "model"]
    for name, table in as_asked.items():
        metric = table["metric"].iloc[0]
        before, after = per_query(table, by=by), per_query(rewritten[name], by=by)
        own = pairs[pairs["dataset"] == name]
        for contrast, values in ((LESS_CLEAR, before), (REWRITTEN_MINUS_CLEAR, after)):
            if len(own):
                means = ambiguous_minus_clear(values, own, by=by)
                found = means[means["split"] == "difference"].drop(columns="split")
                told = {"dataset": name, "contrast": contrast, "metric": metric}
                tables.append(found.assign(**told, baseline=_CLEAR))
        flagged = statuses[name][statuses[name]["status"] == AMBIGUOUS]["query_id"]
        both = pd.concat([before.assign(version=_ASKED), after.assign(version=_ANEW)])
        both = both[both["query_id"].isin(flagged)]
        if len(both):
            found = paired_differences(both, arm="version", by=by, baseline=_ASKED)
            found = found[found["version"] == _ANEW]
            tables.append(
                found.assign(dataset=name, contrast=REWRITTEN_MINUS_ORIGINAL, metric=metric)
            )
    columns = ["dataset", "stratum", "contrast", "model", "metric", *_NUMBERS]
    if not tables:
        return pd.DataFrame(columns=columns)
    every = to_percent(pd.concat(tables, ignore_index=True))[columns]
    places = product(every["dataset"].unique(), sort_strata(every["stratum"]))
    keys = every.set_index(["dataset", "stratum"]).index
    return every.iloc[np.concatenate([np.flatnonzero(keys == place) for place in places])]


def oracle_rewrite_checks(contrasts: pd.DataFrame) -> pd.DataFrame:
    """Selects the rows of `contrasts` that are a `CHECK`: their keys, value, ci_low, ci_high, n, p,
    and p_holm, corrected for the number of checks. Empty if there are none.
    """
    checks = contrasts[contrasts["contrast"] == CHECK].dropna(subset="p")
    checks = checks.assign(p_holm=holm(checks["p"].to_numpy(float)))
    first = [name for name in ("evidence_source", "dataset", "stratum", "model") if name in checks]
    return checks[[*first, "value", "ci_low", "ci_high", "n", "p", "p_holm"]]


def save_question_versions(
    arms: Iterable[Sequence[Mapping[str, pd.DataFrame]]],
    versions: Sequence[Mapping[str, Benchmark]],
    folder: Path | str,
    name: str,
    answers_dir: Path | str,
) -> None:
    """Saves answers to original and rewritten questions by `save_collection_answers`; the first
    column, version, distinguishes them.

    `versions` are the data sets in both; `arms` have the judged answers of each version by data set
    (`SuiteEvaluation.evaluate`). Raises as `save_answers` does.
    """
    judged: dict[str, pd.DataFrame] = {}
    suite: dict[str, Benchmark] = {}
    for arm, tables in enumerate(arms):
        for version, benchmarks, told in zip((_ASKED, _ANEW), versions, tables, strict=True):
            for dataset, table in told.items():
                one = f"{dataset}, {version}, {arm}"
                judged[one] = table.copy()
                judged[one].insert(0, "version", version)
                suite[one] = benchmarks[dataset]
    save_collection_answers(judged, suite, folder, name, answers_dir)
