"""The answer store: one SQLite file in which every answer is kept once, so that nothing
is ever asked twice.

An answer's key is what determines it: the model's fingerprint, every part of the prompt
in order (pictures by the hash of their pixels), the decoding, and the sample. Workers
claim questions with a lease that they keep renewing; when a worker dies, its lease runs
out and another one asks. Failures are kept as failures, with their reason, and asked
again when told so. The journal is SQLite's default, not WAL, so that the file may lie
on a network disk; that disk must know file locks, and the machines' clocks must agree
to within the lease.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vrag_kit.benchmarks.images import pixel_hash
from vrag_kit.errors import VragError
from vrag_kit.progress import track
from vrag_kit.types import Answer, LazyImage, Prompt

VERSION = 2
"""Version 1 knew models by their tensors instead of their files, and kept no sizes of
pictures: its answers stay, but are not found any more.
"""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS about (version INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS answers (
    answer_id TEXT PRIMARY KEY, status TEXT NOT NULL, raw TEXT, fields TEXT, model TEXT, sample INTEGER, prompt TEXT, sent TEXT, tokens TEXT,
    owner TEXT, lease_until REAL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pictures (
    place TEXT NOT NULL, stamp TEXT NOT NULL, pixels TEXT NOT NULL, width INTEGER NOT NULL, height INTEGER NOT NULL, PRIMARY KEY (place, stamp)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spending (model TEXT PRIMARY KEY, dollars REAL NOT NULL) WITHOUT ROWID;
"""
_CLAIMED = "claimed"


@dataclass(frozen=True, slots=True)
class Picture:
    """What is known of a picture without decoding it again."""

    pixels: str
    """Hash of its upright RGB pixels."""
    size: tuple[int, int]
    """Width and height, upright."""


def _picture(image: LazyImage) -> Picture:
    picture = image.open()
    return Picture(pixel_hash(picture), picture.size)


