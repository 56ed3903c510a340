"""Append-only log of one annotator: one JSON line per action.
It is folded into one vote per question.

Nothing is ever rewritten: a crash loses at most the line in flight, two open panels never overwrite
each other, and the history is kept with its times (UTC). The first line names the annotator. A line
that a crash truncated stays; the next write marks it as torn.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.files import escapes_folder
from vrag_kit.log import logger
from vrag_kit.plain import Json, JsonView

FORMAT = "vrag_kit annotation log, version 1"
EVENTS: dict[str, dict[str, type]] = {
    # so that the file stands alone
    "opened": {"species": str, "folder": str, "question": str, "feature": str},
    # a page was on the screen; what of it could not be shown
    "seen": {"images": list, "unreadable": list},
    "ticked": {"image": str},
    "unticked": {"image": str},
    "answered": {"text": str},
    "suggested": {"text": str},
    "done": {"shown": int, "clues": int},
    "skipped": {"shown": int, "clues": int},
    "reopened": {},
}
"""Event → the fields of its line, besides time, event and question_id.
Events happen to a question.
"""
TORN = {"event": "torn"}  # the line above was cut off


@dataclass(frozen=True, slots=True)
class Vote:
    """One annotator's labels and answer for one question so far."""

    question_id: str
    species: str  # scientific name
    folder: str
    question: str
    feature: str
    # doc_ids that were on the screen, in order; a blank among them means no clue, an image
    # added to the folder later is not here
    shown: tuple[str, ...] = ()
    clues: frozenset[str] = frozenset()  # those of `shown` that are ticked
    answer: str = ""
    suggestion: str = ""  # a new question
    status: str = "open"  # "open", "done" or "skipped"
    # missing or damaged when their page was on the screen; neither clue nor not
    unreadable: frozenset[str] = frozenset()

    @property
    def labels(self) -> dict[str, int]:
        """doc_id → 1 for a clue, 0 for any other image shown.
        Empty unless the question is done.
        """
        if self.status != "done":
            return {}
        return {doc_id: int(doc_id in self.clues) for doc_id in self.shown}


@dataclass(frozen=True, slots=True)
class AnnotationLog:
    """An annotator's parsed log: votes by question_id.
    Questions are in the order in which they were first opened.
    """

    annotator: str  # "" while not even the first line is whole
    votes: dict[str, Vote] = field(default_factory=dict)
    torn: tuple[int, ...] = ()  # numbers of lines that a crash cut off; they are left out

    def __repr__(self) -> str:
        decided = sum(vote.status != "open" for vote in self.votes.values())
        return (
            f"AnnotationLog({self.annotator}, {len(self.votes):,} questions, {decided:,} of them"
            " done or skipped)"
        )


def read_annotation_log(path: Path | str) -> AnnotationLog:
    """Read an annotator's log and fold it into votes.
    A log truncated anywhere gives the votes of its complete lines.

    A line that a crash truncated is left out and printed. Raises `VragError` for a file that cannot
    be read or is no annotation log, and for any other invalid line, with its number.
    """
    data = _bytes_from(Path(path), 0)
    rest = data[data.rfind(b"\n") + 1 :]
    if rest and _parsed(rest) is None:
        data += b"\n" + json.dumps(TORN).encode()
    log = _fold(AnnotationLog(""), 0, data, str(path))
    if not log.annotator and not _begun(rest):
        raise _no_log(path, rest)
    _tell(log, path)
    return log


