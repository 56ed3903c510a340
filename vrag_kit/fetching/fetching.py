"""Fetch the images that annotations name out of the archive of all images, which is
read once and never kept.
"""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from vrag_kit.benchmarks.visual_rag import name_problem
from vrag_kit.benchmarks.visual_rag_rows import no_rows, parse_row, read_lines
from vrag_kit.errors import VragError
from vrag_kit.fetching.archive import Place, read_members
from vrag_kit.fetching.filling import Copy, ImageFolder, Stop, find_damage, look_around
from vrag_kit.fetching.remote import RemoteFile
from vrag_kit.files import one_at_a_time
from vrag_kit.progress import Progress

_MB = 1_000_000
LARGEST_IMAGE = 1_000_000_000
"""Bytes: a member of the archive that would be a larger image is refused."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a run of `fetch_visual_rag` found and did."""

    wanted: int
    """Images that the annotations name, each counted once."""
    had: int
    """Of these, there before this run."""
    by_size: int
    """Of these, listed in manifest.csv, so that this run compared their sizes and did
    not open them.
    """
    extracted: int
    """Written by this run."""
    refused: tuple[str, ...]
    """Members of the archive that point outside, or cannot be the image that they are
    named like: "<name>: <why>".
    """
    repeated: int
    """Members passed over, for this run had written an image of that name before."""
    missing: Mapping[str, str]
    """Images that are not there → why."""
    damaged: Mapping[str, str]
    """Images that are there and cannot be opened → why."""

    @property
    def complete(self) -> bool:
        """Whether every image is there and none is known to be damaged."""
        return not self.missing and not self.damaged

    def __str__(self) -> str:
        lines = [
            f"{self.wanted:,} images named by the annotations: {self.had:,} were there,"
            f" {self.extracted:,} extracted, {len(self.missing):,} missing, {len(self.damaged):,}"
            " damaged"
        ]
        if self.by_size:
            lines.append(
                f"{self.by_size:,} of those that were there have the sizes in manifest.csv, and"
                " were not opened again; `vrag check` opens them"
            )
        if self.repeated:
            lines.append(
                f"passed over: {self.repeated:,} members with the names of images that were written"
                " before"
            )
        lines += _few("refused", self.refused)
        lines += _few("missing", [f"{name}: {reason}" for name, reason in self.missing.items()])
        lines += _few("damaged", list(self.damaged.values()))
        return "\n".join(lines)


def fetch_visual_rag(annotations: Path | str, archive: Path | str, to: Path | str) -> Fetched:
    """Extract the images that Visual-RAG annotations name from a gzip tar, a file or an
    http(s) URL, to `to`/<species folder>/<file>.

    The archive is streamed and not kept; reading stops as soon as all images are there.
    Members are known by the last two parts of their names. Images that are in `to`
    already are not fetched again. After an interruption the next run goes on near the
    place where the last one stopped, where the server sends parts of files (Range) and
    the archive is the same; else it reads from the beginning, and what was extracted
    stays. Every image that is new is opened, `to`/manifest.csv lists the good ones
    (image, bytes, sha256), and `to`/missing.txt what is missing or damaged. Of those
    that the manifest lists, later runs compare the size alone. An image that was
    damaged after it was written is fetched again; one that is damaged in the archive is
    reported, and sought again in another archive only.

    Raises `VragError` for annotations that cannot be used, an archive that cannot be
    read, and a folder that cannot be written.
    """
    wanted, root = _wanted(Path(annotations), Path(to)), Path(to).expanduser()
    folder = ImageFolder(root)
    with one_at_a_time(root, "fetching images"):
        good, suspect, by_size = look_around(folder, wanted)
        had = len(good)
        if had == len(wanted):
            folder.finish(good, {})
            print(
                f"{root}: all {had:,} images are"
                f" there{', of the sizes in manifest.csv' if by_size else ''}; nothing to fetch",
                flush=True,
            )
            return Fetched(len(wanted), had, by_size, 0, (), 0, {}, {})
        search = _Search(folder, str(archive), wanted, good, suspect)
        search.run()
        had += len(search.suspect)
        damaged = find_damage(
            folder,
            [name for name in wanted if name in search.found and name not in good],
            "opening what was extracted",
        )
        for name in damaged:
            damaged[name] += (
                f" It is damaged in {search.name}; give another archive for it."
                if folder.unchanged(name, search.found[name])
                else ""
            )
        missing = {
            name: search.reasons.get(name, f"not in {search.name}")
            for name in wanted
            if name not in search.found
        }
        folder.finish(
            {name: copy for name, copy in search.found.items() if name not in damaged},
            missing | damaged,
        )
        return Fetched(
            len(wanted),
            had,
            by_size,
            len(search.found) - had,
            tuple(search.refused),
            search.repeated,
            missing,
            damaged,
        )


