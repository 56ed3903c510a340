"""Claims of answers, held against what was drawn; of long answers where an answer can be
long.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any  # cells of a table

import pandas as pd

from vrag_kit.analysis import Answered, with_claims
from vrag_kit.errors import VragError
from vrag_kit.fieldguide.suite.in_words import wording_for
from vrag_kit.fieldguide.suite.long_answers import with_references
from vrag_kit.fieldguide.suite.opening import World
from vrag_kit.fieldguide.suite.truth import TruthChecker
from vrag_kit.generation import Decomposed, ask_models
from vrag_kit.judging import RuleExtractor
from vrag_kit.options import Entry
from vrag_kit.types import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class TrueClaims:
    """How the claims of answers are found, and held against a drawn edition."""

    world: World
    """What is known of the edition."""
    model: Entry
    """Asked for long answers: the one that gave the short ones."""
    answers_dir: Path | str
    run_with: Mapping[str, Any]  # a notebook's parameter

    def of(self, row: Answered) -> Answered:
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
        checker = TruthChecker(self.world.language, self.world.shown)
        queries = row.benchmark.queries.values()
        is_long = any(len(self.world.parts(query)) > 1 for query in queries)
        answers = self._long(row) if is_long else row.arm
        benchmark = with_references(row.benchmark, self.world) if is_long else row.benchmark
        checked = with_claims(benchmark, answers, extractor, checker)
        return replace(row, checked=checked, claims_of="long answers" if is_long else "questions")

    def _long(self, row: Answered) -> pd.DataFrame:
        """The long answers of the row's arm."""
        arm = row.arm
        contexts = [_context(each) for each in arm.to_dict("records")]
        asked = Decomposed(row.benchmark, self.world.parts)
        replies = ask_models(
            [self.model],
            asked.questions,
            asked.contexts(contexts),
            self.answers_dir,
            wording=wording_for(row.benchmark),
            run_with=self.run_with,
        )
        long = asked.joined(replies)
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
