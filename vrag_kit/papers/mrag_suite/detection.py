"""Detection of ambiguous questions by a model or a rule, and their rewriting by a model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pandas as pd

from vrag_kit.analysis.agreement import association
from vrag_kit.analysis.comparisons import holm, paired_differences
from vrag_kit.analysis.estimates import Estimate, cluster_means
from vrag_kit.analysis.means import per_query, to_percent
from vrag_kit.analysis.results import save_collection_answers
from vrag_kit.analysis.strata import sort_strata
from vrag_kit.config import GREEDY, Entry, hardware_of
from vrag_kit.errors import VragError
from vrag_kit.generation.generators import load_generator
from vrag_kit.judging.llm_judge import Request, StructuredAsker
from vrag_kit.papers.mrag_suite.ambiguity import (
    AMBIGUOUS,
    CLEAR,
    WORDS,
    ambiguous_minus_clear,
    detection_prompt,
    query_rewrite_prompt,
    read_detection,
    read_query_rewrite,
)
from vrag_kit.papers.published import published
from vrag_kit.types import Benchmark, Query
from vrag_kit.workspace import path as project_path

MOST_TOKENS = 512
"""Maximum number of tokens of a reply."""
_COLUMNS = ["query_id", "group", "status", "explanation", "detail"]


@dataclass(frozen=True, slots=True)
class AmbiguityDetector:
    """Detects and rewrites ambiguous questions with a model; replies are stored and parsed again
    each time, and an unparsed one is requested once more.
    """

    detector: StructuredAsker
    rewriter: StructuredAsker

    @property
    def name(self) -> str:
        """The model's name."""
        return self.detector.generator.name

    def detect(self, benchmark: Benchmark) -> pd.DataFrame:
        """Returns one row per question: query_id, group, status ("CLEAR", "AMBIGUOUS"; "" if
        unparsed), explanation, detail (why there is none).
        """
        queries = list(benchmark.queries.values())
        replies = self.detector.ask(
            [
                Request(prompt=detection_prompt(query), read=read_detection, owner=query.query_id)
                for query in queries
            ]
        )
        rows = [
            (query.query_id, query.group, *(reply.value or ("", "")), str(reply.failure or ""))
            for query, reply in zip(queries, replies, strict=True)
        ]
        return pd.DataFrame(rows, columns=_COLUMNS)

    def rewrite_queries(self, benchmark: Benchmark, detections: pd.DataFrame) -> pd.DataFrame:
        """Rewrites each question that `detections` flag from its gold evidence: query_id, original,
        question ("" if unparsed), detail.
        """
        flagged = detections[detections["status"] == AMBIGUOUS]
        queries = [benchmark.queries[query_id] for query_id in flagged["query_id"]]
        asked = []
        for query, why in zip(queries, flagged["explanation"], strict=True):
            gold = [benchmark.corpus[name] for name in benchmark.relevant(query.query_id)]
            prompt = query_rewrite_prompt(query, gold, why)
            asked.append(Request(prompt=prompt, read=read_query_rewrite, owner=query.query_id))
        rows = [
            (query.query_id, query.text, reply.value or "", str(reply.failure or ""))
            for query, reply in zip(queries, self.rewriter.ask(asked), strict=True)
        ]
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

    def asker(what: str, repair: str) -> StructuredAsker:
        return StructuredAsker(
            generator=generator,
            answers_dir=project_path(answers_dir),
            hardware=hardware_of(hardware),
            what=what,
            repair=lambda reason: repair.format(reason=reason),
        )

    words = WORDS["repair"]
    return AmbiguityDetector(
        asker("detections", words["detection"]), asker("new questions", words["query"])
    )


def detect_with_rule(benchmark: Benchmark, rule: Callable[[Query], str]) -> pd.DataFrame:
    """Applies a rule to every question, with the columns of `AmbiguityDetector.detect`. `rule` maps
    a question to the reason why it is ambiguous, "" for a clear one.
    """
    rows = []
    for query in benchmark.queries.values():
        why = rule(query)
        rows.append((query.query_id, query.group, AMBIGUOUS if why else CLEAR, why, ""))
    return pd.DataFrame(rows, columns=_COLUMNS)


Statuses = Mapping[str, pd.DataFrame]
"""Maps a data set to a detector's result for its questions (`AmbiguityDetector.detect`)."""


def with_rewritten_questions(benchmark: Benchmark, rewrites: pd.DataFrame) -> Benchmark:
    """Replaces the text of questions by `rewrites` (query_id, question). Questions whose rewrite is
    "" (unparsed) stay as they are, and so do ids, answers and labels.

    Raises `VragError` for an unknown query.
    """
    pairs = list(zip(rewrites["query_id"], rewrites["question"], strict=True))
    if unknown := [name for name, _ in pairs if name not in benchmark.queries]:
        raise VragError(
            f"with_questions: query {unknown[0]!r} is not in {benchmark.name}; take rewrites of"
            " its own questions."
        )
    new = {name: words for name, words in pairs if words}
    texts = {name: replace(benchmark.queries[name], text=words) for name, words in new.items()}
    named = json.dumps([benchmark.fingerprint, "said anew", sorted(new.items())])
    fingerprint = hashlib.sha256(named.encode()).hexdigest()
    return replace(benchmark, fingerprint=fingerprint, queries={**benchmark.queries, **texts})


