"""Merge answer stores into one, which keeps each answer once and loses none.

Nodes that cannot share a disk with file locks write to a store each. The stores are merged
afterwards, in any order, and again when they have grown.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, fields
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.generation.answer_file import (
    STORED_COLUMNS,
    AnswerFile,
    insert_answer,
    prompt_id,
    visible_answers_sql,
)
from vrag_kit.generation.keys import StoredPrompt
from vrag_kit.processes import has_ended
from vrag_kit.types import Status

_AT_ONCE = 500
"""Rows that are held in memory."""
_SHOWN = 100
"""Characters of an answer that a message shows."""
_LISTED = 5
"""Conflicts that a message lists."""
_STANDING = ("answer_id", "status", "raw", "stored")
"""What is looked at of an answer that is in the target."""
_SPENT = (
    "INSERT INTO spending VALUES (?, ?, ?) ON CONFLICT (writer, model) DO UPDATE SET"
    " dollars = excluded.dollars WHERE excluded.dollars > dollars"
)
"""What somebody has spent only grows, so that the larger sum is the later one."""

_Row = dict[str, Any]  # Any: what SQLite holds


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two different answers under one key, of which the first one written is kept."""

    answer_id: str
    model: str
    asked: str
    """The end of the prompt's text."""
    kept: str
    """The text of the answer that is kept."""
    kept_in: Path
    other: str
    other_in: Path
    may_differ: bool
    """Whether generation may differ between calls: sampled, or from an endpoint."""

    def __str__(self) -> str:
        kept, other = self.kept[:_SHOWN], self.other[:_SHOWN]
        return (
            f"  {self.answer_id} ({self.model}): {kept!r} in {self.kept_in}, {other!r} in"
            f" {self.other_in}; asked: {self.asked!r}"
        )


@dataclass(slots=True)
class MergeReport:
    """The result of merging one store, in numbers of answers and failures."""

    path: Path
    """The store that was merged."""
    new: int = 0
    """Not in the target before."""
    there: int = 0
    """Already in the target, with the same text or as a failure."""
    answered: int = 0
    """Answers that replaced a failure."""
    outdone: int = 0
    """Failures for which the target has an answer."""
    conflicts: list[Conflict] = field(default_factory=list)
    """Answers that differ from the target's."""
    asking: int = 0
    """Questions that processes are asking into the store at present."""

    def __str__(self) -> str:
        told = [
            f"{self.new:,} new",
            f"{self.there:,} there already",
            f"{self.answered:,} in place of a failure",
            f"{self.outdone:,} failures left out, which have an answer",
            f"{len(self.conflicts):,} answered in two ways, of which the first stands",
        ]
        parts = [part for part in told[2:] if not part.startswith("0 ")]
        line = f"{self.path}: {', '.join([*told[:2], *parts])}"
        if self.conflicts:
            line += f":\n{_listed(self.conflicts)}"
        if self.asking:
            line += (
                f"\n  {self.asking:,} questions are being asked into it just now: merge again when"
                " they are answered"
            )
        return line


def merge_stores(
    stores: Sequence[Path | str],
    *,
    to: Path | str,
    keep_first: bool = False,
    conflicts: Path | str | None = None,
) -> list[MergeReport]:
    """Merge `stores` into the store at `to`, which is created if it does not exist.

    Merges answers and failures with all their data, image hashes, and spending. Returns a report
    for each store.

    An answer replaces a failure, and a later failure an earlier one. Of different answers, the one
    written first is kept if generation may differ between calls (sampled, or behind an endpoint),
    and always with `keep_first`. Claims are not merged. The merge is atomic; repeating it changes
    nothing. The stores themselves are not changed. The target may be among them, and is skipped. If
    nothing is merged, no new target is left. The file `conflicts` gets a row for each answer that
    differs, as CSV, even if the merge is refused.

    Raises `VragError` for a file that is not a store, is damaged or has another layout, if the
    target alone is named, and for two answers to one question that should be equal.
    """
    target = Path(to)
    paths = [Path(store) for store in stores]
    others = [path for path in paths if not _is_same(path, target)]
    if not others:
        raise VragError(
            f"{target}: this is the store to merge into, and no other is named. Nothing was merged;"
            " name the stores whose answers it lacks, as in `vrag answers merge node1.sqlite"
            f" node2.sqlite --to {target}`."
        )
    was_there = target.exists()
    try:
        return _merged(others, target, keep_first, Path(conflicts) if conflicts else None)
    except BaseException:
        if not was_there and target.is_file():
            with suppress(VragError):  # what went wrong is told already
                _remove_empty(target)
        raise


