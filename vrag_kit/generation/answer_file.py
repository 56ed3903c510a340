"""`AnswerFile`: opens, reads and writes the SQLite file of an answer store.

The journal is SQLite's default, not WAL, so that the file may lie on a network disk. That disk must
support file locks, and the machines' clocks must agree to within a lease.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vrag_kit.errors import VragError
from vrag_kit.forecast import STAND_IN, current_dry_run, memoize_dry_run
from vrag_kit.outcomes import Status

VERSION = 5
"""Version of the table layout; a store with another version is refused."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS about (version INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS answers (
    answer_id TEXT PRIMARY KEY,
    status TEXT NOT NULL,
    detail TEXT NOT NULL DEFAULT '',
    raw TEXT,
    fields TEXT,
    model TEXT,
    sample INTEGER,
    prompt_id TEXT,
    sent TEXT,
    tokens TEXT,
    stored REAL NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS prompts (
    prompt_id TEXT PRIMARY KEY,
    prompt TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS claims (
    answer_id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    lease_until REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pictures (
    place TEXT NOT NULL,
    stamp TEXT NOT NULL,
    pixels TEXT NOT NULL,
    width INTEGER NOT NULL,
    height INTEGER NOT NULL,
    PRIMARY KEY (place, stamp)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spending (
    writer TEXT NOT NULL,
    model TEXT NOT NULL,
    dollars REAL NOT NULL,
    PRIMARY KEY (writer, model)
) WITHOUT ROWID;
"""

_WRITTEN = (
    "answer_id",
    "status",
    "detail",
    "raw",
    "fields",
    "model",
    "sample",
    "prompt_id",
    "sent",
    "tokens",
    "stored",
)
"""Columns of the table `answers`."""
STORED_COLUMNS = (*_WRITTEN, "prompt")
"""Columns of `visible_answers_sql`. A prompt is stored once, for all models and samples."""
_PUT = (
    f"INSERT OR REPLACE INTO answers ({', '.join(_WRITTEN)})"
    f" VALUES ({', '.join(f':{name}' for name in _WRITTEN)})"
)
_DAMAGED = (
    "SELECT answer_id, status FROM answers"
    f" WHERE status NOT IN {tuple(map(str, Status))}"
    " OR (status = 'ok' AND typeof(raw) <> 'text')"
    " OR json_valid(fields) + json_valid(sent) + json_valid(tokens) IS NOT 3 LIMIT 1"
)
"""A row that nothing of ours wrote: read, it would count as an empty answer, or end a run."""
_ADVICE = {
    "DBMOVED": "The file was replaced or deleted while it was open; run again",
    "disk": "Free space and run again",
    "readonly": "Choose a path with write access",
    "locked": "Another process holds it; wait or stop it",
    "unable": "Choose a path with write access",
}
"""A word of SQLite's message, or of the name of its error → what to do."""

_PATIENCE = 120
"""Seconds that others are waited for."""
_AT_ONCE = 500
"""Ids in one query."""


StoredRow = tuple[Any, ...]  # Any: what SQLite holds


def visible_answers_sql() -> str:
    """Return the SQL subquery of all answers and failures that are visible. Placeholders of other
    dry runs are left out.
    """
    mark = f"json_extract(fields, '$.{STAND_IN}')"
    forecast = current_dry_run()
    own = f" OR {mark} = '{forecast.mark}'" if forecast else ""
    whole = "answers LEFT JOIN prompts USING (prompt_id)"  # not read where nobody asks for it
    return f"(SELECT {', '.join(STORED_COLUMNS)} FROM {whole} WHERE {mark} IS NULL{own})"


def prompt_id(prompt: str) -> str:
    """Return the id of a prompt in JSON: its SHA-256 hash."""
    return hashlib.sha256(prompt.encode()).hexdigest()


def insert_answer(db: sqlite3.Connection, row: Mapping[str, Any]) -> None:  # Any: what SQLite holds
    """Insert an answer and its prompt, replacing any row with the same id. `row` has
    `STORED_COLUMNS`; the prompt's id is computed here.
    """
    prompt = row["prompt"]
    name = None if prompt is None else prompt_id(prompt)
    if name is not None:
        db.execute("INSERT OR IGNORE INTO prompts VALUES (?, ?)", (name, prompt))
    db.execute(_PUT, {**row, "prompt_id": name})


def create_tables(db: sqlite3.Connection) -> None:
    """Create the tables of a store."""
    for statement in _SCHEMA.split(";"):
        db.execute(statement)


class AnswerFile:
    """The open file of an answer store, for one process and its threads."""

    def __init__(self, path: Path) -> None:
        """Open or create the file, in the layout of `VERSION`.

        Raises `VragError` for a file that is not a store, is damaged, has another layout, or cannot
        be written.
        """
        self.path = path
        self._lock = threading.RLock()
        if path.is_dir():
            raise VragError(
                f"{path}: this is a folder; expected a file in it, such as"
                f" {path / 'answers.sqlite'}."
            )
        with self._clearly():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(
                path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
            )
        with self.reading() as db:
            version = _version(db, path)
        if not version:
            self._make()
        memoize_dry_run(self._check, "quick_check", str(path))
        memoize_dry_run(self._check_rows, "check_rows", str(path))

    def _check(self) -> None:
        """Raise `VragError` for a damaged file; it is read as a whole."""
        with self.reading() as db:
            found = db.execute("PRAGMA quick_check").fetchone()[0]
            if found != "ok":
                raise sqlite3.DatabaseError(found)

    def _check_rows(self) -> None:
        """Raise `VragError` for an answer that is none."""
        with self.reading() as db:
            for answer_id, status in db.execute(_DAMAGED):
                raise VragError(
                    f"{self.path}: the row of answer {answer_id!r} (status {status!r}) is damaged."
                    " Restore a copy, or delete the row, and it is asked again."
                )

    def _make(self) -> None:
        """Make the tables of a new file, unless another process was faster."""
        with self.writing() as db:
            if not _version(db, self.path):
                create_tables(db)
                db.execute("INSERT INTO about VALUES (?)", (VERSION,))

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection for reading; no other process has to wait. Threads take turns: a
        read in one thread would keep another one from waiting for its write.
        """
        with self._clearly(), self._lock:
            yield self._db

    @contextmanager
    def writing(self, kind: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
        """Yield the connection in one write transaction: all or nothing."""
        with self._clearly(), self._lock:
            self._db.execute(f"BEGIN {kind}")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def rows(
        self, columns: str, table: str, names: Collection[str], named: str = "answer_id"
    ) -> list[StoredRow]:
        """Return the rows of `table` whose column `named` is one of `names`, in no particular
        order.
        """
        found = []
        wanted = sorted(names)  # neighbours lie together on disk
        with self.reading() as db:
            for start in range(0, len(wanted), _AT_ONCE):
                part = wanted[start : start + _AT_ONCE]
                marks = ", ".join("?" * len(part))
                query = f"SELECT {columns} FROM {table} WHERE {named} IN ({marks})"
                found += db.execute(query, part).fetchall()
        return found

    @contextmanager
    def _clearly(self) -> Iterator[None]:
        """SQLite's and the disk's errors as one clear message."""
        try:
            yield
        except sqlite3.OperationalError as error:
            told = f"{error} {getattr(error, 'sqlite_errorname', '')}"
            said = [text for word, text in _ADVICE.items() if word in told]
            advice = said[0] if said else "Check the disk and the path"
            raise VragError(
                f"{self.path}: the answer store cannot be used ({error}). {advice}; answers stored"
                " so far are kept."
            ) from error
        except sqlite3.DatabaseError as error:
            raise VragError(
                f"{self.path}: not a readable answer store ({error}). Restore a copy, or move the"
                " file away to begin a new one."
            ) from error
        except OSError as error:
            raise VragError(
                f"{self.path}: the answer store cannot be made there ({error.strerror}). Choose a"
                " path with write access."
            ) from error


def _version(db: sqlite3.Connection, path: Path) -> int:
    """The layout's version, 0 for a new file; raises `VragError` for another layout or file."""
    tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    if not tables:
        return 0
    if "about" not in tables:
        raise VragError(
            f"{path}: an SQLite file, but no answer store (it holds {', '.join(sorted(tables))})."
            " Choose another path."
        )
    version: int
    (version,) = db.execute("SELECT version FROM about").fetchone() or (0,)
    if version != VERSION:
        raise VragError(
            f"{path}: an answer store of layout {version!r}, expected layout {VERSION}; use the"
            " vrag_kit that made it, or another path."
        )
    return version
