"""Many answer stores as one: each answer once, no answer lost.

Nodes that cannot share a disk with file locks ask into a store each; the stores are
merged afterwards, in any order, and again when they have grown.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from vrag_kit.errors import VragError
from vrag_kit.generation.answer_file import COLUMNS, AnswerFile, answers_table, put_answer
from vrag_kit.generation.keys import StoredPrompt
from vrag_kit.processes import has_ended
from vrag_kit.types import Status

_AT_ONCE = 500
"""Rows that are held in memory."""
_SHOWN = 200
"""Characters of words that a message shows."""
_STANDING = ("answer_id", "status", "raw", "stored")
"""What is looked at of an answer that is in the target."""
_SPENT = (
    "INSERT INTO spending VALUES (?, ?, ?) ON CONFLICT (writer, model) DO UPDATE SET"
    " dollars = excluded.dollars WHERE excluded.dollars > dollars"
)
"""What somebody has spent only grows, so that the larger sum is the later one."""

Row = dict[str, Any]  # Any: what SQLite holds


@dataclass(slots=True)
class Merged:
    """What came of one store, in answers and failures."""

    path: Path
    """The store that was merged."""
    new: int = 0
    """Were not in the target."""
    there: int = 0
    """Were in it already, word by word, or as a later failure."""
    answered: int = 0
    """Answers that took the place of a failure."""
    outdone: int = 0
    """Failures that have an answer in the target."""
    otherwise: int = 0
    """Had another answer in the target: the one that was written first stands."""
    asking: int = 0
    """Questions that somebody is asking into it just now."""

    def __str__(self) -> str:
        told = [
            f"{self.new:,} new",
            f"{self.there:,} there already",
            f"{self.answered:,} in place of a failure",
            f"{self.outdone:,} failures left out, which have an answer",
            f"{self.otherwise:,} answered in two ways, of which the first stands",
        ]
        parts = [part for part in told[2:] if not part.startswith("0 ")]
        line = f"{self.path}: {', '.join([*told[:2], *parts])}"
        if self.asking:
            line += (
                f"\n  {self.asking:,} questions are being asked into it just now: merge again when"
                " they are answered"
            )
        return line


def merge_answers(
    stores: Sequence[Path | str], *, to: Path | str, keep_first: bool = False
) -> list[Merged]:
    """Put what `stores` hold into the store at `to`, which is made if there is none:
    answers and failures with all that is kept of them, what is known of pictures, and
    what was spent. Returns what came of each store.

    An answer takes the place of a failure, a later failure that of an earlier one. Of
    answers that differ the one written first stands where words are drawn anew each
    time (sampled, or behind an endpoint), and everywhere with `keep_first`. What is just
    being asked stays with who asks it. All is merged in one step, or nothing; merging
    again changes nothing. The stores themselves stay as they are, but that those of an
    earlier version are brought up to date. The target may be among them, and is passed
    over. Where nothing is merged, no target is left that was not there.

    Raises `VragError` for a file that is no store, or is damaged, where the target alone
    is named, and for two answers to one question that should be the same.
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
        return _merged(others, target, keep_first)
    except BaseException:
        if not was_there and target.is_file():
            with suppress(VragError):  # what went wrong is told already
                _remove_empty(target)
        raise


def _merged(paths: Sequence[Path], target: Path, keep_first: bool) -> list[Merged]:
    """All stores at `paths` in the one at `target`, in one step."""
    with ExitStack() as stack:
        sources = [stack.enter_context(closing(_opened(path))) for path in paths]
        into = stack.enter_context(closing(AnswerFile(target)))
        outcomes = []
        with into.writing() as db:
            for place, source in enumerate(sources):
                merge = _Merge(source, into, sources[:place], keep_first)
                outcomes.append(merge.all(db))
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
    keep_first: bool

    def all(self, db: sqlite3.Connection) -> Merged:
        """Merge everything, within the target's transaction."""
        outcome = Merged(path=self.source.path, asking=self._asking())
        for rows in self._answers():
            there = self._there([row["answer_id"] for row in rows])
            for row in rows:
                if self._is_taken(row, there.get(row["answer_id"]), outcome):
                    put_answer(db, row)
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

    def _answers(self) -> Iterator[list[Row]]:
        """All answers and failures of the source, in blocks; who asks into it can write
        between two of them.
        """
        query = (
            f"SELECT {', '.join(COLUMNS)} FROM {answers_table()} WHERE answer_id > ?"
            f" ORDER BY answer_id LIMIT {_AT_ONCE}"
        )
        last = ""
        while True:
            with self.source.reading() as db:
                found = db.execute(query, (last,)).fetchall()
            if not found:
                return
            yield [dict(zip(COLUMNS, row, strict=True)) for row in found]
            last = found[-1][0]

    def _there(self, answer_ids: Sequence[str]) -> dict[str, Row]:
        """What the target holds of these, by id."""
        rows = self.target.rows(", ".join(_STANDING), answers_table(), answer_ids)
        return {row[0]: dict(zip(_STANDING, row, strict=True)) for row in rows}

    def _is_taken(self, row: Row, there: Row | None, outcome: Merged) -> bool:
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
        same = (row["status"], row["raw"]) == (there["status"], there["raw"])
        if not same and not self.keep_first and not _is_drawn(json.loads(row["sent"])):
            raise self._contradiction(row, there)
        outcome.there += same
        outcome.otherwise += not same
        return _place(row) < _place(there)

    def _contradiction(self, row: Row, there: Row) -> VragError:
        """Two answers to one question, shown."""
        holders = [
            each.path
            for each in self.earlier
            if (there["raw"],) in each.rows("raw", answers_table(), [row["answer_id"]])
        ]
        other = (holders or [self.target.path])[0]
        asked = " ".join(_texts(json.loads(row["prompt"])).split())
        return VragError(
            f"{self.target.path}: {row['model']} has given two answers to one question, which it"
            f" decodes to the same words each time. Nothing was merged.\n  {_told(other, there)}\n"
            f"  {_told(self.source.path, row)}\n  asked: {asked[-_SHOWN:]!r}\nOther software or"
            " hardware may round otherwise. To keep the one that was written first, here and"
            " wherever it is so, add --keep-first to the command."
        )


def _worth(row: Row) -> int:
    """2 for an answer, 1 for a bad one (empty or cut off), 0 for a call that failed."""
    status = Status(row["status"])
    return 2 if status is Status.OK else int(status.is_answer)


def _is_drawn(sent: Row) -> bool:
    """Whether the same prompt may get other words: they are sampled, or come from a
    server, which answers in batches that differ.
    """
    return "endpoint" in sent or bool(sent.get("do_sample", sent.get("temperature")))


def _place(row: Row) -> tuple[float, str]:
    """Where an answer stands among several to one question: the first is kept."""
    return row["stored"], row["raw"] or ""


def _told(path: Path, row: Row) -> str:
    """An answer, as messages show it."""
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row["stored"]))
    return f"{path} ({when}): {(row['raw'] or '')[:_SHOWN]!r}"


def _texts(prompt: StoredPrompt) -> str:
    """The words of a stored prompt."""
    parts = chain.from_iterable(message["parts"] for message in prompt)
    return " ".join(part for part in parts if isinstance(part, str))
