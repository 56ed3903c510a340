"""Processes that embed the small Field Guide, or ask about it, by the kit's own small
models, and note all that they encode and ask. `tests.timing.soak` kills them.

They are forked from a server that has read the models and the data, so that they are at
work within milliseconds. Below a place are notes/<kind>-<process> (a line a batch), kept
(the embeddings), answers.sqlite and a table-<process>.csv of each that came to its end.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import torch

from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.files import project_path, write_file
from vrag_kit.generation import AnswerStore, ConversationConfig, gt_clue, load_generator, one_in_k
from vrag_kit.generation.conversation import run_conversations
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.retrieval import embed_documents, embedding_cache, load_encoder
from vrag_kit.types import Document, Prompt
from vrag_kit.workspace import Workspace

ROOT = Path(__file__).parents[2]
SHARD = 32
"""Documents a shard; a batch are 8, as of prompts."""
BATCH = 8
PAUSE = 0.04
"""Seconds a batch of documents, on top: the model is quick, and there are few."""

torch.set_num_threads(1)  # threads are not forked
embedding_cache.SHARD = SHARD
_GUIDE = ROOT / "data" / "field-guide-small"
if not _GUIDE.exists():  # a forked process may not draw
    raise SystemExit(f"first: vrag data generate field-guide-small {_GUIDE}")
BENCHMARK = load_visual_rag(_GUIDE / "annotations.jsonl", _GUIDE / "images")
_PLACES = {doc_id: place for place, doc_id in enumerate(BENCHMARK.corpus)}
ENCODER = load_encoder(str(project_path("field-guide-clip-32")))
MODEL = load_generator("field-guide-vlm-few", decoding={"temperature": 0, "max_new_tokens": 8})
MODEL.prepare()


def note(place: Path, kind: str, names: Sequence[str]) -> None:
    """Say which things this process is about to have encoded or answered."""
    with (place / "notes" / f"{kind}-{os.getpid()}").open("a", encoding="ascii") as file:
        file.write(" ".join(names) + "\n")


class Noting:
    """The encoder or the model, but for some methods."""

    def __init__(self, whole: object, **methods: object) -> None:
        self.__dict__.update(methods, whole=whole)

    def __getattr__(self, name: str) -> object:
        return getattr(self.whole, name)


def embed(place: Path) -> None:
    """Embed what is not there yet."""

    def prepare(document: Document) -> tuple[str, object]:
        return str(_PLACES[document.doc_id]), ENCODER.prepare(document)

    def encode(prepared: Sequence[tuple[str, object]]) -> np.ndarray:
        note(place, "embed", [name for name, _ in prepared])
        time.sleep(PAUSE)
        return ENCODER.encode_documents([each for _, each in prepared])

    encoder = Noting(ENCODER, prepare=prepare, encode_documents=encode)
    embed_documents(encoder, list(BENCHMARK.corpus.values()), place / "kept")


def ask(place: Path) -> None:
    """Ask what is not answered yet, and write the table."""

    def generate(prompts: Sequence[Prompt], *, sample: int = 0) -> object:
        note(place, "ask", [_hash(prompt) for prompt in prompts])
        return MODEL.generate(prompts, sample=sample)

    contexts = gt_clue(BENCHMARK) + one_in_k(BENCHMARK, ks=[2, 3], draws=1)
    model, how = Noting(MODEL, generate=generate), Workspace(batch_size=BATCH)
    single = ConversationConfig(prompts=PROMPTS)
    with AnswerStore(place / "answers.sqlite") as store:
        table = run_conversations(model, BENCHMARK, contexts, store, single, at=how)
    write_file(place / f"table-{os.getpid()}.csv", table.to_csv(index=False))


def _hash(prompt: Prompt) -> str:
    told = hashlib.sha256()
    for message in prompt:
        for part in message.parts:
            told.update(part.encode() if isinstance(part, str) else part.data())
    return told.hexdigest()[:12]


WORK: dict[str, Callable[[Path], None]] = {"embed": embed, "ask": ask}


def start(kind: str, place: Path) -> BaseProcess:
    """A process at work of a kind."""
    forking = multiprocessing.get_context("forkserver")
    forking.set_forkserver_preload(["tests.timing.soak_worker"])
    process = forking.Process(target=_work, args=(kind, place))
    process.start()
    return process


def _work(kind: str, place: Path) -> None:
    log = place / f"log-{kind}-{os.getpid()}"
    with (
        log.open("w", encoding="utf-8") as file,
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(file),
    ):
        WORK[kind](place)
