"""Run conversations turn by turn: search, render with the earlier turns, ask.

All conversations advance together, so that batches stay full; a standalone question is a
conversation of one turn. A turn's key in the store determines the whole path to it, since the
earlier answers are part of the prompt.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Protocol

import pandas as pd

from vrag_kit.config import Hardware
from vrag_kit.errors import VragError, did_you_mean
from vrag_kit.generation.ask import Task, ask_prompts
from vrag_kit.generation.generators import Generator
from vrag_kit.generation.prompts import ParsedFields, PromptSet
from vrag_kit.generation.rendering import RenderedPrompt, render_with_documents
from vrag_kit.generation.store import AnswerStore
from vrag_kit.log import logger
from vrag_kit.types import Answer, Benchmark, Context, DocId, Document, Failure, Query, Status, Turn
from vrag_kit.workspace import path as project_path

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True, slots=True)
class TokenLimit:
    """Truncates a text to its first tokens, as one tokenizer counts them."""

    tokens: int
    """Maximum number of tokens, including those that the tokenizer puts before every text."""
    tokenizer: str
    """A folder with a `tokenizer.json`, or a name on the hub."""

    def __post_init__(self) -> None:
        """Raise `VragError` for a limit below 1."""
        if self.tokens < 1:
            raise VragError(f"max_answer_tokens is {self.tokens}; expected 1 or more.")

    def __call__(self, text: str) -> tuple[str, bool]:
        """Return (the text up to its last counted token, whether it reaches the limit).

        Raises `VragError` when the tokenizer cannot be read.
        """
        encoding = _load_tokenizer(self.tokenizer).encode(text)
        own = [place for place, special in enumerate(encoding.special_tokens_mask) if not special]
        before = own[0] if own else 0  # special tokens behind a text do not count
        room = max(self.tokens - before, 0)
        if len(own) < room:
            return text, False
        if len(own) == room:
            return text, True
        end = encoding.offsets[own[room - 1]][1] if room else 0
        return text[:end], True


@lru_cache(maxsize=4)
def _load_tokenizer(name: str) -> Tokenizer:
    from tokenizers import Tokenizer

    folder = project_path(name)
    try:
        if folder.is_dir():
            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        else:
            tokenizer = Tokenizer.from_pretrained(name)
    except Exception as error:  # the library raises no narrower kind
        raise VragError(
            f"answer_tokenizer {name!r} cannot be read ({error}); expected a folder with a"
            " tokenizer.json, or a name on the hub. A gated one needs its licence accepted and"
            " `hf auth login`."
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


History = tuple[Turn, ...]
HISTORIES = ("generated", "reference", "none")
"""What a prompt contains of earlier turns: the model's own answers, the reference answers, or
nothing.
"""
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
(one of `HISTORIES`); search_query, rewrite_status and n_skipped as in `RetrievedEvidence`; the
token limit of answers and its tokenizer (missing and "" without a limit), and whether this answer
reached it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievedEvidence:
    """The documents that were retrieved for one turn."""

    documents: tuple[Document, ...] = ()
    """Documents that the turn may show, in order."""
    search_query: str = ""
    """The text that was searched with; "" when there was none."""
    rewrite_status: str = ""
    """The outcome of rewriting the question; "" without a rewriter."""
    n_skipped: int = 0
    """Retrieved documents with nothing to show; they are not in `documents`."""
    failure: Failure | None = None
    """Why no search was possible, as when the rewriting model did not answer; the turn then fails
    for that reason.
    """


class TurnSearch(Protocol):
    """Protocol of a search that retrieves the documents of turns."""

    def find(
        self, benchmark: Benchmark, contexts: Sequence[Context], histories: Sequence[History]
    ) -> Sequence[RetrievedEvidence]:
        """Return what was retrieved for each context with its history, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyStop:
    """Early stopping: when a conversation ends before its last turn."""

    score: Callable[[pd.DataFrame], Sequence[float]]
    """Maps the rows of an answer table, of one turn, to a score each; NaN if it is unknown."""
    rule: Callable[[Sequence[float]], int | None]
    """Maps the scores of a conversation's turns so far, in order, to the turn (from 0) at which it
    ends; None while it continues.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationConfig:
    """How conversations are run; a standalone question has a single turn."""

    prompts: PromptSet
    """The prompt set: templates of the turns, and the parser of their answers."""
    history: str = "generated"
    """What prompts contain of earlier turns, one of `HISTORIES`. An empty answer gives an empty
    turn.
    """
    search: TurnSearch | None = None
    """Search before each turn; None if the contexts hold their documents already."""
    stop: EarlyStop | None = None
    """Ends conversations early, without asking their later turns; None asks all."""
    cut: TokenLimit | None = None
    """Token limit of answers; None keeps whole answers."""

    def __post_init__(self) -> None:
        """Raise `VragError` for an unknown history."""
        if self.history not in HISTORIES:
            raise VragError(
                f"history is {self.history!r}; expected one of {', '.join(HISTORIES)}."
                f"{did_you_mean(self.history, HISTORIES)}"
            )

    def parse_answer(self, raw: str) -> ParsedFields:
        """Return the fields of an answer; "enough" says whether it reached the limit."""
        fields = self.prompts.read(raw)
        if self.cut is None:
            return fields
        answer, enough = self.cut(str(fields.get("answer", "")))
        return {**fields, "answer": answer, "enough": enough}


def run_conversations(
    generator: Generator,
    benchmark: Benchmark,
    contexts: Sequence[Context],
    store: AnswerStore,
    config: ConversationConfig,
    *,
    hardware: Hardware | None = None,
    samples: int = 1,
    rendered: dict[Context, RenderedPrompt] | None = None,
) -> pd.DataFrame:
    """Ask one model about contexts, first turns first, and return one row per context and sample,
    with `ANSWER_COLUMNS` and `CONVERSATION_COLUMNS`.

    A prompt contains the earlier turns in the same setting, k, m and draw. The later turns of a
    conversation that `config.stop` ends have `Status.STOPPED`, those after a turn whose call failed
    `Status.EARLIER_TURN`; they are not asked. `rendered` keeps prompts that depend on their context
    alone for other models of the same benchmark and prompt set.

    Raises `VragError`, before anything is asked, for a turn without an earlier one, for a duplicate
    turn, for a reference answer that is needed but hidden, and for several samples of a model that
    decodes greedily; otherwise as `ask_prompts` does.
    """
    if samples > 1 and generator.deterministic:
        raise VragError(
            f"{generator.name}: found {samples} samples of a model that decodes greedily, which"
            " would be copies; expected 1 sample, or another `decoding`."
        )
    _check_turns(benchmark, contexts, config.history)
    rendered = {} if rendered is None else rendered
    tables = []
    for sample in range(samples):
        task = Task(sample=sample, samples=samples, read=config.parse_answer, silence_counts=True)
        turns = _unasked(benchmark, contexts)
        for _, together in groupby(sorted(turns, key=_number), key=_number):
            asked = [turn for turn in together if turn.conversation.ended is None]
            _search_and_render(asked, benchmark, config, rendered)
            _ask(asked, generator, store, hardware or Hardware(), task)
            for turn in asked:
                turn.conversation.go_on(turn, config.history)
            _stop(asked, generator.name, benchmark, config, sample)
        tables.append(_table(turns, generator.name, benchmark, config, sample))
    table = pd.concat(tables, ignore_index=True)
    if count := int(table["n_skipped"].sum()):
        logger.info(f"{generator.name}: {count:,} retrieved documents with nothing to show")
    return table


ConversationKey = tuple[str, str, int, int | None, int]
"""A conversation's id, setting, k, m and draw."""


