"""Long answers of the suite, and who reads their claims, as a notebook's parameters name
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from vrag_kit.analysis import with_claims
from vrag_kit.benchmarks.suite import Entry as DataSet
from vrag_kit.errors import VragError
from vrag_kit.fieldguide.suite.asking import true_answer
from vrag_kit.fieldguide.suite.checking import open_rule_checker
from vrag_kit.fieldguide.suite.opening import World, open_world
from vrag_kit.fieldguide.suite.truth import TruthChecker
from vrag_kit.fieldguide.suite.wording import FIELD_GUIDE, open_wording
from vrag_kit.generation import Decomposed, ask_models
from vrag_kit.judging import (
    ClaimChecker,
    ClaimExtractor,
    RuleChecker,
    RuleExtractor,
    Sentences,
    load_checker,
    load_extractor,
)
from vrag_kit.judging.claims_by_rule import RULE
from vrag_kit.options import Entry
from vrag_kit.papers.mrag_suite.in_modes import InModes
from vrag_kit.types import Benchmark, Context

Answers = dict[str, tuple[Benchmark, pd.DataFrame]]
"""Data set → its questions, and the table of long answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LongAnswers:
    """Who gives long answers, and how."""

    models: Sequence[Entry]
    prompt: str
    """"field-guide" for the shipped answerers, which are asked one short question a trait
    (`Decomposed`); or one of the paper's prompts, whose line "Long answer" is read.
    """
    world: World | None
    """What is known of a drawn edition; None for real data."""
    run_with: Mapping[str, Any]  # a notebook's parameter

    def ask(
        self, datasets: Mapping[str, Benchmark], modes: InModes, answers_dir: Path | str
    ) -> Answers:
        """The long answers to every data set's questions, in the modes of evidence.

        In a drawn edition the reference is what is true of all that a long answer may
        tell; real data have none but their accepted answers. Raises `VragError` for
        "field-guide" with real data, and as `ask_models` does.
        """
        found = {}
        for name, whole in datasets.items():
            contexts = modes.contexts(whole)
            found[name] = self._ask(modes.chosen(whole), contexts, answers_dir)
        return found

    def _ask(
        self, benchmark: Benchmark, contexts: Sequence[Context], answers_dir: Path | str
    ) -> tuple[Benchmark, pd.DataFrame]:
        domain = str(next(iter(benchmark.queries.values())).metadata["domain"])
        wording = open_wording(self.prompt, domain=domain, answer="long")
        how: dict[str, Any] = {"wording": wording, "run_with": self.run_with}
        if self.prompt != FIELD_GUIDE:
            return benchmark, ask_models(self.models, benchmark, contexts, answers_dir, **how)
        if self.world is None:
            raise VragError(
                f"prompt {FIELD_GUIDE!r}: the shipped answerers are asked in parts, which are known"
                " of drawn editions alone. Take one of the paper's prompts."
            )
        told = with_references(benchmark, self.world)
        parts = Decomposed(told, self.world.parts)
        replies = ask_models(
            self.models, parts.questions, parts.contexts(contexts), answers_dir, **how
        )
        return told, parts.joined(replies)


@dataclass(frozen=True, slots=True)
class ClaimReaders:
    """Who takes answers apart, who checks their claims, and who knows the truth."""

    extractor: ClaimExtractor
    checker: ClaimChecker
    truth: ClaimChecker | None
    """None for real data, where people's labels tell."""

    def check(self, answers: Answers) -> pd.DataFrame:
        """One table of all data sets' answers: dataset, the columns of `with_claims`, and
        true_sheet, the same sheet with the labels of the truth; None where nobody knows
        it.
        """
        parts = []
        for name, (benchmark, table) in answers.items():
            part = with_claims(benchmark, table, self.extractor, self.checker)
            true = pd.Series(None, index=part.index, dtype=object)
            if self.truth is not None:
                true = with_claims(benchmark, table, self.extractor, self.truth)["sheet"]
            parts.append(part.assign(dataset=name, true_sheet=true))
        return pd.concat(parts, ignore_index=True)


def with_references(benchmark: Benchmark, world: World) -> Benchmark:
    """The same questions with the reference of a long answer: what is true of every trait
    that `world.parts` asks for. Questions about anything else stay as they are.
    """
    queries = {}
    for query_id, query in benchmark.queries.items():
        true = true_answer(query.text, world.language, world.species)
        told = {**query.metadata, "reference": true} if true else query.metadata
        queries[query_id] = replace(query, metadata=told)
    return replace(benchmark, queries=queries)


def known_world(suite: str | Mapping[str, DataSet]) -> World | None:
    """What is known of a drawn edition; None for a mapping of real data sets."""
    return None if isinstance(suite, Mapping) else open_world(suite)


def open_readers(
    extractor: Entry,
    checker: Entry,
    world: World | None,
    answers_dir: Path | str,
    *,
    answerers: Sequence[Entry] = (),
    run_with: Mapping[str, Any] | None = None,  # a notebook's parameter
) -> ClaimReaders:
    """The readers that parameters name; their words are kept in `answers_dir`.

    With the extractor "rule" rules of the drawn edition's language take answers apart
    and read texts, and the model `checker` is asked each claim's question about pictures
    (with the checker "rule" nobody looks: claims about pictures have no label). Else
    both are models, as `load_extractor` and `load_checker` have them. An extractor ""
    is "rule", as in a forecast where the model is missing; without a drawn edition its
    claims are whole sentences. Raises `VragError` for a checker that is one of the
    `answerers`.
    """
    true = None if world is None else TruthChecker(world.language, world.shown)
    grammar = Sentences() if world is None else world.language
    by_rule = extractor in ("", RULE)
    taker: ClaimExtractor = RuleExtractor(grammar)
    if not by_rule:
        taker = load_extractor(extractor, answers_dir, run_with=run_with)
    how: dict[str, Any] = {"answerers": answerers, "run_with": run_with}
    judge: ClaimChecker
    if checker == RULE:
        judge = RuleChecker(grammar)
    elif by_rule and world is not None:
        judge = open_rule_checker(world, checker, answers_dir, **how)
    else:
        judge = load_checker(checker, answers_dir, **how)
    return ClaimReaders(taker, judge, true)
