"""A folder that is filled with images: its manifest, and the note that the next run resumes from.

Nothing is written outside it.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from vrag_kit.benchmarks.images import ImageFile, damage
from vrag_kit.errors import VragError
from vrag_kit.fetching.resumable_tar import ResumePoint
from vrag_kit.files import escapes_folder, lock_folder, write_file
from vrag_kit.log import logger, track

LARGEST_IMAGE = 200_000_000
"""Maximum bytes of an image; a larger one is refused."""
MOST_NAMED = 20
"""Maximum refused or missing images that a printed report names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchReport:
    """The result of fetching images."""

    wanted: int
    """Number of distinct images that are wanted."""
    had: int
    """Wanted images that existed before this run."""
    by_size: int = 0
    """Existing images whose size is that in manifest.csv; this run did not open them."""
    fetched: int = 0
    """Images that this run wrote."""
    refused: tuple[str, ...] = ()
    """Archive members that point outside, or cannot be the image that their name says:
    "<name>: <reason>".
    """
    missing: Mapping[str, str] = field(default_factory=dict)
    """Missing or damaged image → reason."""

    @property
    def complete(self) -> bool:
        """Whether every wanted image exists."""
        return not self.missing

    def __str__(self) -> str:
        lines = [
            f"{self.wanted:,} images wanted: {self.had:,} existed, {self.fetched:,} fetched,"
            f" {len(self.missing):,} missing"
        ]
        if self.by_size:
            lines.append(
                f"{self.by_size:,} of the existing images have the sizes in manifest.csv and were"
                " not opened; `vrag check` opens them"
            )
        missing = [f"{name}: {why}" for name, why in self.missing.items()]
        for label, named in (("refused", self.refused), ("missing", missing)):
            lines += [f"{label}: {printable(line)}" for line in named[:MOST_NAMED]]
            if len(named) > MOST_NAMED:
                lines.append(f"{label}: and {len(named) - MOST_NAMED:,} more")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeNote:
    """How far a run read an archive."""

    archive: Mapping[str, Any] = field(default_factory=dict)  # identity: texts and numbers
    wanted: str = ""  # hash of the wanted names
    point: ResumePoint = field(default_factory=ResumePoint)
    missing: Mapping[str, str] = field(default_factory=dict)  # image → reason
    ended: bool = False  # whether the run came to its end


_NOTES = TypeAdapter(ResumeNote)


