"""Merge answer stores into one, which keeps each answer once and loses none.

Nodes that cannot share a disk with file locks write to a store each. The stores are merged
afterwards, in any order, and again when they have grown.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.generation.store import AnswerStore, Row
from vrag_kit.generation.store_layout import ANSWER_COLUMNS, prompt_id
from vrag_kit.types import Json, Status

_ANSWERS = f"SELECT {ANSWER_COLUMNS} FROM answers"
_COLUMNS = ANSWER_COLUMNS.split(", ")
_MARKS = f"VALUES ({', '.join('?' * len(_COLUMNS))})"
_CONFLICT = ("answer_id", "model", "kept", "kept_in", "other", "other_in", "may_differ")
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
    origins: dict[str, str] = {}
    found: list[Json] = []
    try:
        with ExitStack() as stack:
            sources = [stack.enter_context(_open(path)) for path in paths]
            into = stack.enter_context(AnswerStore(target))
            stack.enter_context(into.writing())
            report = pd.DataFrame([_merge(source, into, origins, found) for source in sources])
            conflicts = pd.DataFrame(found, columns=_CONFLICT)
            if csv:
                write_file(Path(csv), conflicts.to_csv(index=False, lineterminator="\n"))
            if not (keep_first or conflicts["may_differ"].all()):
                raise VragError(_refusal(conflicts[conflicts["may_differ"] == 0], target))
    except BaseException:
        if not existed and target.is_file():
            _remove_if_empty(target)
        raise
    return report, conflicts


def _merge(
    source: AnswerStore, target: AnswerStore, origins: dict[str, str], conflicts: list[Json]
) -> Json:
    """Merge a store in the target's transaction; returns its row of the report, and adds its
    conflicts. `origins` is the store that each merged answer came from.
    """
    path = str(source.path)
    counts = Counter(new=0, already_there=0, replaced=0, conflicts=0)
    with source.reading() as other, target.reading() as db:  # a full disk is the target's
        for values in other.execute(f"{_ANSWERS} ORDER BY answer_id"):
            new = _row(values, path)
            found = db.execute(f"{_ANSWERS} WHERE answer_id = ?", values[:1]).fetchone()
            held = _row(found, origins.get(values[0], str(target.path))) if found else None
            if held is None:
                counts["new"] += 1
            else:
                counts["replaced" if _worth(new) > _worth(held) else "already_there"] += 1
                if _is_conflict(new, held):
                    counts["conflicts"] += 1
                    conflicts.append(_conflict(*sorted([new, held], key=_rank)))
            if held is None or _rank(new) > _rank(held):
                origins[values[0]] = path
                db.execute(f"INSERT OR REPLACE INTO answers ({ANSWER_COLUMNS}) {_MARKS}", values)
                _merge_prompt(source.path, new["prompt_id"], other, db)
        images = other.execute("SELECT place, stamp, pixels, width, height FROM pictures")
        db.executemany("INSERT OR IGNORE INTO pictures VALUES (?, ?, ?, ?, ?)", images)
        db.executemany(_SPENDING, other.execute("SELECT writer, model, dollars FROM spending"))
        query = "SELECT COUNT(*) FROM claims WHERE lease_until >= ?"
        (pending,) = other.execute(query, (time.time(),)).fetchone()
    return {"store": path, **counts, "pending": pending}


def _row(values: Row, store: str) -> Json:
    return {**dict(zip(_COLUMNS, values, strict=True)), "store": store}


def _worth(row: Json) -> int:
    """Ranks a good answer before a bad one (empty or truncated), and both before a failure."""
    status = Status(row["status"])
    return status.is_answer + (status == Status.OK)


def _rank(row: Json) -> tuple[int, float, str]:
    """Orders rows of one answer: the first answer is the best, and the last failure."""
    worth = _worth(row)
    return worth, -row["stored"] if worth else row["stored"], row["raw"] or ""


def _is_conflict(one: Json, other: Json) -> bool:
    is_equal = (one["status"], one["raw"]) == (other["status"], other["raw"])
    return 0 < _worth(one) == _worth(other) and not is_equal


def _conflict(other: Json, kept: Json) -> Json:
    sent = json.loads(kept["sent"])
    samples = sent.get("do_sample")
    if samples is None:
        samples = sent.get("temperature")
    return {
        "answer_id": kept["answer_id"],
        "model": kept["model"],
        "kept": kept["raw"] or "",
        "kept_in": kept["store"],
        "other": other["raw"] or "",
        "other_in": other["store"],
        "may_differ": int("endpoint" in sent or bool(samples)),
    }


def _merge_prompt(path: Path, name: str, other: sqlite3.Connection, db: sqlite3.Connection) -> None:
    """Copy the prompt of an answer."""
    for (prompt,) in other.execute("SELECT prompt FROM prompts WHERE prompt_id = ?", (name,)):
        if prompt_id(prompt) != name:
            raise VragError(
                f"{path}: the text of prompt {name!r} is not the one that was asked. Restore a copy"
                " of the store; nothing was merged."
            )
        db.execute("INSERT OR IGNORE INTO prompts VALUES (?, ?)", (name, prompt))


def describe_conflicts(conflicts: pd.DataFrame) -> str:
    """Return a line for each of the first five conflicts, and how many there are besides."""
    lines = []
    for each in conflicts.head(5).to_dict("records"):
        kept = f"{each['kept'][:100]!r} in {each['kept_in']}"
        other = f"{each['other'][:100]!r} in {each['other_in']}"
        lines.append(f"  {each['answer_id']} ({each['model']}): {kept}, {other}")
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
