"""Extract images from a gzip tar, which is streamed and never stored."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from vrag_kit.benchmarks.images import decode
from vrag_kit.errors import VragError
from vrag_kit.fetching.archives import MB, Archive, open_archive
from vrag_kit.fetching.image_folder import (
    LARGEST_IMAGE,
    FetchReport,
    ImageFolder,
    ResumeNote,
    is_image_name,
    open_image_folder,
)
from vrag_kit.fetching.resumable_tar import ResumePoint, read_members
from vrag_kit.files import escapes_folder
from vrag_kit.log import logger, progress


def fetch_images(wanted: Iterable[str], archive: Path | str, to: Path | str) -> FetchReport:
    """Extract the `wanted` images, "<folder>/<file>", from a gzip tar to `to`/<folder>/<file>.

    The archive, a file or an http(s) URL, is streamed and not stored; reading stops as soon
    as all images are found. Members are matched by the last two parts of their names; the
    first of a name is taken. Existing images are not fetched again. After an interruption
    the next run resumes near the position where the last one stopped, if the archive and the
    wanted images are the same; else it reads from the beginning, and extracted images stay.
    Every new image is opened. `to`/manifest.csv lists the good ones (image, bytes), and
    `to`/missing.txt, with reasons, those that are missing or damaged in the archive, which is
    not read again for them.

    Raises `VragError` for a name of another form, an unreadable archive, and an unwritable
    folder.
    """
    names = set(wanted)
    for name in sorted(names):
        if not is_image_name(name):
            raise VragError(f"image {name!r} cannot be fetched; expected '<folder>/<file>'.")
    with open_image_folder(to, names) as folder:
        if not folder.absent():
            return folder.finish({})
        with open_archive(archive) as opened:
            extraction = _Extraction(folder, opened)
            extraction.run()
            return folder.finish(extraction.missing(), extraction.refused)


class _Extraction:
    """One pass over an archive for the images that a folder lacks."""

    def __init__(self, folder: ImageFolder, archive: Archive) -> None:
        self.refused: list[str] = []
        self._folder = folder
        self._archive = archive
        self._note = self._resume_note()
        self._reasons = dict(self._note.missing)
        self._open = set(folder.absent())

    def run(self) -> None:
        """Read until all images are found, or to the end; saves the resume note regularly."""
        name = self._archive.name
        if self._note.ended:
            logger.info(f"{name}: was read before, for the same images; give another archive")
            return
        if self._note.point.offset:
            logger.info(f"{name}: going on where the last run stopped")
        self._save(self._note.point)
        try:
            self._read()
        except VragError as error:
            raise VragError(
                f"{error} {len(self._folder.images):,} of {len(self._folder.wanted):,} images are"
                f" in {self._folder.root}; run the same command again to go on."
            ) from error

    def missing(self) -> dict[str, str]:
        """Return the images that were not found, with reasons."""
        absent = f"not in {self._archive.name}"
        return {name: self._reasons.get(name, absent) for name in self._folder.absent()}

    def _resume_note(self) -> ResumeNote:
        """The note of the last run if it is about the same archive and images, else a new one."""
        wanted = hashlib.sha256("\n".join(self._folder.wanted).encode()).hexdigest()
        start = ResumeNote(archive=self._archive.version, wanted=wanted)
        last = self._folder.note
        if last is None or (last.archive == start.archive and last.wanted == wanted):
            return last or start
        logger.info(
            f"{self._archive.name}: reading from the beginning: the last run read another archive,"
            " or another version of it, or wanted other images"
        )
        return start

    def _save(self, point: ResumePoint) -> None:
        self._folder.save_note(replace(self._note, point=point, missing=self._reasons))

    def _read(self) -> None:
        archive = self._archive
        point = self._note.point
        label = f"reading {Path(archive.name).name}"
        total = len(self._folder.wanted)
        members = closing(read_members(archive.file, archive.name, point, self._save))
        bar = progress(label, archive.version["size"] // MB, "MB", start=point.reached // MB)
        with bar, members as pairs:
            for info, chunks in pairs:
                self._take(info, chunks)
                if not self._open:
                    return
                done = len(self._folder.images)
                bar.set_postfix_str(f"{done:,} of {total:,} images", refresh=False)
                # each span of the tar begins a little before the end of the last one
                bar.update(max(0, archive.file.tell() // MB - bar.n))

    def _take(self, info: tarfile.TarInfo, chunks: Callable[[], Iterator[bytes]]) -> None:
        """Write a member if it is an image that is still wanted."""
        name = "/".join(info.name.split("/")[-2:])
        is_wanted = name in self._open
        if reason := _refusal(info, is_wanted):
            self.refused.append(f"{info.name}: {reason}")
            if is_wanted:
                self._reasons[name] = f"refused in {self._archive.name}: {reason}"
        if reason or not is_wanted:
            return
        data = b"".join(chunks())
        try:
            decode(data, f"{self._archive.name}: {name}")
        except VragError as error:
            self._reasons[name] = f"damaged in the archive; give another one for it: {error}"
        else:
            self._folder.add(name, data)
        self._open.remove(name)


def _refusal(info: tarfile.TarInfo, is_wanted: bool) -> str:
    """Why a member is not extracted; "" if it can be an image."""
    if escapes_folder(info.name):
        return "its name points outside the folder"
    if not is_wanted:
        return ""
    if not info.isreg():
        return "no regular file, but a link, a folder or a device"
    if info.issparse():
        return "a sparse file, which may be far larger than what the archive holds of it"
    if info.size > LARGEST_IMAGE:
        return f"{info.size:,} bytes, more than the {LARGEST_IMAGE:,} that an image may have"
    return ""
