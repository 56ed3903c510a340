"""Merge answer stores into one, which keeps each answer once and loses none.

Nodes that cannot share a disk with file locks write to a store each. The stores are merged
afterwards, in any order, and again when they have grown.

Each store is copied into a temporary table of the target's connection, where SQL compares the two.
(`ATTACH` allows ten stores, and none within the one transaction of a merge.)
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.generation.store import AnswerStore
from vrag_kit.generation.store_layout import ANSWER_COLUMNS, prompt_id
from vrag_kit.types import Status

_IS_ANSWER = f"status IN {tuple(str(status) for status in Status if status.is_answer)}"
_RANKED = (
    f"SELECT *, ({_IS_ANSWER}) + (status = 'ok') AS worth,"
    f" CASE WHEN {_IS_ANSWER} THEN -stored ELSE stored END AS priority FROM"
)
"""A good answer comes before a bad one (empty or truncated), and both before a failure. The first
answer is kept, and the last failure.
"""
_SETUP = (
    f"CREATE TEMP TABLE incoming AS SELECT {ANSWER_COLUMNS} FROM answers LIMIT 0",
    f"CREATE TEMP VIEW offered AS {_RANKED} incoming",
    f"CREATE TEMP VIEW held AS {_RANKED} main.answers",
    "CREATE TEMP TABLE merged (answer_id TEXT PRIMARY KEY, path TEXT)",
)
_BETTER = (
    "(offered.worth, offered.priority, ifnull(offered.raw, ''))"
    " > (held.worth, held.priority, ifnull(held.raw, ''))"
)
_NOT_BETTER = f"SELECT answer_id FROM offered JOIN held USING (answer_id) WHERE NOT {_BETTER}"
_COUNTS = (
    "SELECT :path AS store, COUNT(*) - COUNT(held.answer_id) AS new,"
    " COUNT(*) FILTER (WHERE offered.worth <= held.worth) AS already_there,"
    " COUNT(*) FILTER (WHERE offered.worth > held.worth) AS replaced"
    " FROM offered LEFT JOIN held USING (answer_id)"
)
_CONFLICTS = (
    "SELECT answer_id, offered.model,"
    f" ifnull(iif({_BETTER}, offered.raw, held.raw), '') AS kept,"
    f" iif({_BETTER}, :path, ifnull(merged.path, :target)) AS kept_in,"
    f" ifnull(iif({_BETTER}, held.raw, offered.raw), '') AS other,"
    f" iif({_BETTER}, ifnull(merged.path, :target), :path) AS other_in,"
    " json_type(offered.sent, '$.endpoint') IS NOT NULL"
    " OR coalesce(json_extract(offered.sent, '$.do_sample'),"
    " json_extract(offered.sent, '$.temperature'), 0) <> 0"
    " AS may_differ"
    " FROM offered JOIN held USING (answer_id) LEFT JOIN merged USING (answer_id)"
    " WHERE offered.worth = held.worth AND offered.worth > 0"
    " AND (offered.status, offered.raw) IS NOT (held.status, held.raw) ORDER BY answer_id"
)
_SPENDING = (
    "INSERT INTO spending VALUES (?, ?, ?) ON CONFLICT (writer, model) DO UPDATE SET"
    " dollars = excluded.dollars WHERE excluded.dollars > dollars"
)
"""The spending of one opened store only grows, so that the larger sum is the later one."""


def merge_stores(
    stores: Sequence[Path | str],
    *,
    to: Path | str,
    keep_first: bool = False,
    csv: Path | str | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Merge `stores` into the store at `to`, which is created if it does not exist.

    Merges answers and failures with all their data, image hashes, and spending. Returns two tables.
    One has a row for each store, with numbers of answers and failures: new, already_there, replaced
    (a failure by an answer), conflicts; and pending, the questions that are being asked, to be
    merged later. The other has a row for each conflict: answer_id, model, kept and other (the
    texts), kept_in and other_in (the stores), and may_differ.

    An answer replaces a failure, and a later failure an earlier one. Of different answers, the one
    written first is kept if generation may differ between calls (sampled, or behind an endpoint),
    and always with `keep_first`. Claims are not merged. The merge is atomic; repeating it changes
    nothing. The stores themselves are not changed. The target may be among them, and is skipped. If
    nothing is merged, no new target is left. The file `csv` gets the conflicts, even if the merge
    is refused.

    Raises `VragError` for a file that is not a store, is damaged or has another layout, if the
    target alone is named, and for two answers to one question that should be equal.
    """
    target = Path(to)
    existed = target.exists()
    paths = [path for path in map(Path, stores) if not _is_same(path, target)]
    if not paths:
        raise VragError(
            f"{target}: this is the store to merge into, and no other is named. Nothing was merged;"
            " name the stores whose answers it lacks."
        )
    try:
        with ExitStack() as stack:
            sources = [stack.enter_context(_open(path)) for path in paths]
            into = stack.enter_context(AnswerStore(target))
            db = stack.enter_context(into.writing())
            for statement in _SETUP:
                db.execute(statement)
            merged = [_merge(source, into) for source in sources]
            conflicts = pd.concat([found for _, found in merged], ignore_index=True)
            if csv:
                _write_csv(conflicts, Path(csv))
            if not (keep_first or conflicts["may_differ"].all()):
                raise VragError(_refusal(conflicts[conflicts["may_differ"] == 0], target))
    except BaseException:
        if not existed and target.is_file():
            _remove_if_empty(target)
        raise
    return pd.concat([report for report, _ in merged], ignore_index=True), conflicts


