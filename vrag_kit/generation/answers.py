"""The answer store: one SQLite file in which every answer is kept once, so that nothing
is ever asked twice.

An answer's key is what determines it (`AnswerKeys`). Workers claim questions with a
lease that they keep renewing; when a worker dies, another one asks: at once on the same
machine, elsewhere when the lease has run out. Failures are kept as failures, with their
reason, and asked again when told so; a failure stays until its retry has an answer. What
an answer's words mean is read anew each time, so that a better reader reaches old answers.
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
from vrag_kit.forecast import STAND_IN, current_forecast, may_keep_stand_ins, once
from vrag_kit.generation.answer_file import AnswerFile, Row, answers_table, prompt_id, put_answer
from vrag_kit.generation.keys import Picture, StoredPrompt
from vrag_kit.generation.store_copies import place_of_store
from vrag_kit.processes import has_ended, this_process
from vrag_kit.progress import track
from vrag_kit.types import Answer, Failure, LazyImage, Status

_PICTURES_AT_ONCE = 512
_COLUMNS = "answer_id, status, detail, sample, raw, fields, sent, tokens"
"""What is read of an answer."""
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
    picture: Picture

    def stands(self, image: LazyImage) -> bool:
        """Whether it is known without another look: in a forecast, which takes seconds."""
        return self.image is image and current_forecast() is not None


class AnswerStore:
    """Answers on disk, shared by all notebooks and processes that open the same file;
    use it in a `with` block or close it.
    """

    def __init__(self, path: Path | str, *, lease: float = 30.0) -> None:
        """Open or make the store; in a forecast, a copy that is thrown away.

        `lease` is how long, in seconds, questions stay reserved of a worker on another
        machine that has died.

        Raises `VragError` for a file that is no store, is damaged, was made by another
        version, or cannot be written.
        """
        self.path = place_of_store(Path(path))
        self.lease = lease
        self._writer = secrets.token_hex(8)
        self.owner = f"{this_process()} {self._writer}"
        self._file = AnswerFile(self.path)
        self._seen: dict[str, _Seen] = once(dict, "pictures", str(self.path))  # by `where`

    def close(self) -> None:
        """Give back what this process has claimed and close the file."""
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
            count = f"SELECT COUNT(*), COUNT(*) FILTER (WHERE status = 'ok') FROM {answers_table()}"
            every, ok = db.execute(count).fetchone()
        return f"AnswerStore({self.path.name}: {ok:,} answers, {every - ok:,} failures)"

    def pictures(self, images: Iterable[LazyImage]) -> dict[str, Picture]:
        """Pixel hash and size of each image, by its `where`; a picture that has not
        changed is decoded only the first time, by threads.
        """
        known: dict[str, Picture] = {}
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

    def _stored(self, images: Mapping[str, LazyImage]) -> dict[str, Picture]:
        """Pictures that this process has not seen yet, stored or decoded, by `where`."""
        stamps = {where: image.stamp for where, image in images.items()}
        columns = "place, stamp, pixels, width, height"
        found: dict[str, Picture] = {}
        for place, stamp, pixels, *size in self._file.rows(columns, "pictures", stamps, "place"):
            if stamp == stamps[place]:
                found[place] = Picture(pixels, (size[0], size[1]))
        if new := [image for where, image in images.items() if where not in found]:
            found |= self._look_at(new)
        for where, picture in found.items():
            self._seen[where] = _Seen(images[where], stamps[where], picture)
        return found

    def _look_at(self, images: Sequence[LazyImage]) -> dict[str, Picture]:
        """Decode pictures, and remember what is known of them, part by part."""
        found: dict[str, Picture] = {}
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

    def spent(self, model: str) -> float:
        """US dollars that a model's calls have cost, those of failures that were asked
        again included.
        """
        with self._file.reading() as db:
            query = "SELECT TOTAL(dollars) FROM spending WHERE model = ?"
            return float(db.execute(query, (model,)).fetchone()[0])

    def read(self, answer_ids: Sequence[str]) -> dict[str, Answer]:
        """The answers and failures that are there, by id; `fields` are what the call
        told, nothing that was read out of `raw`.
        """
        parsed: dict[str, Any] = {}
        rows = self._file.rows(_COLUMNS, answers_table(), answer_ids)
        return {row[0]: _answer(row, parsed) for row in rows}

    def knows(self, model: str) -> bool:
        """Whether it holds words of a model of this name."""
        with self._file.reading() as db:
            query = f"SELECT 1 FROM {answers_table()} WHERE model = ? AND status = 'ok' LIMIT 1"
            return db.execute(query, (model,)).fetchone() is not None

    def prompt(self, answer_id: str) -> StoredPrompt:
        """What was asked: messages with role and parts, pictures as {"image": where,
        "pixels": hash}. Raises `VragError` for an answer that is not there.
        """
        for prompt, name in self._file.rows("prompt, prompt_id", answers_table(), [answer_id]):
            if prompt is not None and prompt_id(prompt) == name:
                return list(json.loads(prompt))
        raise VragError(f"{self.path}: no answer {answer_id!r}, or none whose prompt was kept.")

    def places(self, pixels: str) -> list[str]:
        """Where pictures of that pixel hash were, the `where` of each."""
        with self._file.reading() as db:
            rows = db.execute("SELECT DISTINCT place FROM pictures WHERE pixels = ?", (pixels,))
            return [str(place) for (place,) in rows]

    def failures(self, answer_ids: Iterable[str]) -> dict[str, float]:
        """Which of these questions have failed, and when that was written down, in
        seconds; what `claim` needs to ask them again.
        """
        rows = self._file.rows("answer_id, status, stored", answers_table(), list(answer_ids))
        return {answer_id: stored for answer_id, status, stored in rows if status != Status.OK}

    def claim(
        self, answer_ids: Sequence[str], *, again: Mapping[str, float] | None = None
    ) -> list[str]:
        """Reserve the questions that nobody else has answered or is asking; returns
        those that are now ours, in order.

        A failure is reserved when it is in `again` as `failures` gave it, and so has
        not been asked again by another process since; it stays until its answer is
        written. Where nothing is free, nothing is written and nobody has to wait.
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
        """The questions that `claim` would reserve, in order; only looks."""
        again, now = again or {}, time.time()
        claims = self._file.rows("answer_id, owner, lease_until", "claims", answer_ids)
        held = [(answer_id, owner) for answer_id, owner, until in claims if until >= now]
        owners = {owner for _, owner in held} - {self.owner}
        living = {owner for owner in owners if not has_ended(owner.partition(" ")[0])}
        taken = {answer_id for answer_id, owner in held if owner in living}
        rows = self._file.rows("answer_id, status, stored", answers_table(), answer_ids)
        for answer_id, status, stored in rows:
            if status == Status.OK or again.get(answer_id) != stored:
                taken.add(answer_id)
        return [answer_id for answer_id in answer_ids if answer_id not in taken]

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
        """Keep answers and failures with their prompts (by answer id); an answer that
        is already there stays as it is, a failure is replaced.

        Raises `VragError` for an answer without words that is not marked as a failure,
        and for a forecast's stand-in, unless this store is the forecast's own.
        """
        answers = list(answers)
        stands_in = any(answer.fields.get(STAND_IN) for answer in answers)
        if stands_in and not may_keep_stand_ins(self.path):
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
    stands = f"SELECT 1 FROM {answers_table()} WHERE answer_id = ? AND status = 'ok'"
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
    put_answer(db, row)


def _answer(row: Row, parsed: dict[str, Any]) -> Answer:  # Any: what JSON holds
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


def _look(image: LazyImage) -> Picture:
    picture = image.open()
    return Picture(pixel_hash(picture), picture.size)
