"""Processes that hold conversations over one store, with a search and a rewriter at each
turn and an early stop. Tests kill them.

They are forked from a server that has imported all that they need.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pandas as pd
from talks import entry, make_talks, page

from vrag_kit.generation import AnswerStore, Asking, EarlyStop, Talk, load_generator, load_rewriter
from vrag_kit.generation.talking import Inquiry
from vrag_kit.papers.crag_mm import WORDINGS, Arms, rewriting_wording, two_not_right
from vrag_kit.retrieval.run import make_run
from vrag_kit.types import DocId, Evidence, Query

LENGTHS = {"a": 4, "b": 2, "c": 4, "d": 3}


@dataclass(frozen=True)
class Listed:
    """A search whose scores are given: query text or id → document → score; "" is any."""

    reads: str
    corpus: Mapping[DocId, Evidence]
    scores: Mapping[str, Mapping[DocId, float]]
    name: str = "listed"
    fingerprint: str = "listed"

    def search(self, queries: Sequence[Query], k: int) -> pd.DataFrame:
        rows = []
        for query in queries:
            found = self.scores.get(query.text) or self.scores.get("", {})
            best = sorted(found.items(), key=lambda hit: -hit[1])[:k]
            rows += [(query.query_id, doc_id, score) for doc_id, score in best]
        return make_run(rows)


def listed(reads: str, *documents: Evidence) -> Listed:
    """Finds all documents for everything, in this order, scores 0.95, 0.9, …"""
    scores = {each.doc_id: 0.95 - 0.05 * place for place, each in enumerate(documents)}
    return Listed(reads, {each.doc_id: each for each in documents}, {"": scores})


def score(table: pd.DataFrame) -> list[float]:
    """Right where the answer, a hash of what was asked, begins with a digit from 4."""
    return [1.0 if answer.split()[-1][0] in "456789" else -1.0 for answer in table["answer"]]


def hold(store: Path, folder: Path, url: str, lease: float = 1.0) -> pd.DataFrame:
    """The table of all answers, in the arms mm_llm and task_3."""
    talks = make_talks(folder, LENGTHS)
    how = Asking(batch_size=3)
    writer = load_rewriter(
        f"writer@{url}", store.parent, wording=rewriting_wording(), run_with={"batch_size": 3}
    )
    arms = Arms(
        images=listed("image", entry("kg-1", ("Van", {"wheels": 4})), entry("kg-2", ("Bus", ""))),
        web=listed("text", page("w1", "Vans", "They have wheels."), page("w2", "Cars", "So.")),
        rewrite="found_history",
        rewriter=replace(writer, lease=lease),
    )
    talk = Talk(
        wording=WORDINGS["paper"], search=arms, stop=EarlyStop(score=score, rule=two_not_right)
    )
    model = load_generator({"model": f"talker@{url}", "concurrency": 3}, decoding="greedy")
    with AnswerStore(store, lease=lease) as answers:
        inquiry = Inquiry(generator=model, benchmark=talks, store=answers, talk=talk, how=how)
        return inquiry.table(arms.contexts(talks, ["mm_llm", "task_3"]))


def start(
    store: Path, folder: Path, url: str, lease: float = 1.0
) -> tuple[BaseProcess, Connection]:
    """A process that says "ready", waits for a word, asks, and sends what it printed."""
    forking = multiprocessing.get_context("forkserver")
    forking.set_forkserver_preload(["openai", "talking_process"])
    here, there = forking.Pipe()
    process = forking.Process(target=_work, args=(there, store, folder, url, lease))
    process.start()
    there.close()
    return process, here


def _work(pipe: Connection, store: Path, folder: Path, url: str, lease: float) -> None:
    pipe.send("ready")
    pipe.recv()
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        hold(store, folder, url, lease)
    pipe.send(printed.getvalue())