class _Search:
    """One reading of an archive for the images that are not yet `found`; `suspect`
    ones, damaged as they came, are left alone if it was this archive that they came
    from.
    """

    def __init__(
        self,
        folder: ImageFolder,
        archive: str,
        wanted: Sequence[str],
        found: Mapping[str, Copy],
        suspect: Mapping[str, Copy],
    ) -> None:
        self.folder, self.archive, self.found, self.suspect = (
            folder,
            archive,
            dict(found),
            dict(suspect),
        )
        self.open = {name for name in wanted if name not in found and name not in suspect}
        self.total, self.refused, self.reasons = len(wanted), list[str](), dict[str, str]()
        self.written, self.repeated = set[str](), 0
        self.digest = hashlib.sha256("\n".join(wanted).encode()).hexdigest()
        self.name = ""

    def run(self) -> None:
        """Read until all images are found, or to the end; notes the place now and then."""
        with _open(self.archive) as file:
            identity = _identity(file, self.archive)
            self.name = str(file.name)
            noted = self.folder.stop()
            if self.suspect and (noted is None or noted.archive != identity):
                self.open |= self.suspect.keys()
                self.folder.forget(self.suspect)
                self.suspect = {}
            self.found |= self.suspect
            self.folder.check_folders(self.open)
            stop = self._where_to_begin(identity, noted)
            if stop.ended or not self.open:
                self.reasons = self.folder.reasons()
                known = [
                    f"was read to its end before, and {len(self.open):,} images are not in it"
                ] * bool(self.open)
                known += [f"{len(self.suspect):,} images are damaged in it"] * bool(self.suspect)
                print(
                    f"{self.name}: {'; '.join(known)}; nothing to read. Give another archive for"
                    " these.",
                    flush=True,
                )
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
                raise VragError(
                    f"{error} {len(self.found):,} of {self.total:,} images are in"
                    f" {self.folder.root}; run the same command again to go on."
                ) from error

    def _where_to_begin(self, identity: Mapping[str, Any], stop: Stop | None) -> Stop:
        """Where the last run stopped, if that helps; why not, in words."""
        start = Stop(identity, self.digest, Place(), False)
        if stop is None:
            return start
        reason = (
            "this is not the archive that the last run read (or it was replaced); the images from"
            " that one stay"
            if stop.archive != identity
            else "other images are wanted than last time"
            if stop.wanted != self.digest
            else ""
        )
        if reason:
            print(f"{self.name}: reading from the beginning: {reason}", flush=True)
            return start
        if not stop.ended and stop.place.offset:
            print(f"{self.name}: going on where the last run stopped", flush=True)
        return stop

    def _read(
        self, file: BinaryIO | RemoteFile, size: int, place: Place, note: Callable[[Place], None]
    ) -> None:
        progress = Progress(
            f"reading {Path(self.name).name}", size // _MB, "MB", start=place.reached // _MB
        )
        furthest = 0
        with closing(read_members(file, self.name, place, note)) as members:
            for info, pieces in members:
                name = self._checked(info)
                self.repeated += name in self.written
                if name in self.open:
                    self.found[name] = self.folder.put(name, pieces())
                    self.written.add(name)
                    self.open.remove(name)
                    if not self.open:
                        print(
                            f"{self.name}: all images found after {file.tell() / _MB:,.0f} of"
                            f" {size / _MB:,.0f} MB",
                            flush=True,
                        )
                        return
                furthest = max(furthest, file.tell() // _MB)
                progress.reached(furthest, f"{len(self.found):,} of {self.total:,} images found")
        progress.end()

    def _checked(self, info: tarfile.TarInfo) -> str:
        """The image that a member would be; "" for one that is refused."""
        parts = info.name.split("/")
        name = "/".join(parts[-2:])
        outside = info.name.startswith("/") or ".." in parts
        reason = (
            "its name points outside the folder"
            if outside
            else _fault(info)
            if name in self.open
            else ""
        )
        if not reason:
            return name
        self.refused.append(f"{info.name}: {reason}")
        if name in self.open:
            self.reasons[name] = f"refused in {self.name}: {reason}"
        return ""


def _wanted(annotations: Path, root: Path) -> list[str]:
    """The images that the annotations name, sorted."""
    names: dict[str, None] = {}
    for where, line in read_lines(annotations):
        for name in parse_row(line, where)["images"]:
            if problem := name_problem(name, root):
                raise VragError(f"{where}: {problem}")
            if (
                len(PurePosixPath(name).parts) != 2
                or str(PurePosixPath(name)) != name
                or re.search(r"[\x00-\x1f\x7f]", name)
            ):
                raise VragError(f"{where}: image {name!r}; expected '<species folder>/<file>'.")
            names[name] = None
    if not names:
        raise VragError(
            f"{annotations}: no queries found, expected one JSON object a line. Check that this is"
            " the annotation file."
        )
    return sorted(names)


def _fault(info: tarfile.TarInfo) -> str:
    """Why a member cannot be an image; "" when it can."""
    if not info.isreg():
        return (
            "a link"
            if info.issym() or info.islnk()
            else "a folder"
            if info.isdir()
            else "no regular file"
        )
    if info.issparse():
        return "a sparse file, which may be far larger than what the archive holds of it"
    return (
        f"{info.size:,} bytes, more than the {LARGEST_IMAGE:,} that an image may have"
        if info.size > LARGEST_IMAGE
        else ""
    )


def _open(archive: str) -> Any:
    """The archive, to be read; nothing that may be a password or key is repeated in an
    error.
    """
    if re.match(r"https?://", archive, re.IGNORECASE):
        return RemoteFile(archive)
    if scheme := re.match(r"\s*([a-z][a-z0-9+.-]+:)/", archive, re.IGNORECASE):
        raise VragError(
            f"archive '{scheme[1]}…': expected a file, or a URL that begins with http:// or"
            " https://."
        )
    try:
        return io.FileIO(str(Path(archive).expanduser()))
    except OSError as error:
        shown = re.sub(r"^/*[^/:]*:[^/]*@", "", archive.partition("?")[0])
        raise VragError(
            f"archive {shown}: cannot be read ({error.strerror}). Give the path of the .tar.gz"
            " file, or its URL."
        ) from error


def _identity(file: BinaryIO | RemoteFile, archive: str) -> dict[str, Any]:
    """What tells this state of the archive from others."""
    if isinstance(file, RemoteFile):
        return {"name": file.name, **asdict(file.identity)}
    stat = Path(archive).expanduser().stat()
    return {
        "name": str(Path(archive).expanduser().resolve()),
        "size": stat.st_size,
        "modified": stat.st_mtime_ns,
    }


def _few(label: str, lines: Sequence[str], most: int = 20) -> list[str]:
    """The first of the lines, which cannot move the cursor, then a count."""
    plain = ["".join(sign if sign.isprintable() else "�" for sign in line) for line in lines[:most]]
    return [
        *(f"{label}: {line}" for line in plain),
        *([f"{label}: and {len(lines) - most:,} more"] if len(lines) > most else []),
    ]
