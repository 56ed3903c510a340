"""A folder that is filled with images, with its manifest, journal and resume state.

Nothing is written outside it.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from vrag_kit.errors import VragError
from vrag_kit.fetching.resumable_tar import ResumePoint
from vrag_kit.files import escapes_folder, write_file
from vrag_kit.log import logger

_COLUMNS = ("image", "bytes", "sha256")
"""Columns of the manifest and of the journal."""


def is_image_name(name: str) -> bool:
    """Return whether `name` is a printable "<folder>/<file>" that stays in the folder."""
    parts = name.split("/")
    steps = escapes_folder(name) or not {"", "."}.isdisjoint(parts)
    return len(parts) == 2 and not steps and not re.search(r"[\x00-\x1f\x7f]", name)


@dataclass(frozen=True, slots=True)
class FileRecord:
    """The recorded size and hash of a file."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ResumeState:
    """The state in which a run stopped reading an archive."""

    archive: Mapping[str, Any]  # what tells it from others: texts and numbers
    wanted: str  # hash of the names that were looked for
    place: ResumePoint
    ended: bool  # whether all of it was read


class ImageFolder:
    """Images below `root`, named "<folder>/<file>", with three record files.

    `manifest.csv` lists the images that were opened and found good; `.fetch-journal.csv`
    lists images written after that, each as soon as it is complete; `.fetch-stop.json` holds
    the resume state. Only one process at a time may write there. A file or folder that
    cannot be written raises `VragError`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._manifest = root / "manifest.csv"
        self._missing = root / "missing.txt"
        self._journal = root / ".fetch-journal.csv"
        self._stop = root / ".fetch-stop.json"
        with catch_write_errors(root):
            root.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=root).close()  # whether it can be written

    def read_manifest(self) -> dict[str, FileRecord]:
        """Read the records in the manifest, which may be out of date."""
        return _read_rows(self._manifest)

    def read_journal(self) -> dict[str, FileRecord]:
        """Read the records in the journal, which may be out of date; a row that a crash
        truncated is left out.
        """
        return _read_rows(self._journal)

    def has_file(self, name: str, copy: FileRecord) -> bool:
        """Return whether the file exists with the recorded size."""
        try:
            return (self.root / name).stat().st_size == copy.bytes
        except OSError:
            return False

    def matches_checksum(self, name: str, copy: FileRecord) -> bool:
        """Return whether the file has the recorded size and hash."""
        try:
            return self.checksum(name) == copy
        except OSError:
            return False

    def checksum(self, name: str) -> FileRecord:
        """Return the size and hash of an existing file."""
        with (self.root / name).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            return FileRecord(size, hashlib.file_digest(file, "sha256").hexdigest())

    def append_to_journal(self, copies: Mapping[str, FileRecord]) -> None:
        """Append records to the journal."""
        with (
            catch_write_errors(self._journal),
            self._journal.open("a", encoding="utf-8", newline="") as file,
        ):
            file.write(_csv(_rows(copies)))

    def drop(self, names: Collection[str]) -> None:
        """Remove images from manifest and journal, and delete the resume state: they may precede
        its place in the archive.
        """
        with catch_write_errors(self.root):
            self._stop.unlink(missing_ok=True)  # first: a crash after it costs time, and no image
            for path in (self._manifest, self._journal):
                rows = _read_rows(path)
                left = {name: copy for name, copy in rows.items() if name not in names}
                if len(left) < len(rows):
                    write_file(path, _csv([_COLUMNS, *_rows(left)]))

    def check_folders(self, names: Iterable[str]) -> None:
        """Raise `VragError` if the folder of one of these images is a symbolic link, because files
        would be written elsewhere.
        """
        for folder in sorted({PurePosixPath(name).parts[0] for name in names}):
            if (path := self.root / folder).is_symlink():
                raise VragError(
                    f"{path}: a link to {os.readlink(path)}; images would be written outside"
                    f" {self.root}. Remove the link, or choose another folder."
                )

    def write_image(self, name: str, pieces: Iterator[bytes]) -> FileRecord:
        """Write and hash an image, which gets its name only when it is complete.

        The file is not synced to disk, which would take an hour for 100,000. The journal is
        synced, and its sizes show which files a power cut lost.
        """
        target = self.root / name
        self.check_folders([name])
        # one name, which nobody else writes to, so that what a kill leaves is written over
        part = target.with_name(f".{target.name}.part")
        with catch_write_errors(target):
            target.parent.mkdir(exist_ok=True)
            part.unlink(missing_ok=True)
            file = part.open("xb")  # never through a link
        digest = hashlib.sha256()
        size = 0
        try:
            with catch_write_errors(target), file:  # closing writes what is buffered
                for piece in pieces:
                    file.write(piece)
                    digest.update(piece)
                    size += len(piece)
            with catch_write_errors(target):
                os.replace(part, target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        copy = FileRecord(size, digest.hexdigest())
        self.append_to_journal({name: copy})
        return copy

    def save_resume_state(self, stop: ResumeState) -> None:
        """Save the resume state, after syncing the journal to disk."""
        with catch_write_errors(self._stop):
            if self._journal.exists():
                with self._journal.open("rb") as file:
                    os.fsync(file.fileno())
            noted = {
                "archive": dict(stop.archive),
                "wanted": stop.wanted,
                "ended": stop.ended,
                "offset": stop.place.offset,
                "index": base64.b64encode(stop.place.index).decode("ascii"),
            }
            write_file(self._stop, json.dumps({**noted, "sha256": _digest(noted)}))

    def load_resume_state(self) -> ResumeState | None:
        """Load the resume state of the last run; None if there is none, or, with a message, if it
        is damaged.
        """
        try:
            noted = json.loads(self._stop.read_text(encoding="utf-8"))
            if noted.pop("sha256") == _digest(noted):
                place = ResumePoint(noted["offset"], base64.b64decode(noted["index"]))
                return ResumeState(noted["archive"], noted["wanted"], place, noted["ended"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass
        logger.info(
            f"{self._stop}: the note of where the last run stopped is damaged; reading from the"
            " beginning",
        )
        return None

    def read_missing(self) -> dict[str, str]:
        """Read missing.txt: image → reason."""
        try:
            lines = self._missing.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError):
            return {}
        return {name: reason for name, _, reason in (line.partition("\t") for line in lines)}

    def finish(self, good: Mapping[str, FileRecord], faults: Mapping[str, str]) -> None:
        """Update the manifest, without missing files, and write the faults to missing.txt (image,
        tab, reason); without faults, delete journal and resume state.
        """
        rows = dict(good)
        for name, copy in self.read_manifest().items():
            if name not in good and name not in faults and self.has_file(name, copy):
                rows[name] = copy
        with catch_write_errors(self.root):
            write_file(self._manifest, _csv([_COLUMNS, *sorted(_rows(rows))]))
            if faults:
                lines = [f"{name}\t{' '.join(faults[name].split())}\n" for name in sorted(faults)]
                write_file(self._missing, "".join(lines))
                return
            half_written = self.root.glob(f".{self._stop.name}.*.part")  # what a kill left
            for path in (self._missing, self._stop, self._journal, *half_written):
                path.unlink(missing_ok=True)


@contextmanager
def catch_write_errors(path: Path) -> Iterator[None]:
    """Convert an `OSError` while writing `path` into a `VragError`."""
    try:
        yield
    except OSError as error:
        raise VragError(
            f"{path}: cannot be written ({error.strerror or error}). Make room there, or choose a"
            " folder that you may write to (--to)."
        ) from error


def _digest(noted: Mapping[str, object]) -> str:
    """Hash of a note, which tells whether it is as it was written."""
    return hashlib.sha256(json.dumps(noted, sort_keys=True).encode()).hexdigest()


def _rows(copies: Mapping[str, FileRecord]) -> list[tuple[str, int, str]]:
    return [(name, copy.bytes, copy.sha256) for name, copy in copies.items()]


def _csv(rows: Iterable[Iterable[object]]) -> str:
    content = io.StringIO(newline="")
    csv.writer(content, lineterminator="\n").writerows(rows)
    return content.getvalue()


def _read_rows(path: Path) -> dict[str, FileRecord]:
    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            rows = [row for row in csv.reader(file) if _is_row(row)]
    except (OSError, csv.Error):
        return {}
    return {name: FileRecord(int(size), sha256) for name, size, sha256 in rows}


def _is_row(row: list[str]) -> bool:
    if len(row) != len(_COLUMNS) or not is_image_name(row[0]):
        return False
    return bool(re.fullmatch("[0-9]{1,18}", row[1]) and re.fullmatch("[0-9a-f]{64}", row[2]))
