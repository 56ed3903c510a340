"""What is alike for all models that are asked about the same contexts: made once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from vrag_kit.generation.questions import Questions
from vrag_kit.generation.rendering import Rendered, rendered
from vrag_kit.generation.wording import Wording
from vrag_kit.types import Benchmark, Context, Prompt

ARM = (
    "setting",
    "k",
    "m",
    "draw",
    "query_id",
    "group",
    "template",
    "conversation_id",
    "turn",
)
"""The columns of a table of answers that its contexts tell."""


@dataclass(slots=True)
class Alike:
    """Prompts without a history or a search, and the cells that no model changes."""

    benchmark: Benchmark
    wording: Wording
    _worded: dict[Context, Rendered] = field(default_factory=dict)
    _asked: list[Questions] = field(default_factory=list)
    _arms: tuple[Sequence[Context], pd.DataFrame] | None = None

    def worded(self, context: Context) -> Rendered:
        """The prompt of a context, and the documents that it shows."""
        if made := self._worded.get(context):
            return made
        corpus = self.benchmark.corpus
        documents = tuple(corpus[doc_id] for doc_id in context.doc_ids)
        query = self.benchmark.queries[context.query_id]
        made = rendered(self.wording.template_of(context), query, documents)
        self._worded[context] = made
        return made

    def questions(self, prompts: Sequence[Prompt]) -> Questions:
        """Some of these prompts, to be asked together."""
        for known in self._asked:
            if known.are(prompts):
                return known
        self._asked.append(Questions(prompts))
        return self._asked[-1]

    def arms(self, contexts: Sequence[Context]) -> pd.DataFrame:
        """One row a context with the columns `ARM`."""
        if self._arms is None or self._arms[0] is not contexts:
            rows = [self._arm(context) for context in contexts]
            self._arms = contexts, pd.DataFrame(rows, columns=list(ARM)).astype({"m": "Int64"})
        return self._arms[1]

    def _arm(self, context: Context) -> tuple[object, ...]:
        query = self.benchmark.queries[context.query_id]
        what = (context.setting, context.k, context.m, context.draw)
        template = self.wording.template_of(context).name
        place = (query.conversation_id or query.query_id, query.turn)
        return (*what, query.query_id, query.group, template, *place)