class ImageFolder:
    """Images below `root`, named "<folder>/<file>", of which some are `wanted`.

    `manifest.csv` lists the images that were opened and are good (image, bytes), each as soon
    as it is complete; `.fetch-resume.json` holds the resume note until all wanted images
    exist; `missing.txt` lists the others with reasons. Use `open_image_folder`.
    """

    def __init__(self, root: Path, wanted: Iterable[str]) -> None:
        self.root = root
        self.wanted = sorted(set(wanted))
        self.images: dict[str, int] = {}
        """The wanted images that exist and can be opened, with their bytes."""
        self.note: ResumeNote | None = None
        self._manifest = root / "manifest.csv"
        self._missing = root / "missing.txt"
        self._note = root / ".fetch-resume.json"
        self._report = FetchReport(wanted=len(self.wanted), had=0)

    def scan(self) -> None:
        """Find the wanted images that exist and are good.

        The size in the manifest is enough for images of completed runs; all others are
        opened. If a listed image is missing or damaged now, the resume note is deleted,
        because the image may lie before its position.
        """
        self.note = self._load_note()
        was_interrupted = self.note is not None and not self.note.ended
        listed = _read_manifest(self._manifest)
        sizes = self._sizes(self.wanted)
        known = (
            [] if was_interrupted else [name for name in sizes if listed.get(name) == sizes[name]]
        )
        good = {*known, *self._readable(sorted(sizes.keys() - set(known)))}
        self.images = {name: size for name, size in sizes.items() if name in good}
        self._report = replace(self._report, had=len(good), by_size=len(known))
        gone = listed.keys() & set(self.wanted) - good
        with catch_write_errors(self.root):
            if gone and self.note is not None:
                logger.info(f"{self.root}: {len(gone):,} listed images are gone or damaged")
                self._note.unlink()  # first: a crash after it costs time, and no image
                self.note = None
            others = {name: size for name, size in listed.items() if name not in gone}
            _write_manifest(self._manifest, {**others, **self.images})

    def absent(self) -> list[str]:
        """Return the wanted images that do not exist yet, sorted."""
        return [name for name in self.wanted if name not in self.images]

    def add(self, name: str, data: bytes) -> None:
        """Write an image that was opened and is good, and list it.

        Raises `VragError` for a folder that cannot be written or is a symbolic link, because
        the image would be written elsewhere.
        """
        path = self.root / name
        if path.parent.is_symlink():
            raise VragError(
                f"{path.parent}: a link to {os.readlink(path.parent)}; images would be written"
                f" outside {self.root}. Remove the link, or choose another folder."
            )
        write_atomically(path, [data])
        with catch_write_errors(self._manifest), self._manifest.open("a", encoding="utf-8") as file:
            file.write(_csv([(name, len(data))]))
        self.images[name] = len(data)

    def save_note(self, note: ResumeNote) -> None:
        """Save the resume note, after the manifest has reached the disk."""
        with catch_write_errors(self._note):
            with self._manifest.open("rb") as file:
                os.fsync(file.fileno())
            write_file(self._note, _NOTES.dump_json(note))
        self.note = note

    def finish(self, missing: Mapping[str, str], refused: Sequence[str] = ()) -> FetchReport:
        """Write the sorted manifest, without files that are gone, and missing.txt; returns the
        report of the run.
        """
        listed = {**_read_manifest(self._manifest), **self.images}
        exist = dict(sorted(listed.items() & self._sizes(listed).items()))
        with catch_write_errors(self.root):
            _write_manifest(self._manifest, exist)
            if missing:
                lines = [f"{name}\t{' '.join(missing[name].split())}\n" for name in sorted(missing)]
                write_file(self._missing, "".join(lines))
                note = self.note or ResumeNote()
                self.save_note(replace(note, missing=missing, ended=True))
            else:
                half_written = self.root.glob(".*.part")  # left by a kill
                for path in (self._missing, self._note, *half_written):
                    path.unlink(missing_ok=True)
        fetched = len(self.images) - self._report.had
        return replace(self._report, fetched=fetched, refused=tuple(refused), missing=missing)

    def _sizes(self, names: Iterable[str]) -> dict[str, int]:
        """Image → bytes, of those that exist."""
        paths = {name: self.root / name for name in names}
        return {name: path.stat().st_size for name, path in paths.items() if path.exists()}

    def _readable(self, names: Sequence[str]) -> list[str]:
        """Those of the images that can be opened."""
        images = (ImageFile(self.root / name) for name in names)
        with ThreadPoolExecutor(4) as pool:
            found = track(pool.map(damage, images), "opening existing images", len(names), "images")
            return [name for name, problem in zip(names, found, strict=True) if not problem]

    def _load_note(self) -> ResumeNote | None:
        try:
            return _NOTES.validate_json(self._note.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            logger.info(f"{self._note}: damaged; the archive is read from the beginning")
            return ResumeNote()


@contextmanager
def open_image_folder(to: Path | str, wanted: Iterable[str]) -> Iterator[ImageFolder]:
    """Create and lock the folder `to`, and yield it, scanned for the `wanted` images.

    Only one process at a time may write there; others wait. Raises `VragError` if the folder
    cannot be written.
    """
    root = Path(to).expanduser()
    with ExitStack() as stack:
        with catch_write_errors(root):
            stack.enter_context(lock_folder(root, "fetching images"))
        folder = ImageFolder(root, wanted)
        folder.scan()
        yield folder


def is_image_name(name: str) -> bool:
    """Return whether `name` is a printable "<folder>/<file>" that stays in the folder."""
    parts = name.split("/")
    steps = escapes_folder(name) or not {"", "."}.isdisjoint(parts)
    return len(parts) == 2 and not steps and not re.search(r"[\x00-\x1f\x7f]", name)


def write_atomically(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file, which gets its name only when it is complete, and create its folder.

    Raises `VragError` if it cannot be written. It is not synced to disk, which would take an
    hour for 100,000 files.
    """
    part = path.with_name(f".{path.name}.part")
    with catch_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        try:
            with part.open("xb") as file:  # never through a link
                file.writelines(pieces)
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)


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


def _read_manifest(path: Path) -> dict[str, int]:
    """Image → bytes; a row that a crash truncated is left out."""
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        rows = [row[:2] for row in csv.reader(file) if len(row) >= 2]
    return {name: int(size) for name, size in rows if is_image_name(name) and size.isdecimal()}


def _write_manifest(path: Path, sizes: Mapping[str, int]) -> None:
    write_file(path, _csv([("image", "bytes"), *sizes.items()]))


def _csv(rows: Iterable[Iterable[object]]) -> str:
    content = io.StringIO(newline="")
    csv.writer(content, lineterminator="\n").writerows(rows)
    return content.getvalue()


def printable(text: str) -> str:
    """Return a text without control characters, which could move the cursor of a terminal."""
    return "".join(sign if sign.isprintable() else "�" for sign in text)
