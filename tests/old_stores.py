"""Answer stores in the layouts of versions 1, 2 and 4, as the kit of those days made them."""

from __future__ import annotations

import json
import sqlite3
import time
from pathlib import Path

_LAYOUT = """
CREATE TABLE about (version INTEGER NOT NULL);
CREATE TABLE answers (
    answer_id TEXT PRIMARY KEY, status TEXT NOT NULL, raw TEXT, fields TEXT, model TEXT,
    sample INTEGER, prompt TEXT, sent TEXT, tokens TEXT, owner TEXT, lease_until REAL
) WITHOUT ROWID;
CREATE TABLE pictures (
    place TEXT NOT NULL, stamp TEXT NOT NULL, pixels TEXT NOT NULL, width INTEGER NOT NULL,
    height INTEGER NOT NULL, PRIMARY KEY (place, stamp)
) WITHOUT ROWID;
CREATE TABLE spending (model TEXT PRIMARY KEY, dollars REAL NOT NULL) WITHOUT ROWID;
"""
_LAYOUT_1 = """
CREATE TABLE about (version INTEGER NOT NULL);
CREATE TABLE answers (
    answer_id TEXT PRIMARY KEY, status TEXT NOT NULL, raw TEXT, fields TEXT, model TEXT,
    sample INTEGER, prompt TEXT, sent TEXT, tokens TEXT, owner TEXT, lease_until REAL
) WITHOUT ROWID;
CREATE TABLE pictures (
    place TEXT NOT NULL, stamp TEXT NOT NULL, pixels TEXT NOT NULL, PRIMARY KEY (place, stamp)
) WITHOUT ROWID;
"""
_LAYOUT_4 = """
CREATE TABLE about (version INTEGER NOT NULL);
CREATE TABLE answers (
    answer_id TEXT PRIMARY KEY, status TEXT NOT NULL, detail TEXT NOT NULL DEFAULT '', raw TEXT,
    fields TEXT, model TEXT, sample INTEGER, prompt TEXT, sent TEXT, tokens TEXT,
    written REAL NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE claims (
    answer_id TEXT PRIMARY KEY, owner TEXT NOT NULL, lease_until REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE pictures (
    place TEXT NOT NULL, stamp TEXT NOT NULL, pixels TEXT NOT NULL, width INTEGER NOT NULL,
    height INTEGER NOT NULL, PRIMARY KEY (place, stamp)
) WITHOUT ROWID;
CREATE TABLE spending (
    writer TEXT NOT NULL, model TEXT NOT NULL, dollars REAL NOT NULL, PRIMARY KEY (writer, model)
) WITHOUT ROWID;
"""


def make_store_of_version_4(path: Path, prompts: list[str], models: list[str]) -> None:
    """A store in which models answered prompts (JSON), each "<model> says <number>" under the
    id "<model>-<number>", and refused the last; each spent a dollar.
    """
    with sqlite3.connect(path) as db:
        db.executescript(_LAYOUT_4)
        db.execute("INSERT INTO about VALUES (4)")
        for model in models:
            db.execute("INSERT INTO spending VALUES ('someone', ?, 1.0)", (model,))
            for number, prompt in enumerate(prompts):
                good = number < len(prompts) - 1
                outcome = ("ok", "", f"{model} says {number}") if good else ("refused", "no", None)
                told = ("{}", model, 0, prompt, json.dumps({"model": model}), "{}", 10.0 + number)
                db.execute(
                    "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (f"{model}-{number}", *outcome, *told),
                )
    db.close()


def make_old_store(
    path: Path, rows: list[tuple[str, str, str | None]], version: int = 2, lease: float = -1
) -> None:
    """A store with these (answer id, status, raw), and one question, "claimed", that a
    process has reserved for `lease` more seconds.
    """
    with sqlite3.connect(path) as db:
        db.executescript(_LAYOUT_1 if version == 1 else _LAYOUT)
        db.execute("INSERT INTO about VALUES (?)", (version,))
        for answer_id, status, raw in rows:
            fields = {"served": "m-1", "answer": raw, "untagged": True} if raw else {}
            told = (json.dumps(fields), "m", 0, "[]", '{"model": "m"}', "{}", "someone")
            db.execute(
                "INSERT INTO answers (answer_id, status, raw, fields, model, sample, prompt, sent,"
                " tokens, owner) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (answer_id, status, raw, *told),
            )
        db.execute(
            "INSERT INTO answers (answer_id, status, owner, lease_until) VALUES ('claimed',"
            " 'claimed', 'another', ?)",
            (time.time() + lease,),
        )
    db.close()
