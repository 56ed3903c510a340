"""A folder that is being filled with images: what it holds, and what was noted of it.

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
from vrag_kit.fetching.archive import Place
from vrag_kit.files import leaves, write_file

COLUMNS = ("image", "bytes", "sha256")
"""Of the manifest and of the journal."""


def is_image_name(name: str) -> bool:
    """Whether this is "<folder>/<file>", printable, without steps out of the folder."""
    parts = name.split("/")
    steps = leaves(name) or not {"", "."}.isdisjoint(parts)
    return len(parts) == 2 and not steps and not re.search(r"[\x00-\x1f\x7f]", name)


@dataclass(frozen=True, slots=True)
class Copy:
    """What is known of a file."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a run stopped reading an archive."""

    archive: Mapping[str, Any]  # what tells it from others: texts and numbers
    wanted: str  # hash of the names that were looked for
    place: Place
    ended: bool  # whether all of it was read


class ImageFolder:
    """Images below `root`, named "<folder>/<file>", with three files beside the folders.

    `manifest.csv` lists the images that were opened and found good;
    `.fetch-journal.csv` those that were written since, each as soon as it is complete;
    `.fetch-stop.json` where the reading of the archive stopped. Only one process at a
    time may write there. What cannot be written raises `VragError`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._manifest = root / "manifest.csv"
        self._missing = root / "missing.txt"
        self._journal = root / ".fetch-journal.csv"
        self._stop = root / ".fetch-stop.json"
        with writing(root):
            root.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=root).close()  # whether it can be written

    def listed(self) -> dict[str, Copy]:
        """The images of the manifest, as they were."""
        return _read_rows(self._manifest)

    def journal(self) -> dict[str, Copy]:
        """The images of the journal, as they were; a row that a crash cut off is left
        out.
        """
        return _read_rows(self._journal)

    def holds(self, name: str, copy: Copy) -> bool:
        """Whether the file is there with the size that was noted."""
        try:
            return (self.root / name).stat().st_size == copy.bytes
        except OSError:
            return False

    def unchanged(self, name: str, copy: Copy) -> bool:
        """Whether the file still is, byte for byte, what was noted."""
        try:
            return self.look(name) == copy
        except OSError:
            return False

    def look(self, name: str) -> Copy:
        """Size and hash of a file that is there."""
        with (self.root / name).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            return Copy(size, hashlib.file_digest(file, "sha256").hexdigest())

    def note(self, copies: Mapping[str, Copy]) -> None:
        """Add to the journal."""
        with writing(self._journal), self._journal.open("a", encoding="utf-8", newline="") as file:
            file.write(_csv(_rows(copies)))

    def forget(self, names: Collection[str]) -> None:
        """Strike images off manifest and journal, and the note of where the reading
        stopped: they may lie before that place.
        """
        with writing(self.root):
            self._stop.unlink(missing_ok=True)  # first: a crash after it costs time, and no image
            for path in (self._manifest, self._journal):
                rows = _read_rows(path)
                left = {name: copy for name, copy in rows.items() if name not in names}
                if len(left) < len(rows):
                    write_file(path, _csv([COLUMNS, *_rows(left)]))

    def check_folders(self, names: Iterable[str]) -> None:
        """Raise `VragError` for a folder of these images that is a link: what is
        written there would lie elsewhere.
        """
        for folder in sorted({PurePosixPath(name).parts[0] for name in names}):
            if (path := self.root / folder).is_symlink():
                raise VragError(
                    f"{path}: a link to {os.readlink(path)}; images would be written outside"
                    f" {self.root}. Remove the link, or choose another folder."
                )

    def put(self, name: str, pieces: Iterator[bytes]) -> Copy:
        """Write an image, hashed on the way; it gets its name once it is complete.

        It is not forced to the disk, which would take an hour for 100,000: the journal
        is, and tells by the size what a power cut took.
        """
        target = self.root / name
        self.check_folders([name])
        # one name, which nobody else writes to, so that what a kill leaves is written over
        part = target.with_name(f".{target.name}.part")
        with writing(target):
            target.parent.mkdir(exist_ok=True)
            part.unlink(missing_ok=True)
            file = part.open("xb")  # never through a link
        digest = hashlib.sha256()
        size = 0
        try:
            with writing(target), file:  # closing writes what is buffered
                for piece in pieces:
                    file.write(piece)
                    digest.update(piece)
                    size += len(piece)
            with writing(target):
                os.replace(part, target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        copy = Copy(size, digest.hexdigest())
        self.note({name: copy})
        return copy

    def stop_at(self, stop: Stop) -> None:
        """Note where the reading stopped; the journal is on the disk before it."""
        with writing(self._stop):
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

    def stop(self) -> Stop | None:
        """Where the last run stopped; None when it left no note, or, which is said, one
        that is damaged.
        """
        try:
            noted = json.loads(self._stop.read_text(encoding="utf-8"))
            if noted.pop("sha256") == _digest(noted):
                place = Place(noted["offset"], base64.b64decode(noted["index"]))
                return Stop(noted["archive"], noted["wanted"], place, noted["ended"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass
        print(
            f"{self._stop}: the note of where the last run stopped is damaged; reading from the"
            " beginning",
            flush=True,
        )
        return None

    def reasons(self) -> dict[str, str]:
        """What missing.txt says: image → why."""
        try:
            lines = self._missing.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError):
            return {}
        return {name: reason for name, _, reason in (line.partition("\t") for line in lines)}

    def finish(self, good: Mapping[str, Copy], faults: Mapping[str, str]) -> None:
        """Add to the manifest, less what is gone, and write the list of faults
        (missing.txt: image, tab, reason); without faults, drop journal and note.
        """
        rows = dict(good)
        for name, copy in self.listed().items():
            if name not in good and name not in faults and self.holds(name, copy):
                rows[name] = copy
        with writing(self.root):
            write_file(self._manifest, _csv([COLUMNS, *sorted(_rows(rows))]))
            if faults:
                lines = [f"{name}\t{' '.join(faults[name].split())}\n" for name in sorted(faults)]
                write_file(self._missing, "".join(lines))
                return
            half_written = self.root.glob(f".{self._stop.name}.*.part")  # what a kill left
            for path in (self._missing, self._stop, self._journal, *half_written):
                path.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the system says of a path that cannot be written into `VragError`."""
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


def _rows(copies: Mapping[str, Copy]) -> list[tuple[str, int, str]]:
    return [(name, copy.bytes, copy.sha256) for name, copy in copies.items()]


def _csv(rows: Iterable[Iterable[object]]) -> str:
    content = io.StringIO(newline="")
    csv.writer(content, lineterminator="\n").writerows(rows)
    return content.getvalue()


def _read_rows(path: Path) -> dict[str, Copy]:
    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            rows = [row for row in csv.reader(file) if _is_row(row)]
    except (OSError, csv.Error):
        return {}
    return {name: Copy(int(size), sha256) for name, size, sha256 in rows}


def _is_row(row: list[str]) -> bool:
    if len(row) != len(COLUMNS) or not is_image_name(row[0]):
        return False
    return bool(re.fullmatch("[0-9]{1,18}", row[1]) and re.fullmatch("[0-9a-f]{64}", row[2]))
