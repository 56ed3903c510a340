"""A search service in a program of its own, which may run in another environment.

It reads one JSON object a line and answers each with one line, in order; what else it
has to say goes to its standard error. First it says {"ready": true}.

    asked     {"id": 7, "k": 30, "image": "<path of a PNG>"}, or "text" instead of "image"
    answered  {"id": 7, "hits": [{"doc_id": "…", "score": 0.83, "url": "…"}, …]}
    or        {"id": 7, "error": "why there is no answer"}

`url` may be left out; where it is given, the document must have it too.
"""

from __future__ import annotations

import hashlib
import json
import math
import queue
import shlex
import subprocess
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pandas as pd

from vrag_kit.errors import VragError, short
from vrag_kit.plain import Json, JsonView
from vrag_kit.retrieval.run import make_run
from vrag_kit.retrieval.services import check_asked
from vrag_kit.types import DocId, Evidence, LazyImage, Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is started, and how long it is waited for."""

    command: tuple[str, ...]
    """The program and what it is told; it determines what is found."""
    ready_s: float = 1800.0
    """Seconds that it may take to load its models and its index."""
    reply_s: float = 300.0
    """Seconds that it may take for one answer."""


class ProgramService:
    """A service whose hits a program tells; it is started when it is first asked, and
    ended with the service.
    """

    def __init__(
        self, name: str, program: Program, documents: Mapping[DocId, Evidence], *, reads: str
    ) -> None:
        """`documents` are all that it can find; `reads`, "image" or "text", is what it is
        sent of a query.
        """
        self.name = name
        self.corpus = documents
        self.reads = reads
        told = json.dumps([program.command, reads, list(documents)])
        self.fingerprint = hashlib.sha256(told.encode()).hexdigest()
        self._program = program
        self._running: _Running | None = None

    def search(self, queries: Sequence[Query], k: int) -> pd.DataFrame:
        """As `SearchService.search` says; of a document that is found twice, its best.

        Raises `VragError` when the program cannot be started, ends, is silent for too
        long, says anything but an answer, or finds what is no document here; it is started
        anew for the next search.
        """
        check_asked(self, queries, k)
        rows: list[tuple[str, str, float]] = []
        try:
            for number, query in enumerate(queries):
                hits = self._hits(number, query, k)
                rows += [(query.query_id, doc_id, score) for doc_id, score in hits]
        except BaseException:
            self.close()
            raise
        return make_run(rows)

    def close(self) -> None:
        """End the program, if it runs."""
        if self._running is not None:
            self._running.end()
            self._running = None

    def _hits(self, number: int, query: Query, k: int) -> list[tuple[DocId, float]]:
        running = self._running = self._running or _Running(self.name, self._program)
        answer = running.ask({"id": number, "k": k, **self._shown(running, query)})
        hits = answer.get("hits")
        if answer.get("id") != number or not isinstance(hits, list):
            said = answer.get("error", answer)
            raise running.failed(f"has no answer to query {query.query_id!r}: {short(said)}")
        found = [self._hit(running, hit) for hit in hits]
        best = dict(sorted(found, key=lambda hit: hit[1]))
        ranked = sorted(((score, doc_id) for doc_id, score in best.items()), reverse=True)
        return [(doc_id, score) for score, doc_id in ranked[:k]]

    def _shown(self, running: _Running, query: Query) -> Json:
        if self.reads == "image" and query.image is not None:
            return {"image": running.picture(query.image)}
        return {"text": query.text}

    def _hit(self, running: _Running, hit: JsonView) -> tuple[DocId, float]:
        try:
            doc_id = str(hit["doc_id"])
            score = float(hit["score"])
            url = hit.get("url")
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise running.failed(f"found {short(hit)}, expected doc_id and score") from error
        document = self.corpus.get(doc_id)
        known = {} if document is None else document.metadata
        if document is None or url not in (None, known.get("url"), known.get("page_url")):
            raise running.failed(
                f"found {short(doc_id)} at {short(url)}, which the {len(self.corpus):,} documents"
                " here do not hold: it searches the index of another split or version"
            )
        if not math.isfinite(score):
            raise running.failed(f"found {doc_id!r} with the score {score}")
        return doc_id, score


class _Running:
    """A program that runs, and what it says."""

    def __init__(self, name: str, program: Program) -> None:
        self._name = name
        self._program = program
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._words: deque[bytes] = deque(maxlen=5)
        pipe = subprocess.PIPE
        try:
            started = subprocess.Popen(program.command, stdin=pipe, stdout=pipe, stderr=pipe)
        except OSError as error:
            raise VragError(
                f"search by {name}: {program.command[0]!r} cannot be started"
                f" ({error.strerror or error}). Name a program that is there."
            ) from error
        readers = [
            threading.Thread(target=_read, args=(started.stdout, self._lines.put), daemon=True),
            threading.Thread(target=_read, args=(started.stderr, self._words.append), daemon=True),
        ]
        for reader in readers:
            reader.start()
        self._process = started
        self._folder = tempfile.TemporaryDirectory(prefix="vrag-search-")
        self.end = weakref.finalize(self, _end, started, readers, self._folder)
        if self._next(program.ready_s).get("ready") is not True:
            raise self.failed("did not say that it is ready")

    def ask(self, question: JsonView) -> Json:
        """What it answers; raises `VragError` when that is no JSON object, or too late."""
        if self._process.stdin is None:
            raise ValueError("the program was started without a pipe")
        try:
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            pass  # it has ended, which its answers tell
        return self._next(self._program.reply_s)

    def picture(self, image: LazyImage) -> str:
        """A file with the picture, which the next one replaces."""
        path = Path(self._folder.name) / "asked.png"
        image.open().save(path)
        return str(path)

    def failed(self, what: str) -> VragError:
        """What went wrong, with the program's last words."""
        self.end()
        words = b" ".join(b"".join(self._words).split()).decode("utf-8", "replace")
        last = f" Its last words: {words[-500:]}" if words else ""
        return VragError(
            f"search by {self._name}: the program {Path(self._program.command[0]).name} {what}."
            f"{last} What it answered before is kept where replies are cached; try its command"
            f" by hand: {shlex.join(self._program.command)}"
        )

    def _next(self, seconds: float) -> Json:
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            raise self.failed(f"was silent for {seconds:g} seconds") from None
        if not line:
            code = self._process.wait()
            raise self.failed(f"ended with the exit status {code}")
        try:
            said = json.loads(line)
            if isinstance(said, dict):
                return said
        except ValueError:
            pass
        raise self.failed(f"said {short(line[:80])}, expected one JSON object a line")


def _read(stream: IO[bytes], put: Callable[[bytes], None]) -> None:
    """Hand on each line, and an empty one at the end."""
    for line in stream:
        put(line)
    put(b"")


def _end(
    process: subprocess.Popen[bytes],
    readers: Sequence[threading.Thread],
    folder: tempfile.TemporaryDirectory[str],
) -> None:
    process.kill()
    process.wait()
    for reader in readers:
        reader.join(timeout=5)  # longer where a child of it still holds the pipe
    for stream in (process.stdin, process.stdout, process.stderr):
        with suppress(OSError):
            if stream is not None:
                stream.close()
    folder.cleanup()