def _merged(
    paths: Sequence[Path], target: Path, keep_first: bool, conflicts: Path | None
) -> list[MergeReport]:
    """All stores at `paths` in the one at `target`, in one step."""
    with ExitStack() as stack:
        sources = [stack.enter_context(closing(_opened(path))) for path in paths]
        into = stack.enter_context(closing(AnswerFile(target)))
        outcomes = []
        with into.writing() as db:
            for place, source in enumerate(sources):
                outcomes.append(_Merge(source, into, sources[:place]).all(db))
            found = list(chain.from_iterable(outcome.conflicts for outcome in outcomes))
            if conflicts:
                _write(found, conflicts)
            if not keep_first:
                _refuse([each for each in found if not each.may_differ], target)
    return outcomes


def _remove_empty(target: Path) -> None:
    """Take away the store that a merge has made, unless somebody has written to it since."""
    with closing(AnswerFile(target)) as made, made.writing() as db:
        tables = ("answers", "claims", "pictures", "spending")
        if not any(db.execute(f"SELECT 1 FROM {each} LIMIT 1").fetchone() for each in tables):
            target.unlink()


def _is_same(path: Path, target: Path) -> bool:
    """Whether both are one file, by whatever names."""
    return path.exists() and target.exists() and path.samefile(target)


def _opened(path: Path) -> AnswerFile:
    """The file of a store that is there."""
    if not path.is_dir() and (not path.is_file() or not path.stat().st_size):
        found = "it is empty" if path.is_file() else "there is no such file"
        raise VragError(
            f"{path}: expected a store of answers, but {found}. Nothing was merged; name files"
            " such as answers.sqlite."
        )
    return AnswerFile(path)