def _merge(source: AnswerStore, target: AnswerStore) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Merge a store in the target's transaction; returns its report and its conflicts."""
    names = {"path": str(source.path), "target": str(target.path)}
    with source.reading() as other, target.reading() as db:  # a full disk is the target's
        db.execute("DELETE FROM incoming")
        answers = other.execute(f"SELECT {ANSWER_COLUMNS} FROM answers")
        db.executemany("INSERT INTO incoming VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", answers)
        report = pd.read_sql_query(_COUNTS, db, params=names)
        conflicts = pd.read_sql_query(_CONFLICTS, db, params=names)
        db.execute(f"DELETE FROM incoming WHERE answer_id IN ({_NOT_BETTER})")
        db.execute(f"INSERT OR REPLACE INTO answers ({ANSWER_COLUMNS}) SELECT * FROM incoming")
        db.execute("INSERT OR REPLACE INTO merged SELECT answer_id, :path FROM incoming", names)
        _merge_prompts(source.path, other, db)
        images = other.execute("SELECT place, stamp, pixels, width, height FROM pictures")
        db.executemany("INSERT OR IGNORE INTO pictures VALUES (?, ?, ?, ?, ?)", images)
        db.executemany(_SPENDING, other.execute("SELECT writer, model, dollars FROM spending"))
        query = "SELECT COUNT(*) FROM claims WHERE lease_until >= ?"
        pending = other.execute(query, (time.time(),)).fetchone()[0]
    return report.assign(conflicts=len(conflicts), pending=pending), conflicts


def _merge_prompts(path: Path, other: sqlite3.Connection, db: sqlite3.Connection) -> None:
    """Merge the prompts of the incoming answers."""
    needed = {name for (name,) in db.execute("SELECT prompt_id FROM incoming")}
    for name, prompt in other.execute("SELECT prompt_id, prompt FROM prompts"):
        if name in needed and prompt_id(prompt) != name:
            raise VragError(
                f"{path}: the text of prompt {name!r} is not the one that was asked. Restore a copy"
                " of the store; nothing was merged."
            )
        if name in needed:
            db.execute("INSERT OR IGNORE INTO prompts VALUES (?, ?)", (name, prompt))


def describe_conflicts(conflicts: pd.DataFrame) -> str:
    """Return a line for each of the first five conflicts, and how many there are besides."""
    lines = []
    columns = ["answer_id", "model", "kept", "kept_in", "other", "other_in"]
    for answer_id, model, kept, kept_in, other, other_in in conflicts[columns].head(5).to_numpy():
        texts = f"{kept[:100]!r} in {kept_in}, {other[:100]!r} in {other_in}"
        lines.append(f"  {answer_id} ({model}): {texts}")
    if len(conflicts) > len(lines):
        lines.append(f"  … and {len(conflicts) - len(lines):,} more, which --csv FILE lists")
    return "\n".join(lines)


def _refusal(conflicts: pd.DataFrame, target: Path) -> str:
    return (
        f"{target}: {len(conflicts):,} questions have two answers that should be the same, as they"
        f" are neither sampled nor an endpoint's. Nothing was merged.\n"
        f"{describe_conflicts(conflicts)}\nOther software or hardware may round differently. To"
        " keep the answer that was written first, add --keep-first to the command."
    )


def _write_csv(conflicts: pd.DataFrame, path: Path) -> None:
    try:
        write_file(path, conflicts.to_csv(index=False, lineterminator="\n"))
    except OSError as error:
        raise VragError(
            f"{path}: cannot be written ({error.strerror}). Choose another file for --csv."
        ) from error


def _open(path: Path) -> AnswerStore:
    if not path.exists() or not path.stat().st_size:
        raise VragError(
            f"{path}: found no file, or an empty one; expected an answer store such as"
            " answers.sqlite. Nothing was merged."
        )
    return AnswerStore(path)


def _is_same(path: Path, target: Path) -> bool:
    return path.exists() and target.exists() and path.samefile(target)


def _remove_if_empty(target: Path) -> None:
    """Remove a store that a merge created, unless another process has used it since."""
    with suppress(VragError), AnswerStore(target) as store, store.writing() as db:
        if not db.execute("SELECT 1 FROM answers UNION ALL SELECT 1 FROM claims").fetchone():
            target.unlink()