class AnnotationWriter:
    """Appends actions to an annotator's log.

    `log` is the parsed file as of the last `append` or `refresh`, including lines that another
    panel wrote.
    """

    def __init__(self, path: Path | str, annotator: str) -> None:
        """Opens or creates the file; raises `VragError` when it belongs to another annotator,
        cannot be written, or as `read_annotation_log`.
        """
        hidden = not annotator.strip() or annotator.startswith(".")
        if hidden or not annotator.isprintable() or set("/\\") & set(annotator):
            raise VragError(
                f"found the annotator {annotator!r}; expected a name, which is kept in the file and"
                " may be that of a file: not empty, without slashes."
            )
        self.path, self.annotator = Path(path), annotator
        self.log = AnnotationLog("")
        self._lines = 0  # of the file, as far as `log` holds them
        self._offset = 0  # their end, in bytes
        self._rest = b""  # what stands behind them
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if not self.path.exists():
                self._write([])
            self.refresh()
            if self._rest or not self.log.annotator:  # a crash cut the last line off
                self._write([])
                self.refresh()
        except OSError as error:
            raise VragError(
                f"{path}: annotations cannot be written ({error.strerror}). Choose a file in a"
                " folder of your own."
            ) from error
        _tell(self.log, path)

    def refresh(self) -> None:
        """Read the lines that this panel or another one appended after the last call.

        Raises `VragError` as `read_annotation_log`, and leaves `log` unchanged.
        """
        data = _bytes_from(self.path, self._offset)
        used = data.rfind(b"\n") + 1
        log = _fold(self.log, self._lines, data[:used], str(self.path))
        rest = data[used:]
        if log.annotator not in ("", self.annotator):
            raise VragError(
                f"{self.path}: found annotations of {log.annotator!r}, expected those of"
                f" {self.annotator!r}. Use a file for each annotator."
            )
        if not log.annotator and not _begun(rest):
            raise _no_log(self.path, rest)
        self.log = log
        self._lines += data.count(b"\n")
        self._offset += used
        self._rest = rest

    def append(self, question_id: str, event: str, fields: JsonView | None = None) -> None:
        """Write one action with the fields that `EVENTS` names, then read it back.

        Raises `VragError` for an invalid action, with nothing written, and `OSError` when it cannot
        be written.
        """
        self.refresh()
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "event": event,
            "question_id": question_id,
            **(fields or {}),
        }
        _apply(dict(self.log.votes), line, "the new line")
        self._write([line])
        self.refresh()

    def _write(self, lines: list[Json]) -> None:
        """One write to the end of the file, on a fresh line and behind a header, both
        where they are missing.
        """
        torn = [TORN] if self._rest and _parsed(self._rest) is None else []
        header = [] if self.log.annotator else [{"annotator": self.annotator, "format": FORMAT}]
        rows = [json.dumps(line, ensure_ascii=False) + "\n" for line in (*torn, *header, *lines)]
        text = "".join(rows)
        data = (b"\n" if self._rest else b"") + text.encode("utf-8", errors="replace")
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            if (written := os.write(descriptor, data)) < len(data):
                raise OSError(
                    None, f"{written} of {len(data)} bytes were written; is the disk full?"
                )
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _bytes_from(path: Path, offset: int) -> bytes:
    try:
        with path.open("rb") as file:
            if file.seek(0, os.SEEK_END) < offset:
                raise VragError(
                    f"{path}: shorter than it was; something else wrote over it. Open the panel"
                    " again to go on with what it holds now."
                )
            file.seek(offset)
            return file.read()
    except OSError as error:
        raise VragError(
            f"{path}: annotations cannot be read ({error.strerror}). `annotate` makes such a file."
        ) from error


def _fold(log: AnnotationLog, before: int, data: bytes, path: str) -> AnnotationLog:
    """The log with `data` folded in: whole lines, which come after `before` others."""
    lines = {
        number: raw for number, raw in enumerate(data.split(b"\n"), start=before + 1) if raw.strip()
    }
    rows = [_parsed(raw) for raw in lines.values()]
    annotator, votes = log.annotator, dict(log.votes)
    torn = list(log.torn)
    for number, line, following in zip(lines, rows, [*rows, None][1:], strict=True):
        if line is None and following == TORN:
            torn.append(number)
        elif line is None and annotator:
            raise _bad(f"{path} line {number}", "no JSON object")
        elif line is None:
            raise _no_log(path, lines[number])
        elif not annotator or "format" in line:
            annotator = _annotator(line, annotator, path, number) if line != TORN else ""
        elif line != TORN:
            _apply(votes, line, f"{path} line {number}")
    return AnnotationLog(annotator, votes, tuple(torn))


