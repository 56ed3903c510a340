"""Run conversations turn by turn: search, render with the earlier turns, ask.

All conversations advance together, so that batches stay full; a standalone question is a
conversation of one turn. A turn's key in the store determines the whole path to it, since the
earlier answers are part of the prompt.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import pandas as pd

from vrag_kit.config import Hardware
from vrag_kit.dry_run import current_dry_run
from vrag_kit.errors import VragError, did_you_mean
from vrag_kit.generation.ask import Task, ask_prompts
from vrag_kit.generation.generators import Generator
from vrag_kit.generation.prompts import ParsedFields, PromptSet
from vrag_kit.generation.rendering import RenderedPrompt, render_with_documents
from vrag_kit.generation.store import AnswerStore
from vrag_kit.log import logger
from vrag_kit.types import Answer, Benchmark, Context, Document, Failure, Query, Status, Turn
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

        Raises `VragError` when the tokenizer cannot be read; a dry run records it, and truncates
        nothing.
        """
        try:
            encoding = _load_tokenizer(self.tokenizer).encode(text)
        except VragError as error:
            if (dry_run := current_dry_run()) is None:
                raise
            dry_run.missing[str(error)] = None
            return text, False
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
    from huggingface_hub import hf_hub_download
    from tokenizers import Tokenizer

    folder, file = project_path(name), "tokenizer.json"
    try:
        if folder.is_dir():
            path = str(folder / file)
        else:
            path = hf_hub_download(name, file, local_files_only=current_dry_run() is not None)
        tokenizer = Tokenizer.from_file(path)
    except Exception as error:  # the library raises no narrower kind
        expected = f"a folder with a {file}, or a name on the hub (`hf download {name} {file}`)"
        message = f"answer_tokenizer {name!r} cannot be read ({error}); expected {expected}."
        raise VragError(message) from error
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
"""The first columns of an answer table; see `run_conversations` for the others."""


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
            known, hint = ", ".join(HISTORIES), did_you_mean(self.history, HISTORIES)
            raise VragError(f"history is {self.history!r}; expected one of {known}.{hint}")

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
    """Ask one model about contexts, first turns first, and return one row per context and sample.

    The columns are `ANSWER_COLUMNS`; conversation_id (the query's for a standalone question), turn,
    and history (one of `HISTORIES`); search_query, rewrite_status and n_skipped as in
    `RetrievedEvidence`; max_answer_tokens and answer_tokenizer (missing and "" without a limit),
    and enough, whether the answer reached this limit.

    A prompt contains the earlier turns in the same setting, k, m and draw. The later turns of a
    conversation that `config.stop` ends have `Status.STOPPED`, those after a turn whose call failed
    `Status.EARLIER_TURN`; they are not asked. `rendered` keeps prompts that depend on their context
    alone for other models of the same benchmark and prompt set.

    Raises `VragError`, before anything is asked, for a turn without an earlier one, for a duplicate
    turn, for a reference answer that is needed but hidden, and for several samples of a model that
    decodes greedily; otherwise as `ask_prompts` does.
    """
    if samples > 1 and generator.deterministic:
        found = f"{samples} samples of a model that decodes greedily, which would be copies"
        raise VragError(f"{generator.name}: found {found}; expected 1, or another `decoding`.")
    _check_turns(benchmark, contexts, config.history)
    hardware = hardware or Hardware()
    rendered = {} if rendered is None else rendered
    tables = []
    for sample in range(samples):
        task = Task(sample=sample, samples=samples, read=config.parse_answer, silence_counts=True)
        turns = _unasked(benchmark, contexts)
        for number in sorted({turn.number for turn in turns}):
            asked = [turn for turn in turns if turn.number == number and not turn.is_answered]
            _search_and_render(asked, benchmark, config, rendered)
            _ask(asked, generator, store, hardware, task)
            for turn in asked:
                turn.conversation.go_on(turn, config.history)
            going = [turn for turn in asked if turn.conversation.continues_after(number)]
            if config.stop and going:
                table = answer_table(going, generator.name, benchmark, config, sample)
                _stop(going, config.stop.score(table), config.stop)
        tables.append(answer_table(turns, generator.name, benchmark, config, sample))
    table = pd.concat(tables, ignore_index=True)
    if count := int(table["n_skipped"].sum()):
        logger.info(f"{generator.name}: {count:,} retrieved documents with nothing to show")
    return table


def conversation_key(query: Query, context: Context) -> Hashable:
    """Return a key that the contexts of one conversation share; a standalone question's context is
    its own key.
    """
    if query.conversation_id is None:
        return context
    return (query.conversation_id, context.setting, context.k, context.m, context.draw)


