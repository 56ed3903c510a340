"""Inventory of an image folder before it is filled: good, damaged and missing images."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vrag_kit.benchmarks.images import ImageFile, find_damaged
from vrag_kit.fetching.filling import FileRecord, ImageFolder
from vrag_kit.log import logger, track

_AT_ONCE = 256  # pictures opened between two looks at the clock


@dataclass(frozen=True, slots=True)
class Inventory:
    """The wanted images that exist in a folder."""

    good: dict[str, FileRecord]
    """Images that exist and can be opened."""
    by_size: int
    """Good images that were accepted by their size in the manifest, unopened."""
    suspect: dict[str, FileRecord]
    """Damaged images whose bytes are still those from the archive."""


def scan_folder(folder: ImageFolder, wanted: Sequence[str]) -> Inventory:
    """Find the `wanted` images in `folder`, and drop the records of images that are missing or
    damaged now.
    """
    listed = folder.read_manifest()
    journal = folder.read_journal()
    good = {
        name: listed[name]
        for name in wanted
        if name in listed and folder.has_file(name, listed[name])
    }
    by_size = len(good)
    held = {}
    for name in wanted:
        if name not in good and name in journal and folder.has_file(name, journal[name]):
            held[name] = journal[name]
    damaged = find_damaged_images(folder, list(held), "opening images of the last run")
    good |= {name: copy for name, copy in held.items() if name not in damaged}
    suspect = {name: held[name] for name in damaged if folder.matches_checksum(name, held[name])}
    unknown = [name for name in wanted if name not in good and name not in held]
    good |= _found_by_hand(folder, unknown)

    noted = listed.keys() | journal.keys()
    gone = noted.intersection(wanted) - good.keys() - suspect.keys()
    if gone:
        logger.info(
            f"{folder.root}: reading from the beginning: {len(gone):,} images of earlier runs are"
            " gone or damaged",
        )
        folder.drop(gone)
    return Inventory(good, by_size, suspect)


def find_damaged_images(folder: ImageFolder, names: Sequence[str], label: str) -> dict[str, str]:
    """Return the images that cannot be opened, with the reason."""
    found: dict[str, str] = {}
    if not names:
        return found
    starts = range(0, len(names), _AT_ONCE)
    for start in track(starts, label, len(names), "images", size=_AT_ONCE):
        batch = names[start : start + _AT_ONCE]
        if not find_damaged(ImageFile(folder.root / name) for name in batch):
            continue
        for name in batch:
            for words in find_damaged([ImageFile(folder.root / name)]):
                found[name] = words
    return found


def _found_by_hand(folder: ImageFolder, names: Iterable[str]) -> dict[str, FileRecord]:
    """Those of the images that lie there though nothing was noted of them, and open."""
    there = [name for name in names if (folder.root / name).is_file()]
    damaged = find_damaged_images(folder, there, "opening images that were there")
    copies = {name: folder.checksum(name) for name in there if name not in damaged}
    if copies:
        folder.append_to_journal(copies)
    return copies
