"""What a folder of images holds before it is filled: what is good, damaged, or gone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vrag_kit.benchmarks.images import ImageFile, find_damaged
from vrag_kit.fetching.filling import Copy, ImageFolder
from vrag_kit.progress import track

_AT_ONCE = 256  # pictures opened between two looks at the clock


@dataclass(frozen=True, slots=True)
class Inventory:
    """Which of the wanted images are there."""

    good: dict[str, Copy]
    """They are there and can be opened."""
    by_size: int
    """Of these, known by their sizes in the manifest, and not opened."""
    suspect: dict[str, Copy]
    """They are damaged, and yet just as an archive gave them."""


def look_around(folder: ImageFolder, wanted: Sequence[str]) -> Inventory:
    """What `folder` holds of the `wanted`; what was noted of images that are gone or
    damaged since is forgotten.
    """
    listed = folder.listed()
    journal = folder.journal()
    good = {
        name: listed[name] for name in wanted if name in listed and folder.holds(name, listed[name])
    }
    by_size = len(good)
    held = {}
    for name in wanted:
        if name not in good and name in journal and folder.holds(name, journal[name]):
            held[name] = journal[name]
    damaged = find_damage(folder, list(held), "opening images of the last run")
    good |= {name: copy for name, copy in held.items() if name not in damaged}
    suspect = {name: held[name] for name in damaged if folder.unchanged(name, held[name])}
    unknown = [name for name in wanted if name not in good and name not in held]
    good |= _found_by_hand(folder, unknown)

    noted = listed.keys() | journal.keys()
    gone = noted.intersection(wanted) - good.keys() - suspect.keys()
    if gone:
        print(
            f"{folder.root}: reading from the beginning: {len(gone):,} images of earlier runs are"
            " gone or damaged",
            flush=True,
        )
        folder.forget(gone)
    return Inventory(good, by_size, suspect)


def find_damage(folder: ImageFolder, names: Sequence[str], label: str) -> dict[str, str]:
    """Those of the images that cannot be opened → why."""
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


def _found_by_hand(folder: ImageFolder, names: Iterable[str]) -> dict[str, Copy]:
    """Those of the images that lie there though nothing was noted of them, and open."""
    there = [name for name in names if (folder.root / name).is_file()]
    damaged = find_damage(folder, there, "opening images that were there")
    copies = {name: folder.look(name) for name in there if name not in damaged}
    if copies:
        folder.note(copies)
    return copies
