"""From contexts to a table of answers, for one model: each turn is searched for, worded
with what was said before, asked once, and may be the last that is asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.forecast import STAND_IN, Same, once
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """One model, what it is asked about and how, and where its answers are kept."""

    generator: Generator
    benchmark: Benchmark
    store: AnswerStore
    talk: Talk
    how: Asking
    worded: dict[Context, Rendered] = field(default_factory=dict)
    """Prompts that several models are asked: each is worded once."""

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
        rows: list[tuple[object, ...]] = []
        for sample in range(how.samples):
            turns = _Turns(self, sample)
            over = None if self.talk.stop is None else turns.over
            history = self.talk.history
            answers = turn_by_turn(self.benchmark, contexts, turns.ask, history=history, over=over)
            pairs = zip(contexts, answers, strict=True)
            rows += [turns.row(context, answer) for context, answer in pairs]
        table = _framed(rows)
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
        if self.inquiry.talk.search is not None or any(histories):
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
        pairs = zip(contexts, worded, strict=True)
        said = iter(self._asked([(context, made.prompt) for context, made in pairs if made]))
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
        rows = [
            self.row(context, answer) for context, answer in zip(contexts, answers, strict=True)
        ]
        scores = stop.score(_framed(rows))
        ends = []
        for context, answer, score in zip(contexts, answers, scores, strict=True):
            thread = thread_of(self.inquiry.benchmark, context)
            known = math.nan if answer.fields.get(STAND_IN) else float(score)
            self.scores[thread] = (*self.scores.get(thread, ()), known)
            ends.append(stop.rule(self.scores[thread]) is not None)
        return ends

    def row(self, context: Context, answer: Answer) -> tuple[object, ...]:
        """The cells of one context: `COLUMNS` and `TALK_COLUMNS`."""
        inquiry = self.inquiry
        query = inquiry.benchmark.queries[context.query_id]
        found, shown = self.known.get(context, (Found(), ()))
        template = inquiry.talk.wording.template_of(context).name
        words = answer.fields.get("answer", "") if answer.status.is_answer else None
        said = (words, answer.status.value, answer.detail, answer.answer_id)
        arm = (context.setting, context.k, context.m, context.draw, self.sample)
        what = (context.query_id, query.group, shown, template)
        cut = inquiry.talk.cut
        limit = (cut.tokens, cut.tokenizer) if cut else (None, "")
        enough = cut is not None and bool(answer.fields.get("enough"))
        place = (query.conversation_id or query.query_id, query.turn, inquiry.talk.history)
        search = (found.searched, found.rewriting, found.passed_over)
        talk = (*place, *search, *limit, enough)
        return (inquiry.benchmark.name, inquiry.generator.name, *arm, *what, *said, *talk)

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
        worded = self.inquiry.worded
        alike = self.inquiry.talk.search is None and not history  # for all models
        if alike and (before := worded.get(context)):
            return before
        query = self.inquiry.benchmark.queries[context.query_id]
        template = self.inquiry.talk.wording.template_of(context)
        documents = found.documents
        if self.inquiry.talk.search is None:
            corpus = self.inquiry.benchmark.corpus
            documents = tuple(corpus[doc_id] for doc_id in context.doc_ids)
        made = rendered(template, query, documents, history)
        if alike:
            worded[context] = made
        return made

    def _asked(self, prompts: Sequence[tuple[Context, Prompt]]) -> list[Answer]:
        inquiry = self.inquiry
        this = Round(
            sample=self.sample,
            samples=inquiry.how.samples,
            read=inquiry.talk.read,
            silence_counts=True,
        )
        owners = [context.query_id for context, _ in prompts]
        return ask_prompts(
            inquiry.generator,
            [prompt for _, prompt in prompts],
            inquiry.store,
            owners=owners,
            how=inquiry.how,
            this=this,
        )


def _unsearched(found: Found) -> Answer:
    """What stands for the answer to a turn that could not be searched for."""
    return Answer(answer_id="", raw=None, failure=found.failure)


def _framed(rows: Sequence[tuple[object, ...]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=[*COLUMNS, *TALK_COLUMNS])
    return frame.astype({"m": "Int64", "answer_tokens": "Int64"})
