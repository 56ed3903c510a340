"""The answer store: one SQLite file in which every answer is generated and kept once.

An answer's key is what determines it (`store_layout.answer_ids`). Workers claim questions with a
lease that they renew. When a worker dies, another one takes over: at once on the same machine,
elsewhere when the lease has expired. Failures are stored with their reason, and retried on request;
a failure stays until its retry has an answer. Answers are parsed each time they are read, so that
an improved parser also applies to old answers.

The journal is SQLite's default, not WAL, so that the file may lie on a network disk. That disk must
support file locks, and the machines' clocks must agree to within a lease.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import psutil

from vrag_kit.benchmarks.images import pixel_hash
from vrag_kit.dry_run import current_dry_run
from vrag_kit.errors import VragError
from vrag_kit.generation.store_layout import (
    ANSWER_COLUMNS,
    DAMAGED_ROWS,
    VERSION,
    ImageInfo,
    StoredPrompt,
    create_tables,
    prompt_id,
)
from vrag_kit.log import progress
from vrag_kit.types import Answer, Failure, Json, LazyImage, Status
from vrag_kit.workspace import Workspace

_ANSWER = "answer_id, status, detail, sample, raw, fields, sent, tokens"
_SPEND = (
    "INSERT INTO spending VALUES (?, ?, ?) ON CONFLICT (writer, model) DO UPDATE SET"
    " dollars = dollars + excluded.dollars"
)
"""Spending is counted by opened store, so that stores can be merged."""
_DELETE_FAILURE = "DELETE FROM answers WHERE answer_id = ? AND status <> 'ok'"
_INSERT = (
    f"INSERT OR IGNORE INTO answers ({ANSWER_COLUMNS})"
    f" VALUES ({', '.join(f':{name}' for name in ANSWER_COLUMNS.split(', '))})"
)
_LOCK_TIMEOUT = 120  # seconds
_PER_WRITE = 512

Row = tuple[Any, ...]  # Any: what SQLite holds


class AnswerStore(AbstractContextManager["AnswerStore"]):
    """Stores answers on disk, shared by all notebooks and processes that open the same file. Use it
    in a `with` block or close it.
    """

    def __init__(self, path: Path | str, *, lease: float = 30.0) -> None:
        """Open or create the store; in a dry run, open a temporary copy.

        `lease` is how long, in seconds, questions stay reserved for a worker on another machine
        that has died.

        Raises `VragError` for a file that is not a store, is damaged, has another layout, or cannot
        be written.
        """
        self.path = _dry_run_path(Path(path))
        self.lease = lease
        self._writer = secrets.token_hex(8)
        self.owner = f"{_process_name(os.getpid())} {self._writer}"
        self._lock = threading.RLock()
        with self._errors_explained():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(
                self.path, timeout=_LOCK_TIMEOUT, isolation_level=None, check_same_thread=False
            )
        with self.reading() as db:
            is_empty = db.execute("SELECT 1 FROM sqlite_master").fetchone() is None
        if is_empty:
            with self.writing() as db:
                create_tables(db)
        self._check()

    def _check(self) -> None:
        """Raise `VragError` for another database or layout, and for a damaged file or row; the file
        is read as a whole.
        """
        with self.reading() as db:
            versions = [version for (version,) in db.execute("SELECT version FROM about")]
            if versions != [VERSION]:
                raise VragError(
                    f"{self.path}: an answer store of layout {versions}, expected layout {VERSION};"
                    " use the vrag_kit that made it, or another path."
                )
            found = db.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise sqlite3.DatabaseError(f"damaged: {found}")
            for answer_id, status in db.execute(DAMAGED_ROWS):
                row = f"answer {answer_id!r} (status {status!r})"
                raise VragError(f"{self.path}: found the damaged row of {row}; restore a copy.")

    def close(self) -> None:
        """Release the claims of this process and close the file."""
        self._change_claims("DELETE FROM claims WHERE owner = ?", self.owner)
        self._db.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def image_info(self, images: Iterable[LazyImage]) -> dict[str, ImageInfo]:
        """Return the pixel hash and size of each image, by its `where`. An image that has not
        changed is decoded only the first time, by threads.
        """
        unique = {image.where: image for image in images}
        rows = self.rows("place, stamp, pixels, width, height", "pictures", unique, "place")
        infos = {
            where: ImageInfo(pixels, (width, height))
            for where, stamp, pixels, width, height in rows
            if stamp == unique[where].stamp
        }
        new = [image for where, image in unique.items() if where not in infos]
        starts = range(0, len(new), _PER_WRITE)
        with ThreadPoolExecutor() as pool:
            for start in progress(starts, "reading images", len(starts), "batches of images"):
                part = new[start : start + _PER_WRITE]
                found = list(zip(part, pool.map(_image_info, part), strict=True))
                values = [(each.where, each.stamp, info.pixels, *info.size) for each, info in found]
                with self.writing() as db:
                    db.executemany("INSERT OR IGNORE INTO pictures VALUES (?, ?, ?, ?, ?)", values)
                infos |= {each.where: info for each, info in found}
        return infos

    def total_cost(self, model: str) -> float:
        """Return what a model's calls have cost, in US dollars. The calls of failures that were
        retried are included.
        """
        with self.reading() as db:
            query = "SELECT TOTAL(dollars) FROM spending WHERE model = ?"
            return float(db.execute(query, (model,)).fetchone()[0])

    def read(self, answer_ids: Sequence[str]) -> dict[str, Answer]:
        """Return the stored answers and failures, by id. Their `fields` hold what the call
        returned, nothing that was parsed from `raw`.
        """
        parse = cache(json.loads)  # most of these texts recur
        rows = self.rows(_ANSWER, "answers", answer_ids)
        return {row[0]: _answer(row, parse) for row in rows}

    def table(self) -> pd.DataFrame:
        """Return all answers and failures, a row each: answer_id, model, status, detail, raw,
        sample, prompt, sent, tokens and fields (these four in JSON), stored (a time in UTC), and
        cost (US dollars; NaN if none).
        """
        query = (
            "SELECT answer_id, model, status, detail, raw, sample, prompt, sent, tokens, fields,"
            " stored, json_extract(fields, '$.cost') AS cost"
            " FROM answers LEFT JOIN prompts USING (prompt_id) ORDER BY answer_id"
        )
        with self.reading() as db:
            table = pd.read_sql_query(query, db, dtype={"cost": float})
        return table.assign(stored=pd.to_datetime(table["stored"], unit="s", utc=True))

    def has_model(self, model: str) -> bool:
        """Return whether the store holds a successful answer of the model."""
        query = "SELECT 1 FROM answers WHERE model = ? AND status = 'ok' LIMIT 1"
        with self.reading() as db:
            return db.execute(query, (model,)).fetchone() is not None

    def prompt(self, answer_id: str) -> StoredPrompt:
        """Return the stored prompt of an answer: messages with role and parts. Images are {"image":
        where, "pixels": hash}. Raises `VragError` if the prompt is not stored.
        """
        table = "answers JOIN prompts USING (prompt_id)"
        for prompt, name in self.rows("prompt, prompt_id", table, [answer_id]):
            if prompt_id(prompt) == name:
                return list(json.loads(prompt))
        raise VragError(f"{self.path}: no answer {answer_id!r}, or none whose prompt was kept.")

    def image_uris(self, pixels: str) -> list[str]:
        """Return the `where` of each known image with this pixel hash."""
        with self.reading() as db:
            rows = db.execute("SELECT DISTINCT place FROM pictures WHERE pixels = ?", (pixels,))
            return [str(place) for (place,) in rows]

    def failures(self, answer_ids: Iterable[str]) -> dict[str, float]:
        """Return which of these answers are failures, with the time of storing, in seconds. `claim`
        needs these times to retry them.
        """
        rows = self.rows("answer_id, status, stored", "answers", list(answer_ids))
        return {answer_id: stored for answer_id, status, stored in rows if status != Status.OK}

    def claim(
        self, answer_ids: Sequence[str], *, retry: Mapping[str, float] | None = None
    ) -> list[str]:
        """Reserve the questions that no other process has answered or is asking.

        Returns the reserved ids, in order. A failure is reserved if `retry` holds it with the time
        that `failures` returned, so that no other process has retried it; it stays until its answer
        is written. If nothing is free, nothing is written and no process has to wait.
        """
        if not self.free(answer_ids, retry=retry):
            return []
        with self.writing() as db:
            ours = self.free(answer_ids, retry=retry)
            until = time.time() + self.lease  # not before: others may have held the file for long
            db.executemany(
                "INSERT OR REPLACE INTO claims VALUES (?, ?, ?)",
                [(answer_id, self.owner, until) for answer_id in ours],
            )
        return ours

    def free(
        self, answer_ids: Sequence[str], *, retry: Mapping[str, float] | None = None
    ) -> list[str]:
        """Return the questions that `claim` would reserve, in order, without reserving them."""
        now = time.time()
        claims = self.rows("answer_id, owner, lease_until", "claims", answer_ids)
        held = [(answer_id, owner) for answer_id, owner, until in claims if until >= now]
        owners = {owner for _, owner in held} - {self.owner}
        living = {owner for owner in owners if not _has_ended(owner.partition(" ")[0])}
        taken = {answer_id for answer_id, owner in held if owner in living}
        return [each for each in self.unanswered(answer_ids, retry=retry) if each not in taken]

    def unanswered(
        self, answer_ids: Sequence[str], *, retry: Mapping[str, float] | None = None
    ) -> list[str]:
        """Return the questions without an answer or failure, in order, and the failures that
        `retry` holds and that no process has retried.
        """
        rows = self.rows("answer_id, status, stored", "answers", answer_ids)
        answered = {
            answer_id
            for answer_id, status, stored in rows
            if status == Status.OK or (retry or {}).get(answer_id) != stored
        }
        return [answer_id for answer_id in answer_ids if answer_id not in answered]

    @contextmanager
    def renew_leases(self) -> Iterator[None]:
        """Renew the leases of this process while a batch is being answered. If that fails, it is
        tried again: no answer is lost, but another process may ask the same questions.
        """
        done = threading.Event()
        renewal = "UPDATE claims SET lease_until = ? WHERE owner = ?"

        def renew() -> None:
            while not done.wait(self.lease / 3):
                with suppress(VragError):
                    self._change_claims(renewal, time.time() + self.lease, self.owner)

        thread = threading.Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _change_claims(self, statement: str, *values: object) -> None:
        """Run a statement on the claims of this process; it writes nothing if there are none."""
        query = "SELECT 1 FROM claims WHERE owner = ? LIMIT 1"
        with self.reading() as db:
            if db.execute(query, (self.owner,)).fetchone() is None:
                return
        with self.writing() as db:
            db.execute(statement, values)

    def write(self, answers: Iterable[Answer], prompts: Mapping[str, StoredPrompt]) -> None:
        """Store answers and failures with their prompts, by answer id. An answer that is already
        stored is kept; a failure is replaced.

        Raises `VragError` for an empty answer that is not marked as a failure, and for a
        placeholder of a dry run, unless this store is the dry run's own.
        """
        with self.writing() as db:
            for answer in answers:
                if answer.is_placeholder and not _is_scratch_path(self.path):
                    raise VragError(
                        f"{self.path}: found a placeholder of a dry run; expected answers. Open the"
                        " store within the dry run, which then works with a copy."
                    )
                if answer.failure is None and not (answer.raw or "").strip():
                    raise VragError("an answer has the status 'ok' but no text; expected some.")
                text = json.dumps(prompts[answer.answer_id])
                db.execute("INSERT OR IGNORE INTO prompts VALUES (?, ?)", (prompt_id(text), text))
                db.execute(_DELETE_FAILURE, (answer.answer_id,))
                db.execute(_INSERT, _row(answer, prompt_id(text)))
                if cost := answer.fields.get("cost"):
                    db.execute(_SPEND, (self._writer, answer.sent.get("model"), cost))
                claim = (answer.answer_id, self.owner)
                db.execute("DELETE FROM claims WHERE answer_id = ? AND owner = ?", claim)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection for reading; no other process has to wait. Threads take turns: a
        read in one thread would keep another one from waiting for its write.
        """
        with self._errors_explained(), self._lock:
            yield self._db

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection in one write transaction: all or nothing."""
        with self._errors_explained(), self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def rows(
        self, columns: str, table: str, names: Collection[str], named: str = "answer_id"
    ) -> list[Row]:
        """Return the rows of `table` whose column `named` is one of `names`, in no particular
        order.
        """
        query = f"SELECT {columns} FROM {table} WHERE {named} IN (SELECT value FROM json_each(?))"
        with self.reading() as db:
            return db.execute(query, [json.dumps(list(names), ensure_ascii=False)]).fetchall()

    @contextmanager
    def _errors_explained(self) -> Iterator[None]:
        """Turn errors of SQLite and of the disk into a `VragError`."""
        try:
            yield
        except (sqlite3.DatabaseError, OSError) as error:
            name = getattr(error, "sqlite_errorname", type(error).__name__)
            words = f"the answer store cannot be used ({error}, {name})"
            raise VragError(f"{self.path}: {words}. Answers stored so far are kept.") from error


def _row(answer: Answer, prompt: str) -> Json:
    return {
        "answer_id": answer.answer_id,
        "status": answer.status,
        "detail": answer.detail,
        "raw": answer.raw,
        "fields": json.dumps(dict(answer.fields)),
        "model": answer.sent.get("model"),
        "sample": answer.sample,
        "prompt_id": prompt,
        "sent": json.dumps(dict(answer.sent)),
        "tokens": json.dumps(dict(answer.tokens)),
        "stored": time.time(),
    }


def _answer(row: Row, parse: Callable[[str], Any]) -> Answer:  # Any: what JSON holds
    return Answer(  # in the order of _ANSWER
        answer_id=row[0],
        failure=None if row[1] == Status.OK else Failure(Status(row[1]), row[2]),
        sample=row[3],
        raw=row[4],
        fields=parse(row[5]),
        sent=parse(row[6]),
        tokens=parse(row[7]),
    )


def _image_info(image: LazyImage) -> ImageInfo:
    opened = image.open()
    return ImageInfo(pixel_hash(opened), opened.size)


def _dry_run_path(path: Path) -> Path:
    """Return where to open a store: at `path`, or in a dry run at a temporary copy.

    This is independent of where the store lies and which parameter names its folder.
    """
    dry_run = current_dry_run()
    if dry_run is None:
        return path
    scratch = path
    if not _is_scratch_path(path):
        name = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]
        scratch = dry_run.scratch / name / path.name
        scratch.parent.mkdir(exist_ok=True)
        if path.is_file() and not scratch.exists():
            copy_store(path, scratch)
    dry_run.stores.add(scratch)
    return scratch


def _is_scratch_path(path: Path) -> bool:
    """Whether a file lies in the temporary folder of the current dry run."""
    current = current_dry_run()
    return current is not None and path.resolve().is_relative_to(current.scratch.resolve())


def copy_store(store: Path, target: Path) -> None:
    """Copy a store to `target`. SQLite first rolls back a store whose last writer was killed, which
    needs write access. Raises `VragError` for a file that is not a store.
    """
    uri = f"{store.resolve().as_uri()}?mode=rw"  # as "ro" where the file is read-only
    try:
        with (
            closing(sqlite3.connect(uri, uri=True)) as source,
            closing(sqlite3.connect(target)) as copy,
        ):
            source.backup(copy)
    except sqlite3.Error as error:
        target.unlink(missing_ok=True)
        raise VragError(f"{store}: found {error}; expected a store of answers.") from error


def stored_field(answers: pd.DataFrame, at: Workspace, field: str) -> pd.Series:
    """Return a field of the stored answer to each row of `answers`, which come from `ask_models`
    in the same workspace; None or NaN where it was not recorded. Examples are the probability
    of a reply (`PROBABILITY`), the model name that an endpoint reports (`SERVED`), and numbers of
    tokens ("prompt_tokens", "completion_tokens").
    """
    path = at.answers_file
    if "answer_id" not in answers or not path.is_file():
        return pd.Series(None, answers.index, dtype=object, name=field)
    with AnswerStore(path) as store:
        stored = store.read(list(answers["answer_id"].dropna().unique()))
    kind = field.removesuffix("_tokens")
    found = {key: each.fields.get(field, each.tokens.get(kind)) for key, each in stored.items()}
    return answers["answer_id"].map(found).astype(object).rename(field)


def _process_name(number: int) -> str:
    """Return a unique name of a process of this machine, "<machine>/<number>/<start>"."""
    return f"{_machine()}/{number}/{_start(number)}"


def _has_ended(name: str) -> bool:
    """Return whether the process with a name from `_process_name` has certainly ended. It is False
    for a process on another machine, or in another container.
    """
    parts = name.split("/")
    return parts[0] == _machine() and name != _process_name(int(parts[1]))


@cache
def _machine() -> str:
    """Identify where process numbers are unique: a machine since its start, or a container."""
    parts = [platform.node()]
    namespace = Path("/proc/self/ns/pid")
    if namespace.exists():  # Linux
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        parts += [boot, str(namespace.readlink())]
    return hashlib.sha256("/".join(parts).encode()).hexdigest()[:12]


def _start(number: int) -> str:
    """Return a number that differs between processes of the same number; "" without a process."""
    try:
        process = psutil.Process(number)
        # psutil's hash is that of the number and of the start, which setting the clock leaves
        return "" if process.status() == psutil.STATUS_ZOMBIE else str(hash(process))
    except psutil.NoSuchProcess:
        return ""
