"""The answer store: one SQLite file in which every answer is generated and kept once.

An answer's key is what determines it (`AnswerKeys`). Workers claim questions with a lease that they
renew. When a worker dies, another one takes over: at once on the same machine, elsewhere when the
lease has expired. Failures are stored with their reason, and retried on request; a failure stays
until its retry has an answer. Answers are parsed each time they are read, so that an improved
parser also applies to old answers.
"""

from __future__ import annotations

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
from vrag_kit.forecast import STAND_IN, current_dry_run, is_scratch_path, memoize_dry_run
from vrag_kit.generation.answer_file import (
    AnswerFile,
    StoredRow,
    insert_answer,
    prompt_id,
    visible_answers_sql,
)
from vrag_kit.generation.keys import ImageInfo, StoredPrompt
from vrag_kit.generation.store_copies import store_path
from vrag_kit.processes import has_ended, process_name
from vrag_kit.progress import track
from vrag_kit.types import Answer, Failure, LazyImage, Status

_PICTURES_AT_ONCE = 512
_COLUMNS = "answer_id, status, detail, sample, raw, fields, sent, tokens"
"""Columns that are read for an answer."""
_SPEND = (
    "INSERT INTO spending VALUES (?, ?, ?) ON CONFLICT (writer, model) DO UPDATE SET"
    " dollars = dollars + excluded.dollars"
)
"""Each opening of a store counts what it spends, so that sums of stores can be merged."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A picture that this process has looked at."""

    image: LazyImage
    stamp: str
    """What it had then."""
    picture: ImageInfo

    def stands(self, image: LazyImage) -> bool:
        """Whether it is known without another look: in a forecast, which takes seconds."""
        return self.image is image and current_dry_run() is not None


