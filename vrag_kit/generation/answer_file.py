"""The SQLite file under an answer store: opened, brought up to date, read and written
with errors in plain words.

The journal is SQLite's default, not WAL, so that the file may lie on a network disk;
that disk must know file locks, and the machines' clocks must agree to within a lease.
"""

from __future__ import annotations

import json
import re
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from vrag_kit.errors import VragError
from vrag_kit.forecast import STAND_IN, current_forecast
from vrag_kit.types import Status

VERSION = 3
"""Version 1 knew models by their tensors instead of their files, and kept no sizes of
pictures: its answers stay, but are not found any more. Version 2 had a failure's kind
and words in one text, kept what was read out of an answer, and wrote claims over
failures.
"""

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
    prompt TEXT,
    sent TEXT,
    tokens TEXT,
    written REAL NOT NULL DEFAULT 0
) WITHOUT ROWID;
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
    model TEXT PRIMARY KEY,
    dollars REAL NOT NULL
) WITHOUT ROWID;
"""

_ADVICE = {
    "disk": "Free space and run again",
    "readonly": "Choose a path with write access",
    "locked": "Another process holds it; wait or stop it",
    "unable": "Choose a path with write access",
}
"""A word of SQLite's message → what to do."""

_AT_ONCE = 500
"""Ids in one query."""


Row = tuple[Any, ...]  # Any: what SQLite holds


def answers_table() -> str:
    """The table of what stands as an answer or a failure: all but the stand-ins that
    another forecast left.
    """
    mark = f"json_extract(fields, '$.{STAND_IN}')"
    forecast = current_forecast()
    own = f" OR {mark} = '{forecast.mark}'" if forecast else ""
    return f"(SELECT * FROM answers WHERE {mark} IS NULL{own})"


class AnswerFile:
    """An open answer store's file, for one process and its threads."""

    def __init__(self, path: Path) -> None:
        """Open or make it, in the layout of `VERSION`.

        Raises `VragError` for a file that is no store, is damaged, was made by a later
        version, or cannot be written.
        """
        self.path = path
        self._lock = threading.Lock()
        if path.is_dir():
            raise VragError(
                f"{path}: this is a folder; expected a file in it, such as"
                f" {path / 'answers.sqlite'}."
            )
        with self._clearly():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(
                path, timeout=120, isolation_level=None, check_same_thread=False
            )
        with self.reading() as db:
            version = _version(db, path)
        if version != VERSION:
            with self.writing() as db:
                _bring_up_to_date(db, path)
        with self.reading() as db:
            found = db.execute("PRAGMA quick_check").fetchone()[0]
            if found != "ok":
                raise sqlite3.DatabaseError(found)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, for reading; nobody else has to wait for it."""
        with self._clearly():
            yield self._db

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The connection in one write transaction: all or nothing."""
        with self._clearly(), self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def rows(self, columns: str, table: str, answer_ids: Sequence[str]) -> list[Row]:
        """The rows of `table` that belong to these answers, in no particular order."""
        found = []
        with self.reading() as db:
            for start in range(0, len(answer_ids), _AT_ONCE):
                part = answer_ids[start : start + _AT_ONCE]
                marks = ", ".join("?" * len(part))
                query = f"SELECT {columns} FROM {table} WHERE answer_id IN ({marks})"
                found += db.execute(query, part).fetchall()
        return found

    @contextmanager
    def _clearly(self) -> Iterator[None]:
        """SQLite's and the disk's errors as one clear message."""
        try:
            yield
        except sqlite3.OperationalError as error:
            said = [text for word, text in _ADVICE.items() if word in str(error)]
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
    """The version of a store, 0 for a new file; raises `VragError` for another file."""
    tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    if not tables:
        return 0
    if "about" not in tables:
        raise VragError(
            f"{path}: an SQLite file, but no answer store (it holds {', '.join(sorted(tables))})."
            " Choose another path."
        )
    version = int(db.execute("SELECT version FROM about").fetchone()[0])
    if version not in (1, 2, VERSION):
        raise VragError(
            f"{path}: an answer store of version {version}, expected {VERSION}. Use the vrag_kit"
            " that made it, or another path; nothing was changed."
        )
    return version


