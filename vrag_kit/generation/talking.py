"""From contexts to a table of answers, for one model: each turn is searched for, worded
with what was said before, asked once, and may be the last that is asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.forecast import STAND_IN, Same, current_forecast, once
from vrag_kit.generation.answers import AnswerStore
from vrag_kit.generation.asking import ask_prompts
from vrag_kit.generation.asking_options import Asking, Round
from vrag_kit.generation.conversations import History, Thread, thread_of, turn_by_turn
from vrag_kit.generation.generator import Generator
from vrag_kit.generation.rendering import Rendered, rendered
from vrag_kit.generation.talk import Found, Talk
from vrag_kit.types import Answer, Benchmark, Context, DocId, Prompt

COLUMNS = (
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
"""The columns that contexts tell."""
TALK_COLUMNS = (
    "conversation_id",
    "turn",
    "history",
    "searched",
    "rewriting",
    "passed_over",
    "answer_tokens",
    "answer_tokenizer",
    "enough",
)
"""Of a conversation: its id (the query's where that stands alone), turn, what was told
("own", "reference", "none"), searched, rewriting and passed_over as `Found` has them,
where answers are cut (missing and "" where they are not), and whether this one was, or is
as long.
"""


_Known = tuple[Found, tuple[DocId, ...]]
"""What was found for a turn, and the documents that its prompt shows."""
_NOTHING: _Known = (Found(), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """One model, what it is asked about and how, and where its answers are kept."""

    generator: Generator
    benchmark: Benchmark
    store: AnswerStore
    talk: Talk
    how: Asking
    prompts: dict[Context, Rendered] = field(default_factory=dict)
    """Prompts without a history or a search, which other models are asked too."""

    def table(self, contexts: Sequence[Context]) -> pd.DataFrame:
        """One row a context and sample with the columns of `ask_all`, and those of
        `TALK_COLUMNS`; raises as `ask_all` does.
        """
        generator, how = self.generator, self.how
        if how.samples > 1 and generator.deterministic:
            raise VragError(
                f"{generator.name}: {how.samples} samples are asked for, but it decodes greedily,"
                " so that they would be copies. Set samples to 1, or another `decoding`."
            )
        tables = []
        for sample in range(how.samples):
            turns = _Turns(self, sample)
            over = None if self.talk.stop is None else turns.over
            history = self.talk.history
            answers = turn_by_turn(self.benchmark, contexts, turns.ask, history=history, over=over)
            tables.append(turns.table(contexts, answers))
        table = pd.concat(tables, ignore_index=True)
        if count := int(table["passed_over"].sum()):
            print(
                f"{generator.name}: {count:,} times a document was found that has nothing to show;"
                " it is passed over",
                flush=True,
            )
        return table


@dataclass(slots=True)
class _Turns:
    """Asks the turns of one sample; remembers what they were asked with and scored."""

    inquiry: Inquiry
    sample: int
    known: dict[Context, _Known] = field(default_factory=dict)
    """What was found for a turn, and the documents that its prompt shows."""
    scores: dict[Thread | None, tuple[float, ...]] = field(default_factory=dict)

    def ask(self, contexts: Sequence[Context], histories: Sequence[History]) -> list[Answer]:
        """Search for some turns, and ask at once those for which nothing failed; what an
        earlier notebook of a forecast has asked is known.
        """
        if current_forecast() is None or not self._alone(histories):
            return self._ask(contexts, histories)
        before, wording = self._before(), self.inquiry.talk.wording
        keys = [(context, wording.template_of(context).name) for context in contexts]
        new = [context for context, name in keys if (context, name) not in before]
        for context, answer in zip(new, self._ask(new, [()] * len(new)), strict=True):
            before[context, wording.template_of(context).name] = self.known[context], answer
        self.known.update((key[0], before[key][0]) for key in keys)
        return [before[key][1] for key in keys]

    def _before(self) -> dict[tuple[Context, str], tuple[_Known, Answer]]:
        """Context and template → what it was asked with, and the answer; empty but in a
        forecast.
        """
        inquiry, generator = self.inquiry, self.inquiry.generator
        model = (generator.name, generator.fingerprint, repr(sorted(generator.decoding.items())))
        wording = inquiry.talk.wording
        how = (self.sample, inquiry.how.retry_failures, Same(wording.read), Same(inquiry.talk.cut))
        what = (Same(inquiry.benchmark), Same(wording.templates), str(inquiry.store.path))
        return once(dict, "turns", *model, *how, *what)

    def _ask(self, contexts: Sequence[Context], histories: Sequence[History]) -> list[Answer]:
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
        """Score some answers; which of their conversations end with them. What only
        stands in for an answer, in a forecast, ends none.
        """
        stop = self.inquiry.talk.stop
        if stop is None or not contexts:
            return [False] * len(contexts)
        scores = stop.score(self.table(contexts, answers))
        ends = []
        for context, answer, score in zip(contexts, answers, scores, strict=True):
            thread = thread_of(self.inquiry.benchmark, context)
            known = math.nan if answer.fields.get(STAND_IN) else float(score)
            self.scores[thread] = (*self.scores.get(thread, ()), known)
            ends.append(stop.rule(self.scores[thread]) is not None)
        return ends

    def table(self, contexts: Sequence[Context], answers: Sequence[Answer]) -> pd.DataFrame:
        """One row a context: `COLUMNS` and `TALK_COLUMNS`."""
        inquiry, cut = self.inquiry, self.inquiry.talk.cut
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
            "history": inquiry.talk.history,
            "searched": [found.searched for found, _ in known],
            "rewriting": [found.rewriting for found, _ in known],
            "passed_over": [found.passed_over for found, _ in known],
            "answer_tokens": cut.tokens if cut else pd.NA,
            "answer_tokenizer": cut.tokenizer if cut else "",
            "enough": [bool(cut and each.fields.get("enough")) for each in answers],
        }
        arms = [self._arm(context) for context in contexts]
        table = pd.DataFrame(arms, columns=list(_ARM)).astype({"m": "Int64"}).assign(**own)
        return table[[*COLUMNS, *TALK_COLUMNS]].astype({"answer_tokens": "Int64"})

    def _arm(self, context: Context) -> tuple[object, ...]:
        """What a context tells: `_ARM`."""
        query = self.inquiry.benchmark.queries[context.query_id]
        what = (context.setting, context.k, context.m, context.draw)
        template = self.inquiry.talk.wording.template_of(context).name
        place = (query.conversation_id or query.query_id, query.turn)
        return (*what, query.query_id, query.group, template, *place)

    def _alone(self, histories: Sequence[History]) -> bool:
        """Whether prompts depend on their contexts alone."""
        return self.inquiry.talk.search is None and not any(histories)

    def _searched(
        self, contexts: Sequence[Context], histories: Sequence[History]
    ) -> Sequence[Found]:
        """What was found for each turn; nothing where nothing is searched."""
        search = self.inquiry.talk.search
        if search is None:
            return [Found()] * len(contexts)
        return search.find(self.inquiry.benchmark, contexts, histories)

    def _worded(self, context: Context, found: Found, history: History) -> Rendered:
        """The prompt of a context, and the documents that it shows."""
        query = self.inquiry.benchmark.queries[context.query_id]
        template = self.inquiry.talk.wording.template_of(context)
        if self.inquiry.talk.search is not None:
            return rendered(template, query, found.documents, history)
        alone = None if history else self.inquiry.prompts.get(context)
        if alone:
            return alone
        corpus = self.inquiry.benchmark.corpus
        documents = tuple(corpus[doc_id] for doc_id in context.doc_ids)
        made = rendered(template, query, documents, history)
        if not history:
            self.inquiry.prompts[context] = made
        return made

    def _asked(self, owners: Sequence[str], prompts: Sequence[Prompt]) -> list[Answer]:
        inquiry = self.inquiry
        this = Round(
            sample=self.sample,
            samples=inquiry.how.samples,
            read=inquiry.talk.read,
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


def _unsearched(found: Found) -> Answer:
    """What stands for the answer to a turn that could not be searched for."""
    return Answer(answer_id="", raw=None, failure=found.failure)


def _words(answer: Answer) -> str | None:
    """What was said; None where nothing was."""
    return answer.fields.get("answer", "") if answer.status.is_answer else None
