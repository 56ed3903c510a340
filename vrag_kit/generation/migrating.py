"""An old store's answers under today's keys, so that nothing is asked again.

Until version 3 of the store a served model's answers were known by the endpoint's
address, and for a while by neither its address nor its name. What was sent is kept with
each answer, so that its old key can be computed again: where it is found to be the
answer's own, the new key follows from the same facts without the address. Answers of
local models keep their keys.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vrag_kit.errors import VragError
from vrag_kit.generation.answer_file import AnswerFile, answers_table
from vrag_kit.generation.keys import answer_key
from vrag_kit.generation.loading import load_generator
from vrag_kit.generation.remote.endpoint import EndpointGenerator, endpoint_fingerprint
from vrag_kit.generation.remote.endpoints import ENDPOINTS
from vrag_kit.options import Entry
from vrag_kit.plain import Json
from vrag_kit.types import Status

_SHAPING = ("model_id", "body", "max_image_side", "images_first")
_BESIDE = ("model", "endpoint", "endpoint_name", "headroom", "part_order", *_SHAPING)
"""What `sent` holds beside the decoding."""

Sent = Mapping[str, Any]  # Any: what JSON holds
Today = Mapping[str, Mapping[str, str]]
"""Old fingerprint → model's name → today's fingerprint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """How a migration went, in answers and failures."""

    path: Path
    """The store with the new keys."""
    moved: int
    """Found under their old keys, and put under new ones."""
    doubled: int
    """Asked at two addresses: one stands under the new key, these stay where they
    were.
    """
    local: int
    """Of models that ran here, and whose keys have not changed."""
    new: int
    """Under today's keys already."""
    unknown: tuple[str, ...]
    """Names of models whose answers fit no key that is known; they stay."""

    def __str__(self) -> str:
        lines = [
            f"{self.path}: {self.moved:,} answers moved to new keys; {self.local:,} of local"
            f" models and {self.new:,} others had theirs"
        ]
        if self.doubled:
            lines.append(f"  {self.doubled:,} had been asked at a second address, and stay beside")
        if self.unknown:
            lines.append(
                f"  answers of {', '.join(self.unknown)} fit no key that is known here, and stay as"
                " they were"
            )
        return "\n".join(lines)


def migrate_answers(
    old: Path | str, *, to: Path | str | None = None, entries: Sequence[Entry] = ()
) -> Migrated:
    """Put the answers in `old` under today's keys, in place, or in a copy at `to`.

    `entries`, models as parameters name them, tell the names under which served models
    are asked today; without them a model keeps the name that its answers were stored
    with. No answer is deleted, and doing it twice changes nothing more. Raises `VragError`
    for a file that is no store, and when there is something at `to` already.
    """
    path = Path(old)
    if not path.is_file():
        raise VragError(f"{path}: there is no answer store. Name the file answers.sqlite.")
    if to is not None:
        path = _copy(path, Path(to))
    today = _today(entries)
    file = AnswerFile(path)
    with closing(file), file.writing() as db:
        counts, unknown = put_under_todays_keys(db, today)
    return Migrated(path=path, unknown=unknown, **counts)


def put_under_todays_keys(
    db: sqlite3.Connection, today: Today
) -> tuple[dict[str, int], tuple[str, ...]]:
    """Within a transaction, move what has an old key; returns the counts of `Migrated`
    and the names of models whose answers fit no known key.
    """
    counts = {"moved": 0, "doubled": 0, "local": 0, "new": 0}
    unknown: dict[str, None] = {}
    rows = db.execute(
        f"SELECT answer_id, sample, prompt, sent FROM {answers_table()}"
        " WHERE prompt IS NOT NULL AND sent IS NOT NULL ORDER BY status != 'ok', stored"
    ).fetchall()
    for answer_id, sample, prompt, sent in rows:
        told = json.loads(sent)
        keys = _keys(json.loads(prompt), told, sample, today)
        kind = _kind(answer_id, keys, told)
        if kind == "moved":
            kind = _move(db, answer_id, keys[-1])
        if kind == "unknown":
            unknown[str(told.get("model"))] = None
        else:
            counts[kind] += 1
    return counts, tuple(unknown)