def _bring_up_to_date(db: sqlite3.Connection, path: Path) -> None:
    """Make the tables, or change those of an earlier version; no answer is lost."""
    version = _version(db, path)
    if version == VERSION:  # another process was faster
        return
    if version:
        _nobody_is_asking(db, path, version)
        _keep_copy(path, version)
    if version == 1:
        db.execute("DROP TABLE pictures")
    if version:
        db.execute("ALTER TABLE answers RENAME TO answers_before")
    for statement in _SCHEMA.split(";"):
        db.execute(statement)
    if version:
        _carry_over(db)
        _find_again(db, path)
    db.execute("DELETE FROM about")
    db.execute("INSERT INTO about VALUES (?)", (VERSION,))


def _nobody_is_asking(db: sqlite3.Connection, path: Path, version: int) -> None:
    """Raise `VragError` while a process of the earlier version works with the store."""
    live = db.execute(
        "SELECT owner, lease_until FROM answers WHERE status = 'claimed' AND lease_until >= ?"
        " ORDER BY lease_until DESC",
        (time.time(),),
    ).fetchall()
    if live:
        owner, until = live[0]
        raise VragError(
            f"{path}: a store of version {version}, and a process of the vrag_kit that made it"
            f" (owner {owner}) is asking {len(live):,} questions, reserved for"
            f" {until - time.time():.0f} s yet. Let it finish or stop it, wait until then, and run"
            " again; nothing was changed."
        )


def _keep_copy(path: Path, version: int) -> None:
    """Keep the store as it was, beside it, as "<name>.v<version>"."""
    kept = path.with_name(f"{path.name}.v{version}")
    part = kept.with_name(f"{kept.name}.part")
    part.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(part)) as target:
        source.backup(target)
    part.replace(kept)


def _carry_over(db: sqlite3.Connection) -> None:
    """Answers of version 2: claims apart, and failures as kind and words."""
    db.execute(
        "INSERT INTO claims SELECT answer_id, owner, lease_until FROM answers_before"
        " WHERE status = 'claimed'"
    )
    old = db.execute(
        "SELECT answer_id, status, raw, fields, model, sample, prompt, sent, tokens"
        " FROM answers_before WHERE status != 'claimed'"
    )
    for row in old:
        db.execute("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", _carried(row))
    db.execute("DROP TABLE answers_before")


def _find_again(db: sqlite3.Connection, path: Path) -> None:
    """Put served models' answers under today's keys, so that none is paid for twice."""
    from vrag_kit.generation.migrating import put_under_todays_keys  # it opens stores itself

    counts, unknown = put_under_todays_keys(db, {})
    if counts["moved"]:
        print(
            f"note: {path}: {counts['moved']:,} answers of served models now stand under today's"
            " keys. Where a model has another name by now, `vrag answers migrate"
            f" {path} --params <parameters>` finds its answers.",
            flush=True,
        )
    if unknown:
        print(
            f"note: {path}: answers of {', '.join(unknown)} fit no key that is known here; they"
            " are kept, but would be asked again.",
            flush=True,
        )


def _carried(row: Row) -> Row:
    """A row of version 2 as this version has it."""
    said, raw = row[1:3]
    return (row[0], *_kind_and_words(said, raw), raw, _call_fields(row[3]), *row[4:], 0.0)


def _kind_and_words(said: str, raw: str | None) -> tuple[str, str]:
    """A version 2 status, such as "refused: policy", as kind and words.

    That an answer was found empty is no failure of the call: its words are read anew.
    """
    if raw and said.startswith("empty: nothing after"):
        return Status.OK, ""
    found = re.fullmatch(r"([a-z ]+):?\s*(.*)", said, re.DOTALL)
    kind = found[1].replace(" ", "_") if found else ""
    if found is None or kind not in set(Status):
        return Status.ERROR, said
    return kind, found[2].strip()


def _call_fields(fields: str | None) -> str:
    """What the call told, without what was read out of the words."""
    told = json.loads(fields or "{}")
    return json.dumps({name: told[name] for name in told if name not in ("answer", "untagged")})