@dataclass(frozen=True, slots=True)
class _Merge:
    """One store on its way into another."""

    source: AnswerFile
    target: AnswerFile
    earlier: Sequence[AnswerFile]
    """Those that were merged before it."""

    def all(self, db: sqlite3.Connection) -> MergeReport:
        """Merge everything, within the target's transaction."""
        outcome = MergeReport(path=self.source.path, asking=self._asking())
        for rows in self._answers():
            there = self._there([row["answer_id"] for row in rows])
            for row in rows:
                if row["prompt"] is not None and prompt_id(row["prompt"]) != row["prompt_id"]:
                    raise VragError(
                        f"{self.source.path}: the prompt of answer {row['answer_id']!r} is not the"
                        " one that was asked. Restore a copy of the store; nothing was merged."
                    )
                if self._is_taken(row, there.get(row["answer_id"]), outcome):
                    insert_answer(db, row)
        with self.source.reading() as theirs:
            pictures = theirs.execute("SELECT place, stamp, pixels, width, height FROM pictures")
            db.executemany("INSERT OR IGNORE INTO pictures VALUES (?, ?, ?, ?, ?)", pictures)
            spent = theirs.execute("SELECT writer, model, dollars FROM spending")
            db.executemany(_SPENT, spent)
        return outcome

    def _asking(self) -> int:
        """How many questions living processes are asking into the source."""
        query = "SELECT owner FROM claims WHERE lease_until >= ?"
        with self.source.reading() as db:
            owners = [str(owner) for (owner,) in db.execute(query, (time.time(),))]
        return sum(not has_ended(owner.partition(" ")[0]) for owner in owners)

    def _answers(self) -> Iterator[list[_Row]]:
        """All answers and failures of the source, in blocks; who asks into it can write
        between two of them.
        """
        query = (
            f"SELECT {', '.join(STORED_COLUMNS)} FROM {visible_answers_sql()} WHERE answer_id > ?"
            f" ORDER BY answer_id LIMIT {_AT_ONCE}"
        )
        last = ""
        while True:
            with self.source.reading() as db:
                found = db.execute(query, (last,)).fetchall()
            if not found:
                return
            yield [dict(zip(STORED_COLUMNS, row, strict=True)) for row in found]
            last = found[-1][0]

    def _there(self, answer_ids: Sequence[str]) -> dict[str, _Row]:
        """What the target holds of these, by id."""
        rows = self.target.rows(", ".join(_STANDING), visible_answers_sql(), answer_ids)
        return {row[0]: dict(zip(_STANDING, row, strict=True)) for row in rows}

    def _is_taken(self, row: _Row, there: _Row | None, outcome: MergeReport) -> bool:
        """Whether a row is to be written; counts it."""
        if there is None:
            outcome.new += 1
            return True
        ours, theirs = _worth(row), _worth(there)
        if ours != theirs:
            outcome.answered += ours > theirs
            outcome.outdone += ours < theirs
            return ours > theirs
        if not ours:
            outcome.there += 1
            return bool(row["stored"] > there["stored"])  # the later failure is today's reason
        taken = _place(row) < _place(there)
        if (row["status"], row["raw"]) == (there["status"], there["raw"]):
            outcome.there += 1
        else:
            outcome.conflicts.append(self._conflict(row, there, taken))
        return taken

    def _conflict(self, row: _Row, there: _Row, taken: bool) -> Conflict:
        """Two answers to one question: a row, which stands if it is taken, and the target's."""
        holders = [
            each.path
            for each in self.earlier
            if (there["raw"],) in each.rows("raw", visible_answers_sql(), [row["answer_id"]])
        ]
        ours = (row["raw"] or "", self.source.path)
        theirs = (there["raw"] or "", (holders or [self.target.path])[0])
        kept, other = (ours, theirs) if taken else (theirs, ours)
        return Conflict(
            row["answer_id"],
            row["model"],
            " ".join(_texts(json.loads(row["prompt"] or "[]")).split())[-_SHOWN:],
            *kept,
            *other,
            may_differ=_is_drawn(json.loads(row["sent"])),
        )


def _refuse(conflicts: Sequence[Conflict], target: Path) -> None:
    """Raise `VragError` for answers that should be the same, if there are any."""
    if conflicts:
        raise VragError(
            f"{target}: {len(conflicts):,} questions have two answers that should be the same, as"
            " they are neither sampled nor an endpoint's. Nothing was merged.\n"
            f"{_listed(conflicts)}\nOther software or hardware may round otherwise. To keep the"
            " one that was written first, here and wherever it is so, add --keep-first to the"
            " command."
        )


def _listed(conflicts: Sequence[Conflict]) -> str:
    """The first conflicts, and how many there are beside."""
    lines = [str(each) for each in conflicts[:_LISTED]]
    if more := len(conflicts) - len(lines):
        lines.append(f"  … and {more:,} more, which --csv FILE lists")
    return "\n".join(lines)


def _write(conflicts: Sequence[Conflict], path: Path) -> None:
    """Conflicts as CSV."""
    table = pd.DataFrame(conflicts, columns=[each.name for each in fields(Conflict)])
    try:
        write_file(path, table.to_csv(index=False, lineterminator="\n"))
    except OSError as error:
        raise VragError(
            f"{path}: cannot be written ({error.strerror}). Choose another file for --csv."
        ) from error


def _worth(row: _Row) -> int:
    """2 for an answer, 1 for a bad one (empty or cut off), 0 for a call that failed."""
    status = Status(row["status"])
    return 2 if status is Status.OK else int(status.is_answer)


def _is_drawn(sent: _Row) -> bool:
    """Whether the same prompt may get other words: they are sampled, or come from a
    server, which answers in batches that differ.
    """
    return "endpoint" in sent or bool(sent.get("do_sample", sent.get("temperature")))


def _place(row: _Row) -> tuple[float, str]:
    """Where an answer stands among several to one question: the first is kept."""
    return row["stored"], row["raw"] or ""


def _texts(prompt: StoredPrompt) -> str:
    """The words of a stored prompt."""
    parts = chain.from_iterable(message["parts"] for message in prompt)
    return " ".join(part for part in parts if isinstance(part, str))
