"""Fetch the images that annotations name out of the archive of all images, which is read once and never kept."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from vrag_kit.benchmarks.archive import Place, read_members
from vrag_kit.benchmarks.filling import Copy, ImageFolder, Stop
from vrag_kit.benchmarks.images import ImageFile, find_damaged
from vrag_kit.benchmarks.remote import RemoteFile
from vrag_kit.benchmarks.visual_rag import name_problem, parse_row, read_lines
from vrag_kit.errors import VragError
from vrag_kit.files import one_at_a_time
from vrag_kit.progress import track

_MB = 1_000_000
_AT_ONCE = 256  # pictures opened between two looks at the clock


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a run of `fetch_visual_rag` found and did."""

    wanted: int
    """Images that the annotations name, each counted once."""
    had: int
    """Of these, there before this run."""
    extracted: int
    """Written by this run."""
    refused: tuple[str, ...]
    """Members of the archive that point outside, or are no regular file where an image should be."""
    missing: Mapping[str, str]
    """Images that are not there → why."""
    damaged: Mapping[str, str]
    """Images that are there and cannot be opened → why."""

    @property
    def complete(self) -> bool:
        """Whether every image is there and opens."""
        return not self.missing and not self.damaged

    def __str__(self) -> str:
        lines = [f"{self.wanted:,} images named by the annotations: {self.had:,} were there, {self.extracted:,} extracted, "
                 f"{len(self.missing):,} missing, {len(self.damaged):,} damaged"]
        lines += _few("refused, as it could lead outside the folder", self.refused)
        lines += _few("missing", [f"{name}: {reason}" for name, reason in self.missing.items()])
        lines += _few("damaged", list(self.damaged.values()))
        return "\n".join(lines)


def fetch_visual_rag(annotations: Path | str, archive: Path | str, to: Path | str) -> Fetched:
    """Extract the images that Visual-RAG annotations name from a gzip tar, a file or an http(s) URL, to `to`/<species folder>/<file>.

    The archive is streamed and not kept; reading stops as soon as all images are there. Members are known by the last two parts of
    their names. Images that are in `to` already are not fetched again. After an interruption the next run goes on near the place where the
    last one stopped, where the server sends parts of files (Range) and the archive is the same; else it reads from the beginning, and what was extracted stays.
    At the end every image is opened, `to`/manifest.csv lists the good ones (image, bytes, sha256), and `to`/missing.txt what is missing or damaged.

    Raises `VragError` for annotations that cannot be used, an archive that cannot be read, and a folder that cannot be written.
    """
    wanted, root = _wanted(Path(annotations), Path(to)), Path(to).expanduser()
    folder = ImageFolder(root)
    with one_at_a_time(root, "fetching images"):
        listed, journal = folder.listed(), folder.journal()
        good = {name: listed[name] for name in wanted if name in listed and folder.holds(name, listed[name])}
        held = {name: journal[name] for name in wanted if name not in good and name in journal and folder.holds(name, journal[name])}
        good |= _found_by_hand(folder, [name for name in wanted if name not in good and name not in held])
        had = len(good) + len(held)
        if len(good) == len(wanted):
            folder.finish(good | {name: copy for name, copy in listed.items() if name not in good and folder.holds(name, copy)}, {})
            print(f"{root}: all {len(wanted):,} images are there; nothing to fetch", flush=True)
            return Fetched(len(wanted), had, 0, (), {}, {})
        search = _Search(folder, str(archive), wanted, good | held, lost=any(name in listed or name in journal for name in wanted if name not in good and name not in held))
        search.run()
        damaged = _damaged(folder, [name for name in wanted if name in search.found and name not in good], "opening what was extracted")
        good |= {name: copy for name, copy in search.found.items() if name not in damaged}
        missing = dict.fromkeys((name for name in wanted if name not in search.found), f"not in {search.name}")
        folder.finish({**{name: copy for name, copy in listed.items() if folder.holds(name, copy)}, **good}, missing | damaged)
        return Fetched(len(wanted), had, len(search.found) - had, tuple(search.refused), missing, damaged)


