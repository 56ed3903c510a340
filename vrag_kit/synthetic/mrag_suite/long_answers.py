"""Long answers of the suite, and who reads their claims, as a notebook's parameters name
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from vrag_kit.benchmarks.datasets.collection import Entry as DataSet
from vrag_kit.claims import (
    ClaimChecker,
    ClaimExtractor,
    RuleChecker,
    RuleExtractor,
    SentenceGrammar,
    check_answers,
    load_checker,
    load_extractor,
)
from vrag_kit.claims.checkers import RULE
from vrag_kit.config import Entry
from vrag_kit.errors import VragError
from vrag_kit.generation import ask_models
from vrag_kit.papers.mrag_suite.in_modes import EvidenceModes
from vrag_kit.synthetic.mrag_suite.asking import reference_answer
from vrag_kit.synthetic.mrag_suite.checking import open_rule_checker
from vrag_kit.synthetic.mrag_suite.ground_truth import OracleClaimChecker
from vrag_kit.synthetic.mrag_suite.opening import GroundTruth, open_ground_truth
from vrag_kit.synthetic.mrag_suite.prompts import FIELD_GUIDE, load_prompts
from vrag_kit.synthetic.mrag_suite.sub_questions import DecomposedBenchmark
from vrag_kit.types import Benchmark, Context

Answers = dict[str, tuple[Benchmark, pd.DataFrame]]
"""Data set → its questions, and the table of long answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LongAnswerExperiment:
    """Who gives long answers, and how."""

    models: Sequence[Entry]
    prompt: str
    """"field-guide" for the shipped answerers, which are asked one short question a trait
    (`DecomposedBenchmark`); or one of the paper's prompts, whose line "Long answer" is read.
    """
    world: GroundTruth | None
    """What is known of a drawn edition; None for real data."""
    decoding: Mapping[str, Any]  # a notebook's parameter
    hardware: Mapping[str, Any]  # likewise

    def ask(
        self, datasets: Mapping[str, Benchmark], modes: EvidenceModes, answers_dir: Path | str
    ) -> Answers:
        """The long answers to every data set's questions, in the modes of evidence.

        In a drawn edition the reference is what is true of all that a long answer may
        tell; real data have none but their accepted answers. Raises `VragError` for
        "field-guide" with real data, and as `ask_models` does.
        """
        found = {}
        for name, whole in datasets.items():
            contexts = modes.contexts(whole)
            found[name] = self._ask(modes.sample(whole), contexts, answers_dir)
        return found

    def _ask(
        self, benchmark: Benchmark, contexts: Sequence[Context], answers_dir: Path | str
    ) -> tuple[Benchmark, pd.DataFrame]:
        domain = str(next(iter(benchmark.queries.values())).metadata["domain"])
        prompts = load_prompts(self.prompt, domain=domain, answer="long")
        how: dict[str, Any] = {
            "prompts": prompts,
            "decoding": self.decoding,
            "hardware": self.hardware,
        }
        if self.prompt != FIELD_GUIDE:
            return benchmark, ask_models(self.models, benchmark, contexts, answers_dir, **how)
        if self.world is None:
            raise VragError(
                f"prompt {FIELD_GUIDE!r}: the shipped answerers are asked in parts, which are known"
                " of drawn editions alone. Take one of the paper's prompts."
            )
        told = with_reference_answers(benchmark, self.world)
        parts = DecomposedBenchmark(told, self.world.sub_questions)
        replies = ask_models(
            self.models, parts.questions, parts.contexts(contexts), answers_dir, **how
        )
        return told, parts.join_answers(replies)


@dataclass(frozen=True, slots=True)
class ClaimPipeline:
    """Who takes answers apart, who checks their claims, and who knows the truth."""

    extractor: ClaimExtractor
    checker: ClaimChecker
    truth: ClaimChecker | None
    """None for real data, where people's labels tell."""

    def extract_and_check(self, answers: Answers) -> pd.DataFrame:
        """One table of all data sets' answers: dataset, the columns of `check_answers`, and
        true_sheet, the same sheet with the labels of the truth; None where nobody knows
        it.
        """
        parts = []
        for name, (benchmark, table) in answers.items():
            part = check_answers(benchmark, table, self.extractor, self.checker)
            true = pd.Series(None, index=part.index, dtype=object)
            if self.truth is not None:
                true = check_answers(benchmark, table, self.extractor, self.truth)["sheet"]
            parts.append(part.assign(dataset=name, true_sheet=true))
        return pd.concat(parts, ignore_index=True)


def with_reference_answers(benchmark: Benchmark, world: GroundTruth) -> Benchmark:
    """The same questions with the reference of a long answer: what is true of every trait
    that `world.sub_questions` asks for. Questions about anything else stay as they are.
    """
    queries = {}
    for query_id, query in benchmark.queries.items():
        true = reference_answer(query.text, world.language, world.species)
        told = {**query.metadata, "reference": true} if true else query.metadata
        queries[query_id] = replace(query, metadata=told)
    return replace(benchmark, queries=queries)


def ground_truth_or_none(suite: str | Mapping[str, DataSet]) -> GroundTruth | None:
    """What is known of a drawn edition; None for a mapping of real data sets."""
    return None if isinstance(suite, Mapping) else open_ground_truth(suite)


def open_claim_pipeline(
    extractor: Entry,
    checker: Entry,
    world: GroundTruth | None,
    answers_dir: Path | str,
    *,
    answerers: Sequence[Entry] = (),
    hardware: Mapping[str, Any] | None = None,  # a notebook's parameter
) -> ClaimPipeline:
    """The readers that parameters name; their words are kept in `answers_dir`.

    With the extractor "rule" rules of the drawn edition's language take answers apart
    and read texts, and the model `checker` is asked each claim's question about pictures
    (with the checker "rule" nobody looks: claims about pictures have no label). Else
    both are models, as `load_extractor` and `load_checker` have them. An extractor ""
    is "rule", as in a forecast where the model is missing; without a drawn edition its
    claims are whole sentences. Raises `VragError` for a checker that is one of the
    `answerers`.
    """
    true = None if world is None else OracleClaimChecker(world.language, world.shown)
    grammar = SentenceGrammar() if world is None else world.language
    by_rule = extractor in ("", RULE)
    taker: ClaimExtractor = RuleExtractor(grammar)
    if not by_rule:
        taker = load_extractor(extractor, answers_dir, hardware=hardware)
    how: dict[str, Any] = {"answerers": answerers, "hardware": hardware}
    judge: ClaimChecker
    if checker == RULE:
        judge = RuleChecker(grammar)
    elif by_rule and world is not None:
        judge = open_rule_checker(world, checker, answers_dir, **how)
    else:
        judge = load_checker(checker, answers_dir, **how)
    return ClaimPipeline(taker, judge, true)