def conversation_key(query: Query, context: Context) -> ConversationKey | None:
    """Return the key of a context's conversation; None for a standalone question."""
    if query.conversation_id is None:
        return None
    return (query.conversation_id, context.setting, context.k, context.m, context.draw)


@dataclass(slots=True)
class _Conversation:
    """One conversation in one setting, as far as it has come."""

    last: int = 0
    """Its last turn."""
    history: History = ()
    """What its next prompt contains of the turns so far."""
    scores: tuple[float, ...] = ()
    """Scores of the turns so far, for early stopping."""
    ended: Answer | None = None
    """What stands for the answers to its later turns, which are not asked."""

    def go_on(self, turn: _Turn, history: str) -> None:
        """Add an answered turn to the history; a failed call ends the conversation."""
        if turn.number == self.last:
            return
        if not turn.answer.status.is_answer:
            self.ended = _not_asked(
                Status.EARLIER_TURN, "an earlier turn of this conversation failed"
            )
        generated = str(turn.answer.fields.get("answer") or turn.answer.raw or "")
        answer = generated if history == "generated" else (turn.query.answers or ("",))[0]
        if history != "none":
            self.history = (*self.history, Turn(turn.query.text, answer))


@dataclass(slots=True)
class _Turn:
    """One context on its way to a row of the table."""

    context: Context
    query: Query
    conversation: _Conversation
    found: RetrievedEvidence = RetrievedEvidence()
    prompt: RenderedPrompt | None = None
    reply: Answer | None = None

    @property
    def number(self) -> int:
        """The place in its conversation, from 0; 0 for a standalone question."""
        return 0 if self.query.conversation_id is None else self.query.turn

    @property
    def answer(self) -> Answer:
        """Its answer, or what stands for it."""
        answer = self.reply or self.conversation.ended
        assert answer is not None, "a turn is answered once its conversation has come to it"
        return answer

    @property
    def doc_ids(self) -> tuple[DocId, ...]:
        """The documents that its prompt shows."""
        return self.prompt.doc_ids if self.prompt else ()


