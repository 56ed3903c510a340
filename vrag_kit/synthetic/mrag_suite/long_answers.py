"""Long answers of the suite and their claims: who gives them, who extracts and checks claims, and
the claims of any benchmark's answers by ground truth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any  # options of `load_checker`

import pandas as pd

from vrag_kit.benchmarks.articles import split_sentences
from vrag_kit.claims import (
    ClaimChecker,
    ClaimExtractor,
    RuleChecker,
    RuleExtractor,
    check_answers,
    forbid_self_check,
    load_checker,
    load_extractor,
)
from vrag_kit.claims.checkers import RULE
from vrag_kit.claims.verdicts import Label
from vrag_kit.config import Entry
from vrag_kit.errors import VragError
from vrag_kit.generation import ask_models, load_generator
from vrag_kit.generation.prompts import PromptSet
from vrag_kit.papers.cross_benchmark import JudgedBenchmark
from vrag_kit.papers.mrag_suite.modes import SuiteEvidence
from vrag_kit.synthetic.mrag_suite.ground_truth import (
    GroundTruth,
    OracleClaimChecker,
    VisualClaimChecker,
)
from vrag_kit.synthetic.mrag_suite.prompts import FIELD_GUIDE, load_prompts, prompts_for
from vrag_kit.synthetic.mrag_suite.sub_questions import DecomposedBenchmark
from vrag_kit.types import Benchmark, Context, JsonView

_REPLY_TOKENS = 16  # of the model that is asked about images


class SentenceGrammar:
    """Splits texts into sentences, and knows no other rule.
    Implements `Grammar`.
    """

    def claims(self, question: str, words: str) -> Sequence[str]:
        """Return every distinct sentence as a claim; the question is ignored."""
        return tuple(dict.fromkeys(split_sentences(words)))

    def relation(self, claim: str, text: str) -> Label:
        """Return None: the relation of a text to a sentence is unknown."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LongQuestions:
    """The questions of a data set that ask for long answers, in the modes of evidence."""

    benchmark: Benchmark
    """With the reference of each long answer, where it is known."""
    questions: Benchmark
    """What is asked: the same questions, or their parts."""
    contexts: Sequence[Context]
    prompts: PromptSet
    parts: DecomposedBenchmark | None = None
    """None for models that write a long answer at once."""

    def ask(
        self,
        models: Sequence[Entry],
        answers_dir: Path | str,
        *,
        decoding: JsonView | None = None,
        hardware: JsonView | None = None,
    ) -> pd.DataFrame:
        """Return the long answers. Raises as `ask_models` does."""
        what = (models, self.questions, self.contexts, answers_dir)
        prompts = self.prompts
        answers = ask_models(*what, prompts=prompts, decoding=decoding, hardware=hardware)
        return answers if self.parts is None else self.parts.join_answers(answers)


def long_questions(
    suite: Mapping[str, Benchmark], modes: SuiteEvidence, prompt: str, world: GroundTruth | None
) -> dict[str, LongQuestions]:
    """Return by data set what is asked for long answers, in the modes of evidence.

    `prompt` is "field-guide" for the shipped answerers, which are asked one short question a trait
    (`DecomposedBenchmark`); or one of the paper's prompts, whose line "Long answer" is read. In a
    synthetic edition the reference is the true value of all that a long answer may say; real data,
    where `world` is None, have only their accepted answers. Raises `VragError` for "field-guide"
    with real data.
    """
    if prompt == FIELD_GUIDE and world is None:
        raise VragError(
            f"prompt {FIELD_GUIDE!r}: the shipped answerers are asked in parts, which are known of"
            " drawn editions alone. Take one of the paper's prompts."
        )
    found = {}
    for name, whole in suite.items():
        benchmark, contexts = modes.sample(whole), modes.modes(whole)
        domain = str(next(iter(benchmark.queries.values())).metadata["domain"])
        prompts = load_prompts(prompt, domain=domain, answer="long")
        if prompt == FIELD_GUIDE and world is not None:
            benchmark = world.with_reference_answers(benchmark)
            found[name] = _in_parts(world, benchmark, contexts, prompts)
        else:
            found[name] = LongQuestions(
                benchmark=benchmark, questions=benchmark, contexts=contexts, prompts=prompts
            )
    return found


def _in_parts(
    world: GroundTruth, benchmark: Benchmark, contexts: Sequence[Context], prompts: PromptSet
) -> LongQuestions:
    parts = DecomposedBenchmark(benchmark, world.sub_questions)
    return LongQuestions(
        benchmark=benchmark,
        questions=parts.questions,
        contexts=parts.contexts(contexts),
        prompts=prompts,
        parts=parts,
    )