class _Search:
    """One reading of an archive for images."""

    def __init__(self, folder: ImageFolder, archive: str, wanted: Sequence[str], found: Mapping[str, Copy], *, lost: bool) -> None:
        self.folder, self.archive, self.found, self.lost = folder, archive, dict(found), lost
        self.open = {name for name in wanted if name not in found}
        self.total, self.refused = len(wanted), list[str]()
        self.digest = hashlib.sha256("\n".join(wanted).encode()).hexdigest()
        self.name = archive

    def run(self) -> None:
        """Read until all images are found, or to the end; notes the place now and then."""
        if not self.open:
            return
        self.folder.check_folders(self.open)
        with _open(self.archive) as file:
            identity = _identity(file, self.archive)
            self.name = getattr(file, "name", self.archive)
            stop = self._last_stop(identity)
            if stop.ended:
                print(f"{self.name}: was read to its end before, and {len(self.open):,} images are not in it; nothing to read. Give another archive for these.", flush=True)
                return
            last = stop.place

            def note(place: Place, *, ended: bool = False) -> None:
                nonlocal last
                last = place
                self.folder.stop_at(Stop(identity, self.digest, place, ended))

            try:
                self._read(file, identity["size"], stop.place, note)
                note(last, ended=bool(self.open))
            except VragError as error:
                raise VragError(f"{error} {len(self.found):,} of {self.total:,} images are in {self.folder.root}; run the same command again to go on.") from error

    def _last_stop(self, identity: Mapping[str, Any]) -> Stop:
        """Where to begin, and why, in words."""
        start, stop = Stop(identity, self.digest, Place(), False), self.folder.stop()
        if stop is None:
            return start
        reason = ("this is not the archive that the last run read (or it was replaced); the images from that one stay" if stop.archive != identity else
                  "other images are wanted than last time" if stop.wanted != self.digest else "images of the last run are no longer there" if self.lost else "")
        if reason:
            print(f"{self.name}: reading from the beginning: {reason}", flush=True)
            return start
        if not stop.ended and stop.place.offset:
            print(f"{self.name}: going on where the last run stopped", flush=True)
        return stop

    def _read(self, file: BinaryIO | RemoteFile, size: int, place: Place, note: Callable[[Place], None]) -> None:
        reached = start = place.reached // _MB

        def gained(_: object) -> int:
            nonlocal reached
            before, reached = reached, max(reached, file.tell() // _MB)
            return reached - before

        def told() -> str:
            return f"{len(self.found):,} of {self.total:,} images found"

        with closing(read_members(file, self.name, place, note)) as members:
            for info, pieces in track(members, f"reading {Path(self.name).name}", size // _MB, "MB", size=gained, start=start, note=told):
                name = self._checked(info)
                if name in self.open:
                    self.found[name] = self.folder.put(name, pieces())
                    self.open.remove(name)
                    if not self.open:
                        print(f"{self.name}: all images found after {file.tell() / _MB:,.0f} of {size / _MB:,.0f} MB", flush=True)
                        return

    def _checked(self, info: tarfile.TarInfo) -> str:
        """The image that a member would be; "" for one that is refused."""
        parts = info.name.split("/")
        name = "/".join(parts[-2:])
        if info.name.startswith("/") or ".." in parts or (name in self.open and not info.isreg()):
            self.refused.append(info.name)
            return ""
        return name


FETCHERS = {"visual-rag": fetch_visual_rag}
"""Data sets that `vrag fetch` knows → what fetches them."""


def _wanted(annotations: Path, root: Path) -> list[str]:
    """The images that the annotations name, sorted."""
    names: dict[str, None] = {}
    for where, line in read_lines(annotations):
        for name in parse_row(line, where)["images"]:
            if problem := name_problem(name, root):
                raise VragError(f"{where}: {problem}")
            if len(PurePosixPath(name).parts) != 2 or str(PurePosixPath(name)) != name or re.search(r"[\x00-\x1f\x7f]", name):
                raise VragError(f"{where}: image {name!r}; expected '<species folder>/<file>'.")
            names[name] = None
    if not names:
        raise VragError(f"{annotations}: no queries found, expected one JSON object a line. Check that this is the annotation file.")
    return sorted(names)


def _found_by_hand(folder: ImageFolder, names: Iterable[str]) -> dict[str, Copy]:
    """Those of the images that lie there though nothing was noted of them, and open."""
    there = [name for name in names if (folder.root / name).is_file()]
    damaged = _damaged(folder, there, "opening images that were there")
    copies = {name: folder.look(name) for name in there if name not in damaged}
    if copies:
        folder.note(copies)
    return copies


def _damaged(folder: ImageFolder, names: Sequence[str], label: str) -> dict[str, str]:
    """Those of the images that cannot be opened → why."""
    found: dict[str, str] = {}
    for start in track(range(0, len(names), _AT_ONCE), label, len(names), "images", size=_AT_ONCE) if names else ():
        batch = names[start : start + _AT_ONCE]
        if find_damaged(ImageFile(folder.root / name) for name in batch):
            found |= {name: words for name in batch for words in find_damaged([ImageFile(folder.root / name)])}
    return found


def _open(archive: str) -> Any:
    if re.match(r"https?://", archive, re.IGNORECASE):
        return RemoteFile(archive)
    if "://" in archive:
        raise VragError(f"archive {archive.partition('?')[0]!r}: expected a file, or a URL that begins with http:// or https://.")
    try:
        return io.FileIO(Path(archive).expanduser())
    except OSError as error:
        raise VragError(f"archive {archive}: cannot be read ({error.strerror}). Give the path of the .tar.gz file, or its URL.") from error


def _identity(file: BinaryIO | RemoteFile, archive: str) -> dict[str, Any]:
    """What tells this state of the archive from others."""
    if isinstance(file, RemoteFile):
        return {"name": file.name, **asdict(file.identity)}
    stat = Path(archive).expanduser().stat()
    return {"name": str(Path(archive).expanduser().resolve()), "size": stat.st_size, "modified": stat.st_mtime_ns}


def _few(label: str, lines: Sequence[str], most: int = 20) -> list[str]:
    """The first of the lines, then a count."""
    return [*(f"{label}: {line}" for line in lines[:most]), *([f"{label}: and {len(lines) - most:,} more"] if len(lines) > most else [])]