class AnswerStore:
    """Stores answers on disk, shared by all notebooks and processes that open the same file. Use it
    in a `with` block or close it.
    """

    def __init__(self, path: Path | str, *, lease: float = 30.0) -> None:
        """Open or create the store; in a dry run, open a temporary copy.

        `lease` is how long, in seconds, questions stay reserved for a worker on another machine
        that has died.

        Raises `VragError` for a file that is not a store, is damaged, was written by another
        version, or cannot be written.
        """
        self.path = store_path(Path(path))
        self.lease = lease
        self._writer = secrets.token_hex(8)
        self.owner = f"{process_name()} {self._writer}"
        self._file = AnswerFile(self.path)
        self._seen: dict[str, _Seen] = memoize_dry_run(
            dict, "pictures", str(self.path)
        )  # by `where`

    def close(self) -> None:
        """Release the claims of this process and close the file."""
        if self._has_claims():
            with self._file.writing() as db:
                db.execute("DELETE FROM claims WHERE owner = ?", (self.owner,))
        self._file.close()

    def __enter__(self) -> AnswerStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        with self._file.reading() as db:
            count = (
                "SELECT COUNT(*), COUNT(*) FILTER (WHERE status = 'ok') FROM"
                f" {visible_answers_sql()}"
            )
            every, ok = db.execute(count).fetchone()
        return f"AnswerStore({self.path.name}: {ok:,} answers, {every - ok:,} failures)"

    def pictures(self, images: Iterable[LazyImage]) -> dict[str, ImageInfo]:
        """Return the pixel hash and size of each image, by its `where`. An image that has not
        changed is decoded only the first time, by threads.
        """
        known: dict[str, ImageInfo] = {}
        unseen: dict[str, LazyImage] = {}
        for image in images:
            where = image.where
            if where in known or where in unseen:
                continue
            seen = self._seen.get(where)
            if seen is not None and (seen.stands(image) or seen.stamp == image.stamp):
                known[where] = seen.picture
            else:
                unseen[where] = image
        if unseen:
            known |= self._stored(unseen)
        return known

    def _stored(self, images: Mapping[str, LazyImage]) -> dict[str, ImageInfo]:
        """Pictures that this process has not seen yet, stored or decoded, by `where`."""
        stamps = {where: image.stamp for where, image in images.items()}
        columns = "place, stamp, pixels, width, height"
        found: dict[str, ImageInfo] = {}
        for place, stamp, pixels, *size in self._file.rows(columns, "pictures", stamps, "place"):
            if stamp == stamps[place]:
                found[place] = ImageInfo(pixels, (size[0], size[1]))
        if new := [image for where, image in images.items() if where not in found]:
            found |= self._look_at(new)
        for where, picture in found.items():
            self._seen[where] = _Seen(images[where], stamps[where], picture)
        return found

    def _look_at(self, images: Sequence[LazyImage]) -> dict[str, ImageInfo]:
        """Decode pictures, and remember what is known of them, part by part."""
        found: dict[str, ImageInfo] = {}
        starts = range(0, len(images), _PICTURES_AT_ONCE)
        with ThreadPoolExecutor() as pool:
            for start in track(
                starts, "reading pictures", len(images), "pictures", size=_PICTURES_AT_ONCE
            ):
                part = images[start : start + _PICTURES_AT_ONCE]
                looks = list(pool.map(_look, part))
                rows = [
                    (image.where, image.stamp, look.pixels, *look.size)
                    for image, look in zip(part, looks, strict=True)
                ]
                with self._file.writing() as db:
                    db.executemany("INSERT OR IGNORE INTO pictures VALUES (?, ?, ?, ?, ?)", rows)
                found.update((image.where, look) for image, look in zip(part, looks, strict=True))
        return found

    def total_cost(self, model: str) -> float:
        """Return what a model's calls have cost, in US dollars. The calls of failures that were
        retried are included.
        """
        with self._file.reading() as db:
            query = "SELECT TOTAL(dollars) FROM spending WHERE model = ?"
            return float(db.execute(query, (model,)).fetchone()[0])

    def read(self, answer_ids: Sequence[str]) -> dict[str, Answer]:
        """Return the stored answers and failures, by id. Their `fields` hold what the call
        returned, nothing that was parsed from `raw`.
        """
        parsed: dict[str, Any] = {}
        rows = self._file.rows(_COLUMNS, visible_answers_sql(), answer_ids)
        return {row[0]: _answer(row, parsed) for row in rows}

    def has_model(self, model: str) -> bool:
        """Return whether the store holds a successful answer of the model."""
        with self._file.reading() as db:
            query = (
                f"SELECT 1 FROM {visible_answers_sql()} WHERE model = ? AND status = 'ok' LIMIT 1"
            )
            return db.execute(query, (model,)).fetchone() is not None

    def prompt(self, answer_id: str) -> StoredPrompt:
        """Return the stored prompt of an answer: messages with role and parts. Images are {"image":
        where, "pixels": hash}. Raises `VragError` if the prompt is not stored.
        """
        for prompt, name in self._file.rows(
            "prompt, prompt_id", visible_answers_sql(), [answer_id]
        ):
            if prompt is not None and prompt_id(prompt) == name:
                return list(json.loads(prompt))
        raise VragError(f"{self.path}: no answer {answer_id!r}, or none whose prompt was kept.")

    def image_uris(self, pixels: str) -> list[str]:
        """Return the `where` of each known image with this pixel hash."""
        with self._file.reading() as db:
            rows = db.execute("SELECT DISTINCT place FROM pictures WHERE pixels = ?", (pixels,))
            return [str(place) for (place,) in rows]

    def failures(self, answer_ids: Iterable[str]) -> dict[str, float]:
        """Return which of these answers are failures, with the time of storing, in seconds. `claim`
        needs these times to retry them.
        """
        rows = self._file.rows("answer_id, status, stored", visible_answers_sql(), list(answer_ids))
        return {answer_id: stored for answer_id, status, stored in rows if status != Status.OK}

    def claim(
        self, answer_ids: Sequence[str], *, again: Mapping[str, float] | None = None
    ) -> list[str]:
        """Reserve the questions that no other process has answered or is asking.

        Returns the reserved ids, in order. A failure is reserved if `again` holds it with the time
        that `failures` returned, so that no other process has retried it; it stays until its answer
        is written. If nothing is free, nothing is written and no process has to wait.
        """
        if not self.free(answer_ids, again=again):
            return []
        with self._file.writing() as db:
            ours = self.free(answer_ids, again=again)
            until = time.time() + self.lease  # not before: others may have held the file for long
            db.executemany(
                "INSERT OR REPLACE INTO claims VALUES (?, ?, ?)",
                [(answer_id, self.owner, until) for answer_id in ours],
            )
        return ours

    def free(
        self, answer_ids: Sequence[str], *, again: Mapping[str, float] | None = None
    ) -> list[str]:
        """Return the questions that `claim` would reserve, in order, without reserving them."""
        again, now = again or {}, time.time()
        claims = self._file.rows("answer_id, owner, lease_until", "claims", answer_ids)
        held = [(answer_id, owner) for answer_id, owner, until in claims if until >= now]
        owners = {owner for _, owner in held} - {self.owner}
        living = {owner for owner in owners if not has_ended(owner.partition(" ")[0])}
        taken = {answer_id for answer_id, owner in held if owner in living}
        rows = self._file.rows("answer_id, status, stored", visible_answers_sql(), answer_ids)
        for answer_id, status, stored in rows:
            if status == Status.OK or again.get(answer_id) != stored:
                taken.add(answer_id)
        return [answer_id for answer_id in answer_ids if answer_id not in taken]

    @contextmanager
    def renew_leases(self) -> Iterator[None]:
        """Renew the leases of this process while a batch is being answered.

        A lease that cannot be renewed is reported and retried: no answer is lost, but another
        process may ask the same questions.
        """
        done = threading.Event()

        def renew() -> None:
            while not done.wait(self.lease / 3):
                try:
                    self._renew()
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

    def _has_claims(self) -> bool:
        with self._file.reading() as db:
            query = "SELECT COUNT(*) FROM claims WHERE owner = ?"
            return bool(db.execute(query, (self.owner,)).fetchone()[0])

    def _renew(self) -> None:
        if not self._has_claims():
            return
        until = time.time() + self.lease
        with self._file.writing() as db:
            db.execute("UPDATE claims SET lease_until = ? WHERE owner = ?", (until, self.owner))

    def write(self, answers: Iterable[Answer], prompts: Mapping[str, StoredPrompt]) -> None:
        """Store answers and failures with their prompts, by answer id. An answer that is already
        stored is kept; a failure is replaced.

        Raises `VragError` for an empty answer that is not marked as a failure, and for a
        placeholder of a dry run, unless this store is the dry run's own.
        """
        answers = list(answers)
        stands_in = any(answer.fields.get(STAND_IN) for answer in answers)
        if stands_in and not is_scratch_path(self.path):
            raise VragError(
                f"{self.path}: a forecast's stand-in answers are not kept in a real store. Open"
                " it within the forecast, which then works with a copy."
            )
        silent = [each for each in answers if each.failure is None and not (each.raw or "").strip()]
        if silent:
            raise VragError(
                f"{len(silent)} answers have the status 'ok' but no words; give them a failure"
                " that says why."
            )
        with self._file.writing() as db:
            for answer in answers:
                _write(db, answer, prompts[answer.answer_id])
                if cost := answer.fields.get("cost"):
                    db.execute(_SPEND, (self._writer, answer.sent.get("model"), cost))
                db.execute(
                    "DELETE FROM claims WHERE answer_id = ? AND owner = ?",
                    (answer.answer_id, self.owner),
                )


