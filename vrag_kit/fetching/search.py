"""Extract the images that a folder still lacks, in one pass over an archive."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.fetching.filling import FileRecord, ImageFolder, ResumeState
from vrag_kit.fetching.inventory import Inventory
from vrag_kit.fetching.remote import RemoteFile
from vrag_kit.fetching.resumable_tar import ResumePoint, read_members
from vrag_kit.files import escapes_folder
from vrag_kit.log import logger, progress
from vrag_kit.types import Json, JsonView

LARGEST_IMAGE = 1_000_000_000
"""Maximum bytes of an image; a larger member of the archive is refused."""
_MB = 1_000_000

Archive = io.FileIO | RemoteFile


class Extraction:
    """Reads an archive until all wanted images are `found`, or to its end.

    `suspect` images are damaged as extracted; they are skipped if they came from this
    archive. `reasons` maps refused images to the reason; `name` is the archive's name in
    messages.
    """

    def __init__(
        self, folder: ImageFolder, archive: str, wanted: Sequence[str], there: Inventory
    ) -> None:
        self.folder = folder
        self.archive = archive
        self.name = ""
        self.found: dict[str, FileRecord] = dict(there.good)
        self.suspect: Mapping[str, FileRecord] = there.suspect
        self.refused: list[str] = []
        self.reasons: dict[str, str] = {}
        self.repeated = 0
        self._open = set(wanted) - there.good.keys() - there.suspect.keys()
        self._total = len(wanted)
        self._written: set[str] = set()
        self._digest = hashlib.sha256("\n".join(wanted).encode()).hexdigest()

    def run(self) -> None:
        """Read until all images are found, or to the end; saves the resume state regularly."""
        with open_archive(self.archive) as file:
            identity = _identity(file, self.archive)
            self.name = str(file.name)
            noted = self.folder.load_resume_state()
            if self.suspect and (noted is None or noted.archive != identity):
                self._open |= self.suspect.keys()
                self.folder.drop(self.suspect)
                self.suspect = {}
            self.found |= self.suspect
            self.folder.check_folders(self._open)
            stop = self._where_to_begin(identity, noted)
            if stop.ended or not self._open:
                self.reasons = self.folder.read_missing()
                self._say_that_all_is_known()
                return
            self._read_on(file, stop)

    def _where_to_begin(self, identity: JsonView, stop: ResumeState | None) -> ResumeState:
        """Where the last run stopped, if that helps; why not, in words."""
        start = ResumeState(identity, self._digest, ResumePoint(), False)
        if stop is None:
            return start
        reason = ""
        if stop.archive != identity:
            reason = (
                "this is not the archive that the last run read (or it was replaced); the images"
                " from that one stay"
            )
        elif stop.wanted != self._digest:
            reason = "other images are wanted than last time"
        if reason:
            logger.info(f"{self.name}: reading from the beginning: {reason}")
            return start
        if not stop.ended and stop.place.offset:
            logger.info(f"{self.name}: going on where the last run stopped")
        return stop

    def _say_that_all_is_known(self) -> None:
        known = []
        if self._open:
            known.append(
                f"was read to its end before, and {len(self._open):,} images are not in it"
            )
        if self.suspect:
            known.append(f"{len(self.suspect):,} images are damaged in it")
        logger.info(
            f"{self.name}: {'; '.join(known)}; nothing to read. Give another archive for these.",
        )

    def _read_on(self, file: Archive, stop: ResumeState) -> None:
        """Read from where a run stopped, and note how far it came."""
        last = stop.place

        def note(place: ResumePoint, *, ended: bool = False) -> None:
            nonlocal last
            last = place
            self.folder.save_resume_state(ResumeState(stop.archive, self._digest, place, ended))

        try:
            self._read(file, stop.archive["size"], stop.place, note)
            note(last, ended=bool(self._open))
        except VragError as error:
            raise VragError(
                f"{error} {len(self.found):,} of {self._total:,} images are in"
                f" {self.folder.root}; run the same command again to go on."
            ) from error

    def _read(
        self, file: Archive, size: int, place: ResumePoint, note: Callable[[ResumePoint], None]
    ) -> None:
        label = f"reading {Path(self.name).name}"
        bar = progress(label, size // _MB, "MB", start=place.reached // _MB)
        with closing(read_members(file, self.name, place, note)) as members:
            for info, pieces in members:
                self._take(info, pieces)
                if not self._open:
                    bar.close()
                    logger.info(
                        f"{self.name}: all images found after {file.tell() / _MB:,.0f} of"
                        f" {size / _MB:,.0f} MB",
                    )
                    return
                bar.set_postfix_str(f"{len(self.found):,} of {self._total:,} images", refresh=False)
                # the reading steps back a little now and then
                bar.update(max(0, file.tell() // _MB - bar.n))
        bar.close()

    def _take(self, info: tarfile.TarInfo, pieces: Callable[[], Iterator[bytes]]) -> None:
        """Write a member, if it is an image that is wanted still."""
        name = self._checked(info)
        self.repeated += name in self._written
        if name in self._open:
            self.found[name] = self.folder.write_image(name, pieces())
            self._written.add(name)
            self._open.remove(name)

    def _checked(self, info: tarfile.TarInfo) -> str:
        """The image that a member would be; "" for one that is refused."""
        parts = info.name.split("/")
        name = "/".join(parts[-2:])
        reason = ""
        if escapes_folder(info.name):
            reason = "its name points outside the folder"
        elif name in self._open:
            reason = _fault(info)
        if not reason:
            return name
        self.refused.append(f"{info.name}: {reason}")
        if name in self._open:
            self.reasons[name] = f"refused in {self.name}: {reason}"
        return ""


def open_archive(archive: str) -> Archive:
    """Open an archive for reading; error messages repeat nothing that may be a password or
    key.
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


def _identity(file: Archive, archive: str) -> Json:
    """What tells this state of the archive from others: texts and numbers."""
    if isinstance(file, RemoteFile):
        return {"name": file.name, **asdict(file.identity)}
    path = Path(archive).expanduser()
    stat = path.stat()
    return {"name": str(path.resolve()), "size": stat.st_size, "modified": stat.st_mtime_ns}


def _fault(info: tarfile.TarInfo) -> str:
    """Why a member cannot be an image; "" when it can."""
    if info.issym() or info.islnk():
        return "a link"
    if info.isdir():
        return "a folder"
    if not info.isreg():
        return "no regular file"
    if info.issparse():
        return "a sparse file, which may be far larger than what the archive holds of it"
    if info.size > LARGEST_IMAGE:
        return f"{info.size:,} bytes, more than the {LARGEST_IMAGE:,} that an image may have"
    return ""
