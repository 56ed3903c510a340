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
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pandas as pd

from vrag_kit.dry_run import current_dry_run
from vrag_kit.errors import VragError, did_you_mean
from vrag_kit.files import project_path
from vrag_kit.generation.ask import Task, ask_prompts
from vrag_kit.generation.generators import Generator
from vrag_kit.generation.prompts import ParsedFields, PromptSet
from vrag_kit.generation.rendering import render_with_documents
from vrag_kit.generation.store import AnswerStore
from vrag_kit.log import logger
from vrag_kit.types import (
    Answer,
    Benchmark,
    Context,
    Document,
    Failure,
    Json,
    Prompt,
    Query,
    Status,
    Turn,
)
from vrag_kit.workspace import Workspace

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True, slots=True)
class TokenLimit:
    """Truncates a text to its first tokens, as one tokenizer counts them."""

    tokens: int
    """Maximum number of tokens, including those that the tokenizer puts before every text."""
    tokenizer: str
    """A folder with a `tokenizer.json`, or a name on the hub."""

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
        room = self.tokens - (own[0] if own else 0)  # special tokens behind a text do not count
        if len(own) <= room:
            return text, len(own) == room
        return text[: encoding.offsets[own[room - 1]][1] if room > 0 else 0], True


@lru_cache(maxsize=4)
def _load_tokenizer(name: str) -> Tokenizer:
    from huggingface_hub import hf_hub_download
    from tokenizers import Tokenizer

    file = project_path(name) / "tokenizer.json"
    try:
        if not file.parent.is_dir():
            local = current_dry_run() is not None
            file = Path(hf_hub_download(name, file.name, local_files_only=local))
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises no narrower kind
        expected = f"a folder with a {file.name}, or a name on the hub (`hf download {name}`)"
        raise VragError(f"answer_tokenizer {name!r}: {error}; expected {expected}.") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


History = tuple[Turn, ...]
HISTORIES = ("generated", "reference", "none")
"""What a prompt contains of earlier turns: the model's own answers, the reference answers, or
nothing.
"""
ANSWER_COLUMNS = (
    *("benchmark", "model", "setting", "k", "m", "draw", "sample", "query_id", "group"),
    *("doc_ids", "template", "answer", "status", "detail", "answer_id"),
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
    at: Workspace | None = None,
    samples: int = 1,
) -> pd.DataFrame:
    """Ask one model about contexts, first turns first, and return one row per context and sample.

    The columns are `ANSWER_COLUMNS`; conversation_id (the query's for a standalone question), turn,
    and history (one of `HISTORIES`); search_query, rewrite_status and n_skipped as in
    `RetrievedEvidence`; max_answer_tokens and answer_tokenizer (missing and "" without a limit),
    and enough, whether the answer reached this limit.

    A prompt contains the earlier turns in the same setting, k, m and draw. The later turns of a
    conversation that `config.stop` ends have `Status.STOPPED`, those after a turn whose call failed
    `Status.EARLIER_TURN`; they are not asked.

    Raises `VragError`, before anything is asked, for a turn without an earlier one, for a duplicate
    turn, for a reference answer that is needed but hidden, and for several samples of a model that
    decodes greedily; otherwise as `ask_prompts` does.
    """
    if samples > 1 and generator.deterministic:
        found = f"{samples} samples of a model that decodes greedily, which would be copies"
        raise VragError(f"{generator.name}: found {found}; expected 1, or another `decoding`.")
    tables = []
    for sample in range(samples):
        task = Task(sample=sample, samples=samples, read=config.parse_answer, silence_counts=True)
        turns = _link_turns(benchmark, contexts, config.history)
        for number in sorted({turn.number for turn in turns}):
            asked = [turn for turn in turns if turn.number == number and turn.answer is None]
            _search(asked, benchmark, config)
            ready = [turn for turn in asked if turn.answer is None]
            prompts = [_render(turn, benchmark, config) for turn in ready]
            if ready:
                owners = [turn.query.query_id for turn in ready]
                how: Json = {"owners": owners, "at": at, "task": task}
                answers = ask_prompts(generator, prompts, store, **how)
                for turn, answer in zip(ready, answers, strict=True):
                    turn.answer = answer
            for turn in asked:
                _hand_on(turn, config.history)
            going = [turn for turn in asked if turn.later and turn.later[0].answer is None]
            if config.stop and going:
                table = answer_table(going, generator.name, benchmark, config, sample)
                _stop(going, config.stop.score(table), config.stop)
        tables.append(answer_table(turns, generator.name, benchmark, config, sample))
    table = pd.concat(tables, ignore_index=True)
    if count := int(table["n_skipped"].sum()):
        logger.info(f"{generator.name}: {count:,} retrieved documents with nothing to show")
    return table