def _copy(old: Path, new: Path) -> Path:
    """A copy of a store, whoever is writing to it."""
    if new.exists():
        raise VragError(f"{new}: there is a file already. Choose another path.")
    new.parent.mkdir(parents=True, exist_ok=True)
    part = new.with_name(f"{new.name}.part")
    part.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(old)) as source, closing(sqlite3.connect(part)) as target:
            source.backup(target)
            tables = target.execute("SELECT name FROM sqlite_master").fetchall()
        if ("about",) not in tables:
            raise VragError(f"{old}: no answer store. Name the file answers.sqlite.")
        part.replace(new)
    except sqlite3.Error as error:
        raise VragError(
            f"{old}: not a readable answer store ({error}). Name the file answers.sqlite."
        ) from error
    finally:
        part.unlink(missing_ok=True)
    return new


def _today(entries: Sequence[Entry]) -> Today:
    """Old fingerprint → model's name → today's, of the served models among entries."""
    found: dict[str, dict[str, str]] = {}
    for entry in entries:
        named = {"model": entry} if isinstance(entry, str) else entry
        generator = load_generator({**named, "decoding": {}})  # the decoding is as it was sent
        if isinstance(generator, EndpointGenerator):
            names = found.setdefault(_old_fingerprint(generator.sent), {})
            names[generator.name] = generator.fingerprint
    return found


def _keys(prompt: list[Json], sent: Sent, sample: int, today: Today) -> tuple[str, ...]:
    """The keys that an answer of a served model has had, today's last; an empty text
    for a model that ran here.
    """
    if any(name not in sent for name in ("endpoint", *_SHAPING)):
        return ("",)
    decoding = {name: value for name, value in sent.items() if name not in _BESIDE}
    model = str(sent["model"])
    shaping = {name: sent[name] for name in _SHAPING}
    first = _old_fingerprint(sent)
    nameless = endpoint_fingerprint(model, shaping)
    named = endpoint_fingerprint(model, {**shaping, "endpoint_name": _endpoint_name(sent)})
    names = today.get(first) or {model: named}
    new = names.get(model) or next(iter(names.values()))
    known_by = (first, nameless, new)
    return tuple(answer_key(known, prompt, decoding, sample) for known in known_by)


def _endpoint_name(sent: Sent) -> str:
    """The name of the endpoint that was asked, as stored, else by its address."""
    if "endpoint_name" in sent:
        return str(sent["endpoint_name"])
    names = [name for name, about in ENDPOINTS.items() if about["base_url"] == sent["endpoint"]]
    return names[0] if names else ""


def _old_fingerprint(sent: Sent) -> str:
    """What a served model was known by until version 3: with the endpoint's address."""
    shaping = {name: sent[name] for name in ("endpoint", *_SHAPING)}
    return hashlib.sha256(json.dumps(shaping, sort_keys=True).encode()).hexdigest()


def _kind(answer_id: str, keys: tuple[str, ...], sent: Sent) -> str:
    """What is to be done with an answer."""
    if answer_id == keys[-1]:
        return "new"
    if answer_id in keys:
        return "moved"
    return "unknown" if "endpoint" in sent else "local"


def _move(db: sqlite3.Connection, old: str, new: str) -> str:
    """Put an answer under its new key, unless there is one."""
    status = f"SELECT status FROM {answers_table()} WHERE answer_id = ?"
    there = db.execute(status, (new,)).fetchone()
    ours = db.execute(status, (old,)).fetchone()
    if there and (there[0] == Status.OK or ours[0] != Status.OK):
        return "doubled"
    db.execute("DELETE FROM answers WHERE answer_id = ?", (new,))  # a failure, or a stand-in
    db.execute("UPDATE answers SET answer_id = ? WHERE answer_id = ?", (new, old))
    return "moved"