def _flags(assessed: Mapping[str, Statuses]) -> pd.DataFrame:
    """The statuses of all detectors and data sets: value is 1 for ambiguous, 0 for clear, NaN for
    an unparsed one.
    """
    tables = []
    for detector, statuses in assessed.items():
        tables += [
            table.assign(detector=detector, dataset=name) for name, table in statuses.items()
        ]
    flags = pd.concat(tables, ignore_index=True)
    return flags.assign(value=flags["status"].map({AMBIGUOUS: 1.0, CLEAR: 0.0}).astype(float))


def detection_agreement(assessed: Mapping[str, Statuses]) -> pd.DataFrame:
    """Computes the agreement of each two detectors, over the questions of all data sets. Columns:
    one, other, both (flagged by both), only_one, only_other, neither, value (Cohen's κ), ci_low,
    ci_high, n, n_failed (pairs with an unparsed status, in none of the counts).

    `assessed` maps a detector to its statuses. Intervals are over the groups of questions. With one
    detector there are no rows.
    """
    keys = ["dataset", "query_id", "group"]
    wide = _flags(assessed).pivot(index=keys, columns="detector", values="value")
    groups = wide.index.map("{0[0]}/{0[2]}".format)
    rows = []
    for one, other in combinations(assessed, 2):
        counts = wide[[one, other]].dropna().value_counts()
        cells = [counts.get(pair, 0) for pair in product((1.0, 0.0), repeat=2)]
        kappa = association(wide[one], wide[other], groups.to_series(), measure="kappa")
        rows.append((one, other, *cells, *kappa))
    columns = ["one", "other", "both", "only_one", "only_other", "neither"]
    return pd.DataFrame(rows, columns=[*columns, *Estimate._fields])


def flag_rates(assessed: Mapping[str, Statuses]) -> pd.DataFrame:
    """Computes the share of flagged questions of each data set by each detector, as in Table 1:
    dataset, n_flagged, value (of the parsed ones, in percent), ci_low, ci_high (over groups), n,
    n_failed, detector, `published` (the paper's share for that data set, NaN if there is none).
    """
    flags = _flags(assessed)
    keys = ["detector", "dataset"]
    counts = flags.groupby(keys, sort=False)["value"].sum().astype(int)
    rates = cluster_means(flags, keys).assign(n_flagged=counts.to_numpy())
    rates[["value", "ci_low", "ci_high"]] *= 100
    wide = published("mrag_suite", 1).pivot(index="dataset", columns="metric", values="value")
    shares = 100 * wide["n_ambiguous"] / wide["n_full"]
    rates = rates.assign(published=rates["dataset"].map(shares))
    return rates[["dataset", "n_flagged", *Estimate._fields, "detector", "published"]]


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

    `pairs` come from `match_clear_questions`; `as_asked` and `rewritten` are judged answers
    (`judge_suite`, then `training_strata`) to the original and the rewritten questions, in one arm.
    The first two contrasts follow Table 8, over pairs of different questions; in the third a
    flagged question is compared with itself. A data set without a pair has no rows of the first
    two, one without a flagged question none at all.
    """
    tables = []
    by = ["stratum", "model"]
    for name, table in as_asked.items():
        told = {"dataset": name, "metric": table["metric"].iloc[0]}
        before, after = per_query(table, by=by), per_query(rewritten[name], by=by)
        own = pairs[pairs["dataset"] == name]
        for contrast, values in ((LESS_CLEAR, before), (REWRITTEN_MINUS_CLEAR, after)):
            if len(own):
                found = ambiguous_minus_clear(values, own, by=by)
                tables.append(found.assign(**told, contrast=contrast, baseline=_CLEAR))
        flagged = statuses[name].query("status == @AMBIGUOUS")["query_id"]
        both = pd.concat([before.assign(version=_ASKED), after.assign(version=_ANEW)])
        both = both[both["query_id"].isin(flagged)]
        if len(both):
            found = paired_differences(both, arm="version", by=by, baseline=_ASKED)
            tables.append(found.assign(**told, contrast=REWRITTEN_MINUS_ORIGINAL))
    columns = ["dataset", "stratum", "contrast", "model", "metric", *_NUMBERS]
    if not tables:
        return pd.DataFrame(columns=columns)
    every = to_percent(pd.concat(tables, ignore_index=True))
    order = {"dataset": list(as_asked), "stratum": sort_strata(every["stratum"])}
    every = every.sort_values(
        list(order), key=lambda keys: keys.map(order[str(keys.name)].index), kind="stable"
    )
    return every[columns]


def oracle_rewrite_checks(contrasts: pd.DataFrame) -> pd.DataFrame:
    """Selects the rows of `contrasts` that are a `CHECK`: evidence_source, dataset, stratum, model,
    value, ci_low, ci_high, n, p, and p_holm, corrected for the number of checks. Empty if there are
    none.
    """
    checks = contrasts[contrasts["contrast"] == CHECK].dropna(subset="p")
    checks = checks.assign(p_holm=holm(checks["p"].to_numpy(float)))
    keys = ["evidence_source", "dataset", "stratum", "model"]
    return checks[[*keys, "value", "ci_low", "ci_high", "n", "p", "p_holm"]]


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
    (`judge_suite`). Raises as `save_answers` does.
    """
    judged: dict[str, pd.DataFrame] = {}
    suite: dict[str, Benchmark] = {}
    for arm, tables in enumerate(arms):
        for version, benchmarks, of_version in zip((_ASKED, _ANEW), versions, tables, strict=True):
            for dataset, table in of_version.items():
                part = f"{dataset}, {version}, {arm}"
                judged[part] = table.assign(version=version)[["version", *table.columns]]
                suite[part] = benchmarks[dataset]
    save_collection_answers(judged, suite, folder, name, answers_dir)