def _annotator(line: JsonView, before: str, path: str, number: int) -> str:
    """The name in a header; two panels that open at the same moment both write one."""
    name = line.get("annotator")
    if line.get("format") != FORMAT or not isinstance(name, str) or not name:
        raise VragError(
            f'{path} line {number}: not an annotation log; expected the first line {{"annotator":'
            f' …, "format": "{FORMAT}"}}.'
        )
    if before not in ("", name):
        raise VragError(
            f"{path} line {number}: found annotations of {name!r} below those of {before!r}. Keep a"
            " file for each annotator."
        )
    return name


def _apply(votes: dict[str, Vote], line: JsonView, where: str) -> None:
    """Fold one action into `votes`; raises `VragError` when it is not one."""
    event, question_id = line.get("event"), line.get("question_id")
    if event not in EVENTS or not isinstance(question_id, str):
        raise _bad(
            where,
            f"the event {event!r} of the question {question_id!r}, which is none of"
            f" {', '.join(EVENTS)}",
        )
    for name, kind in EVENTS[event].items():
        value = line.get(name)
        if not _is(value, kind):
            wanted = "list of names" if kind is list else kind.__name__
            raise _bad(where, f"{name} = {value!r} in the event {event!r}, which is no {wanted}")
    if event != "opened" and question_id not in votes:
        raise _bad(
            where,
            f"the event {event!r} of the question {question_id!r}, which was not opened before",
        )
    if event == "seen" and (outside := list(filter(escapes_folder, line["images"]))):
        raise _bad(where, f"the image {outside[0]!r}, which points outside the image root")
    if event == "ticked" and line["image"] not in votes[question_id].shown:
        raise _bad(where, f"a tick of {line['image']!r}, which was not on the screen before")
    if question_id in votes:
        votes[question_id] = _changed(votes[question_id], line)
    else:
        votes[question_id] = Vote(question_id, **{name: line[name] for name in EVENTS["opened"]})


def _is(value: object, kind: type) -> bool:
    """Whether a value is of this kind; a list holds words alone."""
    if isinstance(value, list):
        return kind is list and all(isinstance(each, str) for each in value)
    return isinstance(value, kind)


def _changed(vote: Vote, line: JsonView) -> Vote:
    match line["event"]:
        case "opened":
            return replace(vote, **{name: line[name] for name in EVENTS["opened"]})
        case "seen":
            shown = tuple(dict.fromkeys((*vote.shown, *line["images"])))
            unreadable = (vote.unreadable | set(line["unreadable"])) - set(shown)
            return replace(vote, shown=shown, unreadable=unreadable)
        case "ticked":
            return replace(vote, clues=vote.clues | {line["image"]})
        case "unticked":
            return replace(vote, clues=vote.clues - {line["image"]})
        case "answered":
            return replace(vote, answer=line["text"])
        case "suggested":
            return replace(vote, suggestion=line["text"])
        case event:
            return replace(vote, status="open" if event == "reopened" else event)


def _parsed(raw: bytes) -> Json | None:
    """The JSON object in a line; None when there is none."""
    try:
        line = json.loads(raw)
    except ValueError:  # also bytes that are not UTF-8
        return None
    return line if isinstance(line, dict) else None


def _tell(log: AnnotationLog, path: Path | str) -> None:
    for number in log.torn:
        logger.info(f"{path} line {number}: cut off by a crash while it was written, left out")


def _begun(rest: bytes) -> bool:
    """Whether an unfinished first line may be that of a log."""
    return b'{"annotator": "'.startswith(rest[:15])


def _bad(where: str, found: str) -> VragError:
    return VragError(
        f"{where}: found {found}; expected a line that `annotate` wrote. Nothing was changed; mend"
        " or delete this line."
    )


def _no_log(path: Path | str, found: bytes) -> VragError:
    return VragError(
        f"{path}: not an annotation log; the first line is"
        f" {found[:60].decode('utf-8', errors='replace')!r}, "
        f'expected {{"annotator": …, "format": "{FORMAT}"}}. Choose another file.'
    )