def _number(turn: _Turn) -> int:
    return turn.number


def _unasked(benchmark: Benchmark, contexts: Sequence[Context]) -> list[_Turn]:
    conversations: dict[ConversationKey, _Conversation] = defaultdict(_Conversation)
    turns = []
    for context in contexts:
        query = benchmark.queries[context.query_id]
        key = conversation_key(query, context)
        turn = _Turn(context, query, conversations[key] if key else _Conversation())
        turn.conversation.last = max(turn.conversation.last, turn.number)
        turns.append(turn)
    return turns


def _search_and_render(
    turns: Sequence[_Turn],
    benchmark: Benchmark,
    config: ConversationConfig,
    rendered: dict[Context, RenderedPrompt],
) -> None:
    """Give each turn its documents and its prompt; one whose search failed has no prompt."""
    contexts = [turn.context for turn in turns]
    histories = [turn.conversation.history for turn in turns]
    if config.search is not None and turns:
        found = config.search.find(benchmark, contexts, histories)
        for turn, each in zip(turns, found, strict=True):
            turn.found = each
    for turn, context, history in zip(turns, contexts, histories, strict=True):
        alone = config.search is None and not history
        if turn.found.failure is not None:
            turn.reply = Answer(answer_id="", raw=None, failure=turn.found.failure)
        elif alone and context in rendered:
            turn.prompt = rendered[context]
        else:
            documents = turn.found.documents
            if config.search is None:
                documents = tuple(benchmark.corpus[doc_id] for doc_id in context.doc_ids)
            template = config.prompts.template_for(context)
            turn.prompt = render_with_documents(template, turn.query, documents, history)
            if alone:
                rendered[context] = turn.prompt


def _ask(
    turns: Sequence[_Turn], generator: Generator, store: AnswerStore, hardware: Hardware, task: Task
) -> None:
    """Ask the turns that have a prompt."""
    asked = [(turn, turn.prompt.prompt) for turn in turns if turn.prompt is not None]
    owners = [turn.query.query_id for turn, _ in asked]
    prompts = [prompt for _, prompt in asked]
    if turns:
        answers = ask_prompts(
            generator, prompts, store, owners=owners, hardware=hardware, task=task
        )
        for (turn, _), answer in zip(asked, answers, strict=True):
            turn.reply = answer