def turn_number(query: Query) -> int:
    """Return a query's place in its conversation, from 0; 0 for a standalone question."""
    return 0 if query.conversation_id is None else query.turn


@dataclass(slots=True)
class _Conversation:
    """One conversation in one setting, as far as it has come."""

    last: int = 0
    """Its last turn."""
    history: History = ()
    """What its next prompt contains of the turns so far."""
    scores: list[float] = field(default_factory=list)
    """Scores of the turns so far, for early stopping."""
    ended: Answer | None = None
    """What stands for the answers to its later turns, which are not asked."""

    def continues_after(self, number: int) -> bool:
        """Whether a turn after this one is to be asked."""
        return number < self.last and self.ended is None

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
        """Its place in its conversation, from 0."""
        return turn_number(self.query)

    @property
    def is_answered(self) -> bool:
        """Whether it has an answer, or its conversation has ended."""
        return (self.reply or self.conversation.ended) is not None

    @property
    def answer(self) -> Answer:
        """Its answer, or what stands for it."""
        answer = self.reply or self.conversation.ended
        assert answer is not None, "a turn is answered once its conversation has come to it"
        return answer


def _unasked(benchmark: Benchmark, contexts: Sequence[Context]) -> list[_Turn]:
    conversations = defaultdict[Hashable, _Conversation](_Conversation)
    turns = []
    for context in contexts:
        query = benchmark.queries[context.query_id]
        turn = _Turn(context, query, conversations[conversation_key(query, context)])
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


def _stop(turns: Sequence[_Turn], scores: Sequence[float], stop: EarlyStop) -> None:
    """Score turns that have later ones, and end the conversations that are over. The score of a
    dry run's placeholder is not known, so it ends none.
    """
    for turn, score in zip(turns, scores, strict=True):
        conversation = turn.conversation
        conversation.scores.append(math.nan if turn.answer.is_placeholder else float(score))
        if stop.rule(conversation.scores) is not None:
            words = "the conversation was over before this turn"
            conversation.ended = _not_asked(Status.STOPPED, words)


def answer_table(
    turns: Sequence[_Turn],
    model: str,
    benchmark: Benchmark,
    config: ConversationConfig,
    sample: int,
) -> pd.DataFrame:
    """Return one row per turn; see `run_conversations` for the columns."""
    answers = [turn.answer for turn in turns]
    cut = config.cut
    limits = [cut.tokens if cut else None] * len(turns)
    return pd.DataFrame(
        {
            "benchmark": benchmark.name,
            "model": model,
            "setting": [turn.context.setting for turn in turns],
            "k": [turn.context.k for turn in turns],
            "m": pd.array([turn.context.m for turn in turns], dtype="Int64"),
            "draw": [turn.context.draw for turn in turns],
            "sample": sample,
            "query_id": [turn.query.query_id for turn in turns],
            "group": [turn.query.group for turn in turns],
            "doc_ids": [turn.prompt.doc_ids if turn.prompt else () for turn in turns],
            "template": [config.prompts.template_for(turn.context).name for turn in turns],
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
            "history": config.history,
            "search_query": [turn.found.search_query for turn in turns],
            "rewrite_status": [turn.found.rewrite_status for turn in turns],
            "n_skipped": [turn.found.n_skipped for turn in turns],
            "max_answer_tokens": pd.array(limits, dtype="Int64"),
            "answer_tokenizer": cut.tokenizer if cut else "",
            "enough": [bool(cut and each.fields.get("enough")) for each in answers],
        }
    )


def _not_asked(kind: Status, why: str) -> Answer:
    return Answer(answer_id="", raw=None, failure=Failure(kind, why))


def _check_turns(benchmark: Benchmark, contexts: Sequence[Context], history: str) -> None:
    """Raise `VragError` for a missing or duplicate turn, and for a hidden reference answer."""
    conversations = defaultdict[Hashable, list[Query]](list)
    for context in contexts:
        query = benchmark.queries[context.query_id]
        if query.conversation_id is not None:
            conversations[conversation_key(query, context)].append(query)
            if history == "reference" and not query.answers:
                expected = 'one, or the history "generated" or "none"'
                found = f"query {query.query_id!r}: found no reference answer"
                raise VragError(f"{found}; expected {expected}.")
    for queries in conversations.values():
        queries.sort(key=turn_number)
        if [query.turn for query in queries] != list(range(len(queries))):
            listed = ", ".join(f"{query.turn} (query {query.query_id!r})" for query in queries)
            raise VragError(
                f"conversation {queries[0].conversation_id!r}: found contexts for the turns"
                f" {listed}; expected each turn from 0 on, once in each setting."
            )
