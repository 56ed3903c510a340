"""Processes that hold conversations over one store, with a search and a rewriter at each
turn, a served model and an early stop. Tests kill them.

They are forked from a server that has imported all that they need.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pandas as pd
from conversation_data import entry, make_conversations, page

from vrag_kit.generation import (
    AnswerStore,
    ConversationConfig,
    EarlyStop,
    load_generator,
    load_rewriter,
)
from vrag_kit.generation.conversation import run_conversations
from vrag_kit.papers.crag_mm.conversations import early_stopping_rule
from vrag_kit.papers.crag_mm.parameters import PROMPT_SETS, REWRITING
from vrag_kit.papers.crag_mm.search import SearchPipeline
from vrag_kit.retrieval import SearchService
from vrag_kit.retrieval.runs import make_run
from vrag_kit.types import DocId, Document, Query
from vrag_kit.workspace import Workspace

LENGTHS = {"a": 4, "b": 2, "c": 3}


def listed_scores(
    modality: str, documents: Sequence[Document], scores: Mapping[str, Mapping[DocId, float]]
) -> SearchService:
    """A search whose scores are given: query text → document → score; "" is any query."""

    def rank(queries: Sequence[Query], k: int) -> pd.DataFrame:
        rows = []
        for query in queries:
            found = scores.get(query.text) or scores.get("", {})
            best = sorted(found.items(), key=lambda hit: -hit[1])[:k]
            rows += [(query.query_id, doc_id, score) for doc_id, score in best]
        return make_run(rows)

    return SearchService(
        name="listed",
        fingerprint="listed",
        modality=modality,
        corpus={each.doc_id: each for each in documents},
        ranker=rank,
    )


def listed(modality: str, *documents: Document) -> SearchService:
    """Finds all documents for everything, in this order, scores 0.95, 0.9, …"""
    scores = {each.doc_id: 0.95 - 0.05 * place for place, each in enumerate(documents)}
    return listed_scores(modality, documents, {"": scores})


def score(table: pd.DataFrame) -> list[float]:
    """Right where the answer, a hash of what was asked, begins with a digit from 4."""
    return [1.0 if answer.split()[-1][0] in "456789" else -1.0 for answer in table["answer"]]


def hold(store: Path, folder: Path, url: str) -> pd.DataFrame:
    """The table of all answers, in the arms mm_llm and task_3."""
    talks, at = (
        make_conversations(folder, LENGTHS),
        Workspace(answers_dir=store.parent, batch_size=3),
    )
    arms = SearchPipeline(
        images=listed("image", entry("kg-1", ("Van", {"wheels": 4})), entry("kg-2", ("Bus", ""))),
        web=listed("text", page("w1", "Vans", "They have wheels."), page("w2", "Cars", "So.")),
        rewrite="retrieved_history",
        rewriter=load_rewriter(f"writer@{url}", at, prompts=REWRITING),
    )
    stop = EarlyStop(score=score, rule=early_stopping_rule)
    talk = ConversationConfig(prompts=PROMPT_SETS["paper"], search=arms, stop=stop)
    spec = {"model": f"talker@{url}", "concurrency": 3}
    model = load_generator(spec, decoding={"temperature": 0})
    with AnswerStore(store, lease=1.0) as answers:
        contexts = arms.contexts(talks, ["mm_llm", "task_3"])
        return run_conversations(model, talks, contexts, answers, talk, at=at)


def start(store: Path, folder: Path, url: str) -> tuple[BaseProcess, Connection]:
    """A process that says "ready", waits for a word, asks, and sends what it printed."""
    forking = multiprocessing.get_context("forkserver")
    forking.set_forkserver_preload(["openai", "conversation_process"])
    here, there = forking.Pipe()
    process = forking.Process(target=_work, args=(there, store, folder, url))
    process.start()
    there.close()
    return process, here


def _work(pipe: Connection, store: Path, folder: Path, url: str) -> None:
    pipe.send("ready")
    pipe.recv()
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        hold(store, folder, url)
    pipe.send(printed.getvalue())