@dataclass(frozen=True, slots=True)
class ClaimPipeline:
    """Extracts claims from answers, checks them, and has their true labels."""

    extractor: ClaimExtractor
    checker: ClaimChecker
    truth: ClaimChecker | None
    """None for real data, where people's labels are the truth."""

    def check(self, suite: Mapping[str, Benchmark], answers: pd.DataFrame) -> pd.DataFrame:
        """Return the answers of all data sets (column dataset) with the columns of `check_answers`
        and true_sheet, the same sheet with the true labels; None where these are unknown.
        """
        parts = []
        for name, table in answers.groupby("dataset", sort=False):
            benchmark = suite[str(name)]
            part = check_answers(benchmark, table, self.extractor, self.checker)
            true = pd.Series(None, index=part.index, dtype=object)
            if self.truth is not None:
                true = check_answers(benchmark, table, self.extractor, self.truth)["sheet"]
            parts.append(part.assign(true_sheet=true))
        return pd.concat(parts, ignore_index=True)


def open_claim_pipeline(
    extractor: Entry,
    checker: Entry,
    world: GroundTruth | None,
    answers_dir: Path | str,
    *,
    answerers: Sequence[Entry] = (),
    hardware: JsonView | None = None,
) -> ClaimPipeline:
    """Open the extractor and the checker that parameters name; replies are stored in `answers_dir`.

    With the extractor "rule" the grammar of the synthetic edition extracts claims and reads texts,
    and the model `checker` is asked each claim's question about images (with the checker "rule"
    claims about images have no label). Else both are models, as `load_extractor` and `load_checker`
    have them. An extractor "" is "rule", as in a dry run where the model is missing; without a
    synthetic edition its claims are whole sentences. `hardware` names fields of `Hardware`. Raises
    `VragError` for a checker that is one of the `answerers`.
    """
    grammar = SentenceGrammar() if world is None else world.language
    by_rule = extractor in ("", RULE)
    claim_extractor: ClaimExtractor = RuleExtractor(grammar)
    if not by_rule:
        claim_extractor = load_extractor(extractor, answers_dir, hardware=hardware)
    claim_checker: ClaimChecker = RuleChecker(grammar)
    if by_rule and checker != RULE and world is not None:
        forbid_self_check(checker, answerers)
        decoding = {"max_new_tokens": _REPLY_TOKENS}
        generator = load_generator(checker, decoding=decoding, hardware=hardware)
        images = VisualClaimChecker(world, generator, answers_dir, hardware=hardware)
        claim_checker = RuleChecker(grammar, images)
    elif checker != RULE:
        how: dict[str, Any] = {"answerers": answerers, "hardware": hardware}
        claim_checker = load_checker(checker, answers_dir, **how)
    truth = None if world is None else OracleClaimChecker(world)
    return ClaimPipeline(claim_extractor, claim_checker, truth)


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleClaims:
    """Extracts the claims of answers by the grammar, and checks them by ground truth."""

    world: GroundTruth
    model: Entry
    """Asked for long answers: the model that gave the short ones."""
    answers_dir: Path | str
    decoding: JsonView
    hardware: JsonView

    def extract(self, row: JudgedBenchmark) -> JudgedBenchmark:
        """Return the row with the checked claims of its answers.

        Where questions have several parts (`GroundTruth.sub_questions`), these are asked one by one
        over the documents that the answer was shown, and joined; the reference is then the true
        value of all parts. A short answer makes one claim. Other questions' answers are taken as
        they are. Raises `VragError` where another model gave the short answers, and where an answer
        makes a claim and was shown an image that is not of the edition.
        """
        extractor, checker = RuleExtractor(self.world.language), OracleClaimChecker(self.world)
        queries = row.benchmark.queries.values()
        if all(len(self.world.sub_questions(query)) == 1 for query in queries):
            checked = check_answers(row.benchmark, row.arm, extractor, checker)
            return replace(row, checked=checked, claims_of="questions")
        benchmark = self.world.with_reference_answers(row.benchmark)
        checked = check_answers(benchmark, self._long_answers(row), extractor, checker)
        return replace(row, checked=checked, claims_of="long answers")

    def _long_answers(self, row: JudgedBenchmark) -> pd.DataFrame:
        arm = row.arm
        columns = (arm["query_id"], arm["setting"], arm["k"], arm["doc_ids"])
        contexts = [
            Context(query_id=query_id, setting=setting, k=k, doc_ids=tuple(doc_ids))
            for query_id, setting, k, doc_ids in zip(*columns, strict=True)
        ]
        asked = _in_parts(self.world, row.benchmark, contexts, prompts_for(row.benchmark))
        how = {"decoding": self.decoding, "hardware": self.hardware}
        long = asked.ask([self.model], self.answers_dir, **how)
        if set(long["model"]) != set(arm["model"]):
            raise VragError(
                f"{row.name}: {arm['model'].iloc[0]} gave the short answers, {self.model!r} the"
                " long ones; expected one model."
            )
        return long