def _write(db: sqlite3.Connection, answer: Answer, prompt: StoredPrompt) -> None:
    stands = f"SELECT 1 FROM {visible_answers_sql()} WHERE answer_id = ? AND status = 'ok'"
    if db.execute(stands, (answer.answer_id,)).fetchone() is not None:
        return
    row = {
        "answer_id": answer.answer_id,
        "status": answer.status,
        "detail": answer.detail,
        "raw": answer.raw,
        "fields": json.dumps(dict(answer.fields)),
        "model": answer.sent.get("model"),
        "sample": answer.sample,
        "prompt": json.dumps(prompt),
        "sent": json.dumps(dict(answer.sent)),
        "tokens": json.dumps(dict(answer.tokens)),
        "stored": time.time(),
    }
    insert_answer(db, row)


def _answer(row: StoredRow, parsed: dict[str, Any]) -> Answer:  # Any: what JSON holds
    """An answer from its row; `parsed` has what was read of JSON so far, as most of it
    recurs.
    """
    for text in row[5:]:
        if text not in parsed:
            parsed[text] = json.loads(text)
    return Answer(  # in the order of _COLUMNS
        answer_id=row[0],
        failure=None if row[1] == Status.OK else Failure(Status(row[1]), row[2]),
        sample=row[3],
        raw=row[4],
        fields=parsed[row[5]],
        sent=parsed[row[6]],
        tokens=parsed[row[7]],
    )


def _look(image: LazyImage) -> ImageInfo:
    picture = image.open()
    return ImageInfo(pixel_hash(picture), picture.size)
