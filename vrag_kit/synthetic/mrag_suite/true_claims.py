"""Claims of answers, held against what was drawn; of long answers where an answer can be
long.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any  # cells of a table

import pandas as pd

from vrag_kit.claims import RuleExtractor, check_answers
from vrag_kit.config import Entry
from vrag_kit.errors import VragError
from vrag_kit.generation import ask_models
from vrag_kit.papers.cross_benchmark import JudgedBenchmark
from vrag_kit.synthetic.mrag_suite.ground_truth import OracleClaimChecker
from vrag_kit.synthetic.mrag_suite.in_words import prompts_for
from vrag_kit.synthetic.mrag_suite.long_answers import with_reference_answers
from vrag_kit.synthetic.mrag_suite.opening import GroundTruth
from vrag_kit.synthetic.mrag_suite.sub_questions import DecomposedBenchmark
from vrag_kit.types import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleClaims:
    """How the claims of answers are found, and held against a drawn edition."""

    world: GroundTruth
    """What is known of the edition."""
    model: Entry
    """Asked for long answers: the one that gave the short ones."""
    answers_dir: Path | str
    decoding: Mapping[str, Any]  # a notebook's parameter
    hardware: Mapping[str, Any]  # likewise

    def extract(self, row: JudgedBenchmark) -> JudgedBenchmark:
        """The row with the claims of its answers, read by the rules of the guide's
        language and held against what was drawn.

        Where questions have several parts (`World.parts`), these are asked one by one over
        the documents that the answer saw, and joined, and what is right is what is true of
        all parts: a short answer makes one claim. Other questions' answers are taken as
        they are. Raises `VragError` where another model
        gave the short answers, and where an answer makes a claim, and was shown a picture
        that is not of the drawing.
        """
        extractor = RuleExtractor(self.world.language)
        checker = OracleClaimChecker(self.world.language, self.world.shown)
        queries = row.benchmark.queries.values()
        is_long = any(len(self.world.sub_questions(query)) > 1 for query in queries)
        answers = self._long(row) if is_long else row.arm
        benchmark = with_reference_answers(row.benchmark, self.world) if is_long else row.benchmark
        checked = check_answers(benchmark, answers, extractor, checker)
        return replace(row, checked=checked, claims_of="long answers" if is_long else "questions")

    def _long(self, row: JudgedBenchmark) -> pd.DataFrame:
        """The long answers of the row's arm."""
        arm = row.arm
        contexts = [_context(each) for each in arm.to_dict("records")]
        asked = DecomposedBenchmark(row.benchmark, self.world.sub_questions)
        what = ([self.model], asked.questions, asked.contexts(contexts), self.answers_dir)
        replies = ask_models(
            *what,
            prompts=prompts_for(row.benchmark),
            decoding=self.decoding,
            hardware=self.hardware,
        )
        long = asked.join_answers(replies)
        if set(long["model"]) != set(arm["model"]):
            raise VragError(
                f"{row.name}: {arm['model'].iloc[0]} gave the short answers, {self.model!r} the"
                " long ones; expected one model."
            )
        return long


def _context(answer: Mapping[Hashable, Any]) -> Context:
    """What an answer was shown."""
    return Context(
        query_id=answer["query_id"],
        setting=answer["setting"],
        k=answer["k"],
        doc_ids=tuple(answer["doc_ids"]),
    )
