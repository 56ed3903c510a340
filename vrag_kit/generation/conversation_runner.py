"""`ConversationRunner`: generates a table of answers from contexts, for one model. Each turn is
searched for, rendered with the earlier turns and asked once, and may be the last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from vrag_kit.config import Hardware
from vrag_kit.errors import VragError
from vrag_kit.forecast import STAND_IN
from vrag_kit.generation.answers import AnswerStore
from vrag_kit.generation.ask import ask_prompts
from vrag_kit.generation.asking_options import Task
from vrag_kit.generation.conversation import History, Thread, conversation_key, run_conversations
from vrag_kit.generation.conversation_config import ConversationConfig, RetrievedEvidence
from vrag_kit.generation.generator import Generator
from vrag_kit.generation.rendering import RenderedPrompt, render_with_documents
from vrag_kit.types import Answer, Benchmark, Context, DocId, Prompt

ANSWER_COLUMNS = (
    "benchmark",
    "model",
    "setting",
    "k",
    "m",
    "draw",
    "sample",
    "query_id",
    "group",
    "doc_ids",
    "template",
    "answer",
    "status",
    "detail",
    "answer_id",
)
_ARM = (
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
"""The columns that contexts determine."""
CONVERSATION_COLUMNS = (
    "conversation_id",
    "turn",
    "history",
    "search_query",
    "rewrite_status",
    "n_skipped",
    "max_answer_tokens",
    "answer_tokenizer",
    "enough",
)
"""Columns of a conversation: its id (the query's for a standalone question), turn, and history
("generated", "reference", "none"); search_query, rewrite_status and n_skipped as in
`RetrievedEvidence`; the token limit of answers and its tokenizer (missing and "" without a limit),
and whether this answer reached it.
"""


_Known = tuple[RetrievedEvidence, tuple[DocId, ...]]
"""What was found for a turn, and the documents that its prompt shows."""
_NOTHING: _Known = (RetrievedEvidence(), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRunner:
    """Asks one model about contexts of a benchmark, and stores its answers."""

    generator: Generator
    benchmark: Benchmark
    store: AnswerStore
    conversation: ConversationConfig
    how: Hardware
    samples: int = 1
    prompts: dict[Context, RenderedPrompt] = field(default_factory=dict)
    """Rendered prompts without a history or a search, reused for other models."""

    def run(self, contexts: Sequence[Context]) -> pd.DataFrame:
        """Return one row per context and sample, with `ANSWER_COLUMNS` and `CONVERSATION_COLUMNS`.
        Raises as `ask_model` does.
        """
        generator, samples = self.generator, self.samples
        if samples > 1 and generator.deterministic:
            raise VragError(
                f"{generator.name}: {samples} samples are asked for, but it decodes greedily,"
                " so that they would be copies. Set samples to 1, or another `decoding`."
            )
        tables = []
        for sample in range(samples):
            turns = _Turns(self, sample)
            over = None if self.conversation.stop is None else turns.over
            history = self.conversation.history
            answers = run_conversations(
                self.benchmark, contexts, turns.ask, history=history, over=over
            )
            tables.append(turns.table(contexts, answers))
        table = pd.concat(tables, ignore_index=True)
        if count := int(table["n_skipped"].sum()):
            print(
                f"{generator.name}: {count:,} times a document was found that has nothing to show;"
                " it is passed over",
                flush=True,
            )
        return table


@dataclass(slots=True)
class _Turns:
    """Asks the turns of one sample; remembers what they were asked with and scored."""

    inquiry: ConversationRunner
    sample: int
    known: dict[Context, _Known] = field(default_factory=dict)
    """What was found for a turn, and the documents that its prompt shows."""
    scores: dict[Thread | None, tuple[float, ...]] = field(default_factory=dict)

    def ask(self, contexts: Sequence[Context], histories: Sequence[History]) -> list[Answer]:
        """Search for some turns, and ask those without a failed search."""
        found = self._searched(contexts, histories)
        turns = zip(contexts, found, histories, strict=True)
        worded = [None if each[1].failure else self._worded(*each) for each in turns]
        for context, each, made in zip(contexts, found, worded, strict=True):
            self.known[context] = each, made.doc_ids if made else ()
        prompts = [made.prompt for made in worded if made]
        pairs = zip(contexts, worded, strict=True)
        said = iter(self._asked([context.query_id for context, made in pairs if made], prompts))
        return [
            next(said) if made else _unsearched(each)
            for each, made in zip(found, worded, strict=True)
        ]

    def over(self, contexts: Sequence[Context], answers: Sequence[Answer]) -> list[bool]:
        """Score some answers, and return which end their conversations. Placeholders of a dry run
        end none.
        """
        stop = self.inquiry.conversation.stop
        if stop is None or not contexts:
            return [False] * len(contexts)
        scores = stop.score(self.table(contexts, answers))
        ends = []
        for context, answer, score in zip(contexts, answers, scores, strict=True):
            thread = conversation_key(self.inquiry.benchmark, context)
            known = math.nan if answer.fields.get(STAND_IN) else float(score)
            self.scores[thread] = (*self.scores.get(thread, ()), known)
            ends.append(stop.rule(self.scores[thread]) is not None)
        return ends

    def table(self, contexts: Sequence[Context], answers: Sequence[Answer]) -> pd.DataFrame:
        """Return one row per context, with `ANSWER_COLUMNS` and `CONVERSATION_COLUMNS`."""
        inquiry, cut = self.inquiry, self.inquiry.conversation.cut
        known = [self.known.get(context, _NOTHING) for context in contexts]
        own: dict[str, Any] = {  # Any: cells
            "benchmark": inquiry.benchmark.name,
            "model": inquiry.generator.name,
            "sample": self.sample,
            "doc_ids": [shown for _, shown in known],
            "answer": [_words(each) for each in answers],
            "status": [each.status.value for each in answers],
            "detail": [each.detail for each in answers],
            "answer_id": [each.answer_id for each in answers],
            "history": inquiry.conversation.history,
            "search_query": [found.search_query for found, _ in known],
            "rewrite_status": [found.rewrite_status for found, _ in known],
            "n_skipped": [found.n_skipped for found, _ in known],
            "max_answer_tokens": cut.tokens if cut else pd.NA,
            "answer_tokenizer": cut.tokenizer if cut else "",
            "enough": [bool(cut and each.fields.get("enough")) for each in answers],
        }
        arms = [self._arm(context) for context in contexts]
        table = pd.DataFrame(arms, columns=list(_ARM)).astype({"m": "Int64"}).assign(**own)
        return table[[*ANSWER_COLUMNS, *CONVERSATION_COLUMNS]].astype(
            {"max_answer_tokens": "Int64"}
        )

    def _arm(self, context: Context) -> tuple[object, ...]:
        """What a context tells: `_ARM`."""
        query = self.inquiry.benchmark.queries[context.query_id]
        what = (context.setting, context.k, context.m, context.draw)
        template = self.inquiry.conversation.prompts.template_for(context).name
        place = (query.conversation_id or query.query_id, query.turn)
        return (*what, query.query_id, query.group, template, *place)

    def _searched(
        self, contexts: Sequence[Context], histories: Sequence[History]
    ) -> Sequence[RetrievedEvidence]:
        """What was found for each turn; nothing where nothing is searched."""
        search = self.inquiry.conversation.search
        if search is None:
            return [RetrievedEvidence()] * len(contexts)
        return search.find(self.inquiry.benchmark, contexts, histories)

    def _worded(
        self, context: Context, found: RetrievedEvidence, history: History
    ) -> RenderedPrompt:
        """The prompt of a context, and the documents that it shows."""
        query = self.inquiry.benchmark.queries[context.query_id]
        template = self.inquiry.conversation.prompts.template_for(context)
        if self.inquiry.conversation.search is not None:
            return render_with_documents(template, query, found.documents, history)
        alone = None if history else self.inquiry.prompts.get(context)
        if alone:
            return alone
        corpus = self.inquiry.benchmark.corpus
        documents = tuple(corpus[doc_id] for doc_id in context.doc_ids)
        made = render_with_documents(template, query, documents, history)
        if not history:
            self.inquiry.prompts[context] = made
        return made

    def _asked(self, owners: Sequence[str], prompts: Sequence[Prompt]) -> list[Answer]:
        inquiry = self.inquiry
        this = Task(
            sample=self.sample,
            samples=inquiry.samples,
            read=inquiry.conversation.parse_answer,
            silence_counts=True,
        )
        return ask_prompts(
            inquiry.generator,
            prompts,
            inquiry.store,
            owners=owners,
            how=inquiry.how,
            this=this,
        )


def _unsearched(found: RetrievedEvidence) -> Answer:
    """What stands for the answer to a turn that could not be searched for."""
    return Answer(answer_id="", raw=None, failure=found.failure)


def _words(answer: Answer) -> str | None:
    """What was said; None where nothing was."""
    return answer.fields.get("answer", "") if answer.status.is_answer else None
