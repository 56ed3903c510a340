"""Answer stores of earlier versions, brought up to date; no answer is lost.

Version 1 knew models by their tensors instead of their files, and kept no sizes of
pictures: its answers stay, but are not found any more. Version 2 had a failure's kind
and words in one text, kept what was read out of an answer, and wrote claims over
failures. Version 3 had one sum of money for each model, which could not be merged.
Until version 4 a prompt was kept with every answer to it, and `stored` was `written`: who
still works with such a store finds no such column, and stops before it asks anything.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from vrag_kit.errors import VragError
from vrag_kit.forecast import may_keep_stand_ins
from vrag_kit.generation.answer_file import Row, make_tables, put_answer
from vrag_kit.generation.migrating import put_under_todays_keys
from vrag_kit.processes import has_ended
from vrag_kit.types import Status


def bring_up_to_date(db: sqlite3.Connection, path: Path, version: int) -> None:
    """Change the tables of a store of an earlier `version`, within a transaction.

    Before version 3, where answers are written anew, the store as it was stays beside it
    as "<name>.v<version>". Raises `VragError` while a process of that version works with
    it.
    """
    if not may_keep_stand_ins(path):  # nobody asks into a forecast's copy
        _nobody_is_asking(db, path, version)
    if version < 3:
        _keep_copy(path, version)
    db.execute("ALTER TABLE answers RENAME TO answers_before")
    if version == 1:
        db.execute("DROP TABLE pictures")
    spent = _spent(db) if version in (2, 3) else []
    make_tables(db)
    db.executemany("INSERT INTO spending VALUES (?, ?, ?)", spent)
    if version < 3:
        _carry_claims(db)
    _carry_over(db, version)
    if version < 3:
        _find_again(db, path)


def _spent(db: sqlite3.Connection) -> list[Row]:
    """What was spent before it was told by whom, which is the same of a store and its
    copy; its table is dropped.
    """
    spent = db.execute("SELECT model, dollars FROM spending").fetchall()
    db.execute("DROP TABLE spending")
    return [(f"before version 4: {dollars!r}", model, dollars) for model, dollars in spent]


def _nobody_is_asking(db: sqlite3.Connection, path: Path, version: int) -> None:
    """Raise `VragError` while a process of the earlier version works with the store."""
    claims = "claims" if version > 2 else "answers WHERE status = 'claimed'"
    found = db.execute(
        f"SELECT owner, lease_until FROM (SELECT * FROM {claims}) WHERE lease_until >= ?"
        " ORDER BY lease_until DESC",
        (time.time(),),
    )
    live = [row for row in found if not has_ended(str(row[0]).partition(" ")[0])]
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


def _carry_claims(db: sqlite3.Connection) -> None:
    """Claims of version 2 get a table of their own."""
    db.execute(
        "INSERT INTO claims SELECT answer_id, owner, lease_until FROM answers_before"
        " WHERE status = 'claimed'"
    )
    db.execute("DELETE FROM answers_before WHERE status = 'claimed'")


def _carry_over(db: sqlite3.Connection, version: int) -> None:
    """Answers as this version has them."""
    before = db.execute("SELECT * FROM answers_before")
    names = [column[0] for column in before.description]
    for values in before:
        row = dict(zip(names, values, strict=True))
        row = _carried(row) if version < 3 else row
        put_answer(db, {**row, "stored": row["written"]})
    db.execute("DROP TABLE answers_before")


def _find_again(db: sqlite3.Connection, path: Path) -> None:
    """Put served models' answers under today's keys, so that none is paid for twice."""
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


def _carried(row: dict[str, Any]) -> dict[str, Any]:  # Any: what SQLite holds
    """A row of version 2, with a failure's kind and words, and what the call told."""
    status, detail = _kind_and_words(row["status"], row["raw"])
    told = {"status": status, "detail": detail, "fields": _call_fields(row["fields"])}
    return {**row, **told, "written": 0.0}


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
