"""What an answer store holds: its tables, the keys of answers, and prompts in their stored form.

All of this is data. Changing the bytes of a key makes stored answers unreachable; changing the
tables needs another `VERSION`.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from vrag_kit.types import JsonView, LazyImage, Prompt, Status

VERSION = 5
"""Version of the table layout; a store with another version is refused."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS about (version INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS answers (
    answer_id TEXT PRIMARY KEY, status TEXT NOT NULL, detail TEXT NOT NULL DEFAULT '', raw TEXT,
    fields TEXT, model TEXT, sample INTEGER, prompt_id TEXT, sent TEXT, tokens TEXT,
    stored REAL NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS prompts (prompt_id TEXT PRIMARY KEY, prompt TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS claims (
    answer_id TEXT PRIMARY KEY, owner TEXT NOT NULL, lease_until REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pictures (
    place TEXT NOT NULL, stamp TEXT NOT NULL, pixels TEXT NOT NULL, width INTEGER NOT NULL,
    height INTEGER NOT NULL, PRIMARY KEY (place, stamp)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spending (
    writer TEXT NOT NULL, model TEXT NOT NULL, dollars REAL NOT NULL, PRIMARY KEY (writer, model)
) WITHOUT ROWID;
"""
ANSWER_COLUMNS = (
    "answer_id, status, detail, raw, fields, model, sample, prompt_id, sent, tokens, stored"
)
"""Columns of the table `answers`, which stand in another order in a store that was migrated."""
DAMAGED_ROWS = (
    "SELECT answer_id, status FROM answers"
    f" WHERE status NOT IN {tuple(map(str, Status))}"
    " OR (status = 'ok' AND typeof(raw) <> 'text')"
    " OR json_valid(fields) + json_valid(sent) + json_valid(tokens) IS NOT 3 LIMIT 1"
)
"""A row that this kit did not write: it would be read as an empty answer, or end a run."""
StoredPrompt = list[dict[str, Any]]  # Any: what JSON holds
"""A stored prompt: messages with role and parts, images as {"image": where, "pixels": hash}."""


def create_tables(db: sqlite3.Connection) -> None:
    """Create the tables of a store, unless another process was faster."""
    for statement in _SCHEMA.split(";"):
        db.execute(statement)
    db.execute("INSERT INTO about SELECT ? WHERE NOT EXISTS (SELECT 1 FROM about)", (VERSION,))


@dataclass(frozen=True, slots=True)
class ImageInfo:
    """The pixel hash and size of an image, cached to avoid decoding it again."""

    pixels: str
    """Hash of its upright RGB pixels."""
    size: tuple[int, int]
    """Width and height, upright."""


def answer_ids(
    prompts: Iterable[Prompt],
    images: Mapping[str, ImageInfo],
    fingerprint: str,
    decoding: JsonView,
    sample: int,
) -> list[str]:
    """Return the ids of the answers to prompts; `images` has each of their images by `where`.

    An id is a hash of the model's fingerprint, every part of the prompt in order (images by their
    pixels), the decoding and the sample. File names are not included: equal pixels make equal ids.
    """
    ids = []
    for prompt in prompts:
        messages = serialize_prompt(prompt, images, with_places=False)
        key = [fingerprint, messages, dict(decoding), sample]
        text = json.dumps(key, sort_keys=True, ensure_ascii=False)
        ids.append(hashlib.sha256(text.encode()).hexdigest())
    return ids


def serialize_prompt(
    prompt: Prompt, images: Mapping[str, ImageInfo], *, with_places: bool = True
) -> StoredPrompt:
    """Return a prompt in its stored form; `images` has each of its images by `where`."""

    def serialize(part: str | LazyImage) -> str | dict[str, str]:
        if isinstance(part, str):
            return part
        place = {"image": part.where} if with_places else {}
        return {**place, "pixels": images[part.where].pixels}

    return [
        {"role": message.role, "parts": list(map(serialize, message.parts))} for message in prompt
    ]


def prompt_id(prompt: str) -> str:
    """Return the id of a prompt in JSON: its SHA-256 hash."""
    return hashlib.sha256(prompt.encode()).hexdigest()