def _stop(
    asked: Sequence[_Turn],
    model: str,
    benchmark: Benchmark,
    config: ConversationConfig,
    sample: int,
) -> None:
    """Score the turns that have later ones, and end the conversations that are over. The score of
    a dry run's placeholder is not known, so it ends none.
    """
    turns = [
        turn
        for turn in asked
        if turn.conversation.last > turn.number and turn.conversation.ended is None
    ]
    if config.stop is None or not turns:
        return
    scores = config.stop.score(_table(turns, model, benchmark, config, sample))
    for turn, score in zip(turns, scores, strict=True):
        known = math.nan if turn.answer.is_placeholder else float(score)
        conversation = turn.conversation
        conversation.scores = (*conversation.scores, known)
        if config.stop.rule(conversation.scores) is not None:
            words = "the conversation was over before this turn"
            conversation.ended = _not_asked(Status.STOPPED, words)


def _table(
    turns: Sequence[_Turn],
    model: str,
    benchmark: Benchmark,
    config: ConversationConfig,
    sample: int,
) -> pd.DataFrame:
    """One row per turn, with `ANSWER_COLUMNS` and `CONVERSATION_COLUMNS`."""
    answers = [turn.answer for turn in turns]
    templates = [config.prompts.template_for(turn.context).name for turn in turns]
    cut = config.cut
    limits = [cut.tokens if cut else None] * len(turns)
    table = pd.DataFrame(
        {
            "setting": [turn.context.setting for turn in turns],
            "k": [turn.context.k for turn in turns],
            "m": pd.array([turn.context.m for turn in turns], dtype="Int64"),
            "draw": [turn.context.draw for turn in turns],
            "query_id": [turn.query.query_id for turn in turns],
            "group": [turn.query.group for turn in turns],
            "doc_ids": [turn.doc_ids for turn in turns],
            "template": templates,
            "answer": [
                each.fields.get("answer", "") if each.status.is_answer else None for each in answers
            ],
            "status": [each.status.value for each in answers],
            "detail": [each.detail for each in answers],
            "answer_id": [each.answer_id for each in answers],
            "conversation_id": [
                turn.query.conversation_id or turn.query.query_id for turn in turns
            ],
            "turn": [turn.query.turn for turn in turns],
            "search_query": [turn.found.search_query for turn in turns],
            "rewrite_status": [turn.found.rewrite_status for turn in turns],
            "n_skipped": [turn.found.n_skipped for turn in turns],
            "max_answer_tokens": pd.array(limits, dtype="Int64"),
            "enough": [bool(cut and each.fields.get("enough")) for each in answers],
        }
    )
    table = table.assign(
        benchmark=benchmark.name,
        model=model,
        sample=sample,
        history=config.history,
        answer_tokenizer=cut.tokenizer if cut else "",
    )
    return table[[*ANSWER_COLUMNS, *CONVERSATION_COLUMNS]]


def _not_asked(kind: Status, why: str) -> Answer:
    return Answer(answer_id="", raw=None, failure=Failure(kind, why))


def _check_turns(benchmark: Benchmark, contexts: Sequence[Context], history: str) -> None:
    """Raise `VragError` for a missing or duplicate turn, and for a hidden reference answer."""
    turns: dict[ConversationKey, list[tuple[int, str]]] = defaultdict(list)
    for context in contexts:
        query = benchmark.queries[context.query_id]
        if (key := conversation_key(query, context)) is None:
            continue
        if history == "reference" and not query.answers:
            raise VragError(
                f"query {query.query_id!r}: found no reference answer; expected one, or the"
                ' history "generated" or "none".'
            )
        turns[key].append((query.turn, query.query_id))
    for (name, setting, k, *_), found in turns.items():
        if [turn for turn, _ in sorted(found)] != list(range(len(found))):
            listed = ", ".join(f"{turn} (query {query_id!r})" for turn, query_id in sorted(found))
            raise VragError(
                f"conversation {name!r}, {setting} with k = {k}: found contexts for the turns"
                f" {listed}; expected each turn from 0 on, once."
            )
