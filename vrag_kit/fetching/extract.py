"""Extract images from a gzip tar, which is streamed and never stored."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from vrag_kit.benchmarks.images import decode
from vrag_kit.errors import VragError
from vrag_kit.fetching.archives import MB, Archive, open_archive
from vrag_kit.fetching.image_folder import (
    LARGEST_IMAGE,
    FetchReport,
    good_images,
    image_folder,
    is_image_name,
    printable,
    write_atomically,
    write_missing,
)
from vrag_kit.fetching.resumable_tar import Member, ResumePoint, read_members
from vrag_kit.files import escapes_folder, write_file
from vrag_kit.log import logger, progress

NOTE = ".fetch-resume.json"


@dataclass(slots=True, kw_only=True)
class ResumeNote:
    """How far an archive was read, and for which images."""

    archive: Mapping[str, Any]
    """What identifies the archive's version: texts and numbers."""
    wanted: set[str]
    """The images that were not found yet."""
    point: ResumePoint = field(default_factory=ResumePoint)
    reasons: dict[str, str] = field(default_factory=dict)
    """Image → why a member of its name was not taken."""
    refused: list[str] = field(default_factory=list)
    """The members that were refused, with reasons."""


_NOTES = TypeAdapter(ResumeNote)


def fetch_images(wanted: Iterable[str], archive: Path | str, to: Path | str) -> FetchReport:
    """Extract the `wanted` images, "<folder>/<file>", from a gzip tar to `to`/<folder>/<file>.

    The archive, a file or an http(s) URL, is streamed and not stored; reading stops as soon
    as all images are found. Members are matched by the last two parts of their names; the
    first of a name is taken. Every image is opened, and existing good ones are not fetched
    again. After an interruption the next run resumes near the position where the last one
    stopped, if the archive is the same and lacked no image that is there no longer; else it reads
    from the beginning. `to`/missing.txt lists, with reasons, the images that are missing or
    damaged in the archive.

    Raises `VragError` for a name of another form, an unreadable archive, and an unwritable
    folder.
    """
    names = set(wanted)
    for name in sorted(names):
        if not is_image_name(name):
            raise VragError(f"image {name!r} cannot be fetched; expected '<folder>/<file>'.")
    with image_folder(to) as root:
        good = good_images(root, names)
        missing: dict[str, str] = {}
        refused: list[str] = []
        if names != good:
            with open_archive(archive) as opened:
                note = _resume_note(root, opened, names - good)
                _extract(opened, root, note)
            absent = dict.fromkeys(note.wanted, f"not in {opened.name}") | note.reasons
            missing = {name: absent[name] for name in sorted(absent)}
            refused = note.refused
        if not missing:
            (root / NOTE).unlink(missing_ok=True)
        write_missing(root, missing)
        return FetchReport(wanted=len(names), had=len(good), refused=refused, missing=missing)


def _resume_note(root: Path, archive: Archive, absent: set[str]) -> ResumeNote:
    """The note of the last run, if it read this archive and looked for all of these images."""
    with suppress(FileNotFoundError, ValueError):
        note = _NOTES.validate_json((root / NOTE).read_bytes())
        if note.archive == archive.version and absent <= note.wanted | note.reasons.keys():
            logger.info(f"{archive.name}: going on where the last run stopped")
            note.wanted &= absent
            note.reasons = {name: why for name, why in note.reasons.items() if name in absent}
            return note
    return ResumeNote(archive=archive.version, wanted=absent)


def _extract(archive: Archive, root: Path, note: ResumeNote) -> None:
    """Read on from the note's point to the end, or until all images are found."""

    def save(point: ResumePoint) -> None:
        note.point = point
        write_file(root / NOTE, _NOTES.dump_json(note))

    total = len(note.wanted)
    members = closing(read_members(archive.file, note.point, save))
    bar = progress(
        None,
        f"reading {Path(archive.name).name}",
        archive.version["size"] // MB,
        "MB",
        start=note.point.reached // MB,
    )
    with bar, members as found:
        for member in found if total else ():
            _take(member, archive.name, root, note)
            if not note.wanted:
                return
            bar.set_postfix_str(f"{total - len(note.wanted):,} of {total:,} images", refresh=False)
            # each span of the tar begins a little before the end of the last one
            bar.update(max(0, archive.file.tell() // MB - bar.n))


def _take(member: Member, archive: str, root: Path, note: ResumeNote) -> None:
    """Write a member if it is an image that is still wanted."""
    info, read = member
    name = "/".join(info.name.split("/")[-2:])
    is_wanted = name in note.wanted
    if reason := _refusal(info, is_wanted):
        note.refused.append(printable(f"{info.name}: {reason}"))
        if is_wanted:
            note.reasons[name] = f"refused in {archive}: {reason}"
    elif is_wanted:
        note.wanted.remove(name)
        data = read()
        try:
            decode(data, f"{archive}: {name}")
        except VragError as error:
            note.reasons[name] = f"damaged in the archive; give another one for it: {error}"
        else:
            note.reasons.pop(name, None)
            write_atomically(root / name, [data])


def _refusal(info: tarfile.TarInfo, is_wanted: bool) -> str:
    """Why a member is not extracted; "" if it can be an image."""
    if escapes_folder(info.name):
        return "its name points outside the folder"
    if not is_wanted:
        return ""
    if not info.isreg() or info.issparse():
        return "no regular file, but a link, a folder, a device or a sparse file"
    if info.size > LARGEST_IMAGE:
        return f"{info.size:,} bytes, more than the {LARGEST_IMAGE:,} that an image may have"
    return ""