class AnswerStore:
    """Answers on disk, shared by all notebooks and processes that open the same file;
    use it in a `with` block or close it.
    """

    def __init__(self, path: Path | str, *, lease: float = 30.0) -> None:
        """Open or make the store.

        `lease` is how long, in seconds, a dead worker's questions stay reserved.

        Raises `VragError` for a file that is no store, is damaged, was made by another
        version, or cannot be written.
        """
        self.path, self.lease, self.owner = Path(path), lease, secrets.token_hex(8)
        self._lock = threading.Lock()
        if self.path.is_dir():
            raise VragError(
                f"{self.path}: this is a folder; expected a file in it, such as"
                f" {self.path / 'answers.sqlite'}."
            )
        with self._clearly():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(
                self.path, timeout=120, isolation_level=None, check_same_thread=False
            )
            with self._writing() as db:
                names = {
                    row[0]
                    for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
                }
                if names and "about" not in names:
                    raise VragError(
                        f"{self.path}: an SQLite file, but no answer store (it holds"
                        f" {', '.join(sorted(names))}). Choose another path."
                    )
                found = db.execute("SELECT version FROM about").fetchone() if names else None
                if found == (1,):
                    db.execute("DROP TABLE pictures")
                    db.execute("UPDATE about SET version = ?", (VERSION,))
                for statement in _SCHEMA.split(";"):
                    db.execute(statement)
                if found is None:
                    db.execute("INSERT INTO about VALUES (?)", (VERSION,))
                elif found[0] not in (1, VERSION):
                    raise VragError(
                        f"{self.path}: an answer store of version {found[0]}, expected {VERSION}."
                        " Use the vrag_kit that made it, or another path; nothing was changed."
                    )
            if (check := self._db.execute("PRAGMA quick_check").fetchone()[0]) != "ok":
                raise sqlite3.DatabaseError(check)

    def close(self) -> None:
        """Give back what this process has claimed and close the file."""
        with self._clearly(), self._writing() as db:
            db.execute("DELETE FROM answers WHERE status = ? AND owner = ?", (_CLAIMED, self.owner))
        self._db.close()

    def __enter__(self) -> AnswerStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        ok, failed = self._db.execute(
            "SELECT COALESCE(SUM(status = 'ok'), 0), COALESCE(SUM(status NOT IN ('ok', ?)), 0) FROM"
            " answers",
            (_CLAIMED,),
        ).fetchone()
        return f"AnswerStore({self.path.name}: {ok:,} answers, {failed:,} failures)"

    def pictures(self, images: Iterable[LazyImage]) -> dict[str, Picture]:
        """Pixel hash and size of each image, by its `where`; a picture that has not
        changed is decoded only the first time, by threads.
        """
        unique = {image.where: image for image in images}
        stamps = {where: image.stamp for where, image in unique.items()}
        with self._clearly():
            found = {
                where: (
                    self._db.execute(
                        "SELECT pixels, width, height FROM pictures WHERE place = ? AND stamp = ?",
                        (where, stamp),
                    ).fetchone()
                )
                for where, stamp in stamps.items()
            }
        known = {where: Picture(row[0], (row[1], row[2])) for where, row in found.items() if row}
        new = [where for where in unique if where not in known]
        with ThreadPoolExecutor() as pool:
            for start in (
                track(range(0, len(new), 512), "hashing pixels", len(new), "pictures", size=512)
                if new
                else ()
            ):
                part = new[start : start + 512]
                known.update(
                    zip(part, pool.map(lambda where: _picture(unique[where]), part), strict=True)
                )
                with self._clearly(), self._writing() as db:
                    db.executemany(
                        "INSERT OR IGNORE INTO pictures VALUES (?, ?, ?, ?, ?)",
                        [
                            (where, stamps[where], known[where].pixels, *known[where].size)
                            for where in part
                        ],
                    )
        return known

    def spent(self, model: str) -> float:
        """US dollars that a model's calls have cost, those of failures that were asked
        again included.
        """
        with self._clearly():
            row = self._db.execute(
                "SELECT dollars FROM spending WHERE model = ?", (model,)
            ).fetchone()
        return float(row[0]) if row else 0.0

    def failures(self, answer_ids: Iterable[str]) -> dict[str, str | None]:
        """Which of these questions have failed, and who wrote that down; what `claim`
        needs to ask them again.
        """
        with self._clearly():
            rows = {
                answer_id: (
                    self._db.execute(
                        "SELECT status, owner FROM answers WHERE answer_id = ?", (answer_id,)
                    ).fetchone()
                )
                for answer_id in answer_ids
            }
        return {
            answer_id: row[1]
            for answer_id, row in rows.items()
            if row and row[0] not in ("ok", _CLAIMED)
        }

    def read(self, answer_ids: Sequence[str]) -> dict[str, Answer]:
        """The answers and failures that are there, by id."""
        found = {}
        with self._clearly():
            for answer_id in answer_ids:
                row = self._db.execute(
                    "SELECT sample, raw, fields, status, sent, tokens FROM answers WHERE answer_id"
                    " = ? AND status != ?",
                    (answer_id, _CLAIMED),
                ).fetchone()
                if row:
                    found[answer_id] = Answer(
                        answer_id=answer_id,
                        sample=row[0],
                        raw=row[1],
                        fields=json.loads(row[2]),
                        status=row[3],
                        sent=json.loads(row[4]),
                        tokens=json.loads(row[5]),
                    )
        return found

    def prompt(self, answer_id: str) -> list[dict[str, Any]]:
        """What was asked: messages with role and parts, pictures as {"image": where,
        "pixels": hash}.
        """
        with self._clearly():
            row = self._db.execute(
                "SELECT prompt FROM answers WHERE answer_id = ? AND prompt IS NOT NULL",
                (answer_id,),
            ).fetchone()
        if not row:
            raise VragError(f"{self.path}: no answer {answer_id!r}.")
        return list(json.loads(row[0]))

    def claim(
        self, answer_ids: Sequence[str], *, again: Mapping[str, str | None] | None = None
    ) -> list[str]:
        """Reserve the questions that nobody else has answered or is asking; returns
        those that are now ours, in order.

        A failure is reserved when it is in `again` as `failures` gave it, and so has
        not been asked again by another process since.
        """
        ours, again = [], again or {}
        with self._clearly(), self._writing() as db:
            now = time.time()  # not before: the file may have been held by others for long
            for answer_id in answer_ids:
                row = db.execute(
                    "SELECT status, lease_until, owner FROM answers WHERE answer_id = ?",
                    (answer_id,),
                ).fetchone()
                if (
                    row is None
                    or (row[0] == _CLAIMED and (row[1] < now or row[2] == self.owner))
                    or (
                        row[0] not in ("ok", _CLAIMED)
                        and answer_id in again
                        and again[answer_id] == row[2]
                    )
                ):
                    db.execute(
                        "INSERT OR REPLACE INTO answers (answer_id, status, owner, lease_until)"
                        " VALUES (?, ?, ?, ?)",
                        (answer_id, _CLAIMED, self.owner, now + self.lease),
                    )
                    ours.append(answer_id)
        return ours

    @contextmanager
    def renewing(self) -> Iterator[None]:
        """Keep our leases alive while a batch is being answered, however long it takes.

        When a lease cannot be renewed, that is said and tried again: no answer is lost,
        but another process may ask the same questions.
        """
        done = threading.Event()

        def renew() -> None:
            while not done.wait(self.lease / 3):
                try:
                    with self._clearly(), self._writing() as db:
                        db.execute(
                            "UPDATE answers SET lease_until = ? WHERE status = ? AND owner = ?",
                            (time.time() + self.lease, _CLAIMED, self.owner),
                        )
                except VragError as error:
                    print(
                        "note: the lease could not be renewed, so another process may ask the same"
                        f" questions. {error}",
                        flush=True,
                    )

        thread = threading.Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def write(self, answers: Iterable[Answer], prompts: Mapping[str, list[dict[str, Any]]]) -> None:
        """Keep answers and failures with their prompts (by answer id); an answer that
        is already there stays as it is.

        Raises `VragError` for an "ok" answer without words: that would be a failure in
        disguise.
        """
        answers = list(answers)
        if empty := [
            answer.answer_id
            for answer in answers
            if answer.status == "ok" and not (answer.raw or "").strip()
        ]:
            raise VragError(
                f"{len(empty)} answers have the status 'ok' but no words; give them a status that"
                " says why."
            )
        with self._clearly(), self._writing() as db:
            for a in answers:
                model = a.sent.get("model")
                row = (
                    a.answer_id,
                    a.status,
                    a.raw,
                    json.dumps(dict(a.fields)),
                    model,
                    a.sample,
                    json.dumps(prompts[a.answer_id]),
                    json.dumps(dict(a.sent)),
                    json.dumps(dict(a.tokens)),
                    self.owner,
                )
                db.execute(
                    "DELETE FROM answers WHERE answer_id = ? AND status != 'ok'", (a.answer_id,)
                )
                db.execute(
                    "INSERT OR IGNORE INTO answers (answer_id, status, raw, fields, model, sample,"
                    " prompt, sent, tokens, owner) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    row,
                )
                if cost := a.fields.get("cost"):
                    db.execute(
                        "INSERT INTO spending VALUES (?, ?) ON CONFLICT (model) DO UPDATE SET"
                        " dollars = dollars + excluded.dollars",
                        (model, cost),
                    )

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One write transaction: all or nothing."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def _clearly(self) -> Iterator[None]:
        """SQLite's and the disk's errors as one clear message."""
        try:
            yield
        except sqlite3.OperationalError as error:
            advice = {
                "disk": "Free space and run again",
                "readonly": "Choose a path with write access",
                "locked": "Another process holds it; wait or stop it",
                "unable": "Choose a path with write access",
            }
            hint = next(
                (text for word, text in advice.items() if word in str(error)),
                "Check the disk and the path",
            )
            raise VragError(
                f"{self.path}: the answer store cannot be used ({error}). {hint}; answers stored so"
                " far are kept."
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


def answer_key(
    fingerprint: str,
    prompt: Prompt,
    decoding: Mapping[str, Any],
    sample: int,
    pictures: Mapping[str, Picture],
) -> tuple[str, list[dict[str, Any]]]:
    """(answer id, the prompt as it is stored): the id is a hash of everything that
    determines the answer.
    """
    stored = [
        {
            "role": message.role,
            "parts": [
                (
                    part
                    if isinstance(part, str)
                    else {"image": part.where, "pixels": pictures[part.where].pixels}
                )
                for part in message.parts
            ],
        }
        for message in prompt
    ]
    determining = [
        {
            "role": m["role"],
            "parts": [p if isinstance(p, str) else {"pixels": p["pixels"]} for p in m["parts"]],
        }
        for m in stored
    ]
    key = json.dumps(
        [fingerprint, determining, dict(decoding), sample], sort_keys=True, ensure_ascii=False
    )
    return hashlib.sha256(key.encode()).hexdigest(), stored