@dataclass(slots=True, eq=False)
class _Turn:
    """One context on its way to a row of the table."""

    context: Context
    query: Query
    later: list[_Turn] = field(default_factory=list)
    """The later turns of its conversation, in order."""
    history: History = ()
    """What its prompt contains of earlier turns."""
    scores: tuple[float, ...] = ()
    """Scores of earlier turns, for early stopping."""
    found: RetrievedEvidence = RetrievedEvidence()
    doc_ids: tuple[str, ...] = ()
    """The documents in its prompt."""
    answer: Answer | None = None
    """Its answer, or what takes its place."""

    @property
    def number(self) -> int:
        """Its place in its conversation, from 0."""
        return 0 if self.query.conversation_id is None else self.query.turn

    def end(self, status: Status, words: str) -> None:
        """End the conversation: its later turns are not asked."""
        for turn in self.later:
            turn.answer = Answer(answer_id="", raw=None, failure=Failure(status, words))


def _link_turns(benchmark: Benchmark, contexts: Sequence[Context], history: str) -> list[_Turn]:
    """Return the turns of contexts, in order, each with the later ones of its conversation. Raises
    `VragError` for a missing or duplicate turn, and for a hidden reference answer.
    """
    turns = [_Turn(context, benchmark.queries[context.query_id]) for context in contexts]
    conversations = defaultdict[Hashable, list[_Turn]](list)
    for turn in turns:
        if turn.query.conversation_id is not None:
            context = turn.context
            arm = (context.setting, context.k, context.m, context.draw)
            conversations[turn.query.conversation_id, arm].append(turn)
            if history == "reference" and not turn.query.answers:
                expected = 'one, or the history "generated" or "none"'
                found = f"query {turn.query.query_id!r}: found no reference answer"
                raise VragError(f"{found}; expected {expected}.")
    for conversation in conversations.values():
        conversation.sort(key=lambda turn: turn.number)
        queries = [turn.query for turn in conversation]
        if [query.turn for query in queries] != list(range(len(queries))):
            listed = ", ".join(f"{query.turn} (query {query.query_id!r})" for query in queries)
            raise VragError(
                f"conversation {queries[0].conversation_id!r}: found contexts for the turns"
                f" {listed}; expected each turn from 0 on, once in each setting."
            )
        for number, turn in enumerate(conversation):
            turn.later = conversation[number + 1 :]
    return turns


def _search(turns: Sequence[_Turn], benchmark: Benchmark, config: ConversationConfig) -> None:
    """Retrieve the documents of turns; where that fails, the failure is the turn's answer."""
    if config.search is None or not turns:
        return
    contexts = [turn.context for turn in turns]
    found = config.search.find(benchmark, contexts, [turn.history for turn in turns])
    for turn, each in zip(turns, found, strict=True):
        turn.found = each
        if each.failure is not None:
            turn.answer = Answer(answer_id="", raw=None, failure=each.failure)


def _render(turn: _Turn, benchmark: Benchmark, config: ConversationConfig) -> Prompt:
    """Return the prompt of a turn, and note its documents."""
    documents = turn.found.documents
    if config.search is None:
        documents = tuple(benchmark.corpus[doc_id] for doc_id in turn.context.doc_ids)
    template = config.prompts.template_for(turn.context)
    prompt, turn.doc_ids = render_with_documents(template, turn.query, documents, turn.history)
    return prompt


def _hand_on(turn: _Turn, history: str) -> None:
    """Add an answered turn to the history of the next; a failed call ends the conversation."""
    answer = turn.answer
    if answer is None or not turn.later:
        return
    if not answer.status.is_answer:
        turn.end(Status.EARLIER_TURN, "an earlier turn of this conversation failed")
    words = str(answer.fields.get("answer") or answer.raw or "")
    if history == "reference":
        words = turn.query.answers[0]
    if history != "none":
        turn.later[0].history = (*turn.history, Turn(turn.query.text, words))


def _stop(turns: Sequence[_Turn], scores: Sequence[float], stop: EarlyStop) -> None:
    """Score turns that have later ones, and end the conversations that are over. The score of a
    dry run's placeholder is not known, so it ends none.
    """
    for turn, score in zip(turns, scores, strict=True):
        is_known = turn.answer is not None and not turn.answer.is_placeholder
        following = turn.later[0]
        following.scores = (*turn.scores, float(score) if is_known else math.nan)
        if stop.rule(following.scores) is not None:
            turn.end(Status.STOPPED, "the conversation was over before this turn")


def answer_table(
    turns: Sequence[_Turn],
    model: str,
    benchmark: Benchmark,
    config: ConversationConfig,
    sample: int,
) -> pd.DataFrame:
    """Return one row per turn; see `run_conversations` for the columns."""
    answers = [turn.answer for turn in turns if turn.answer is not None]  # all of them
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
            "doc_ids": [turn.doc_ids for turn in turns],
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
