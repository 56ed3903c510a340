"""A folder that is filled with images, each of which appears only when it is complete."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from vrag_kit.benchmarks.images import ImageFile, damage
from vrag_kit.errors import VragError
from vrag_kit.files import escapes_folder, lock_folder, write_file
from vrag_kit.log import progress

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
    refused: Sequence[str] = ()
    """Archive members that point outside, or cannot be the image that their name says:
    "<name>: <reason>".
    """
    missing: Mapping[str, str] = field(default_factory=dict)
    """Missing or damaged image → reason."""

    @property
    def fetched(self) -> int:
        """Number of images that this run wrote."""
        return self.wanted - self.had - len(self.missing)

    def __str__(self) -> str:
        lines = [
            f"{self.wanted:,} images wanted: {self.had:,} existed, {self.fetched:,} fetched,"
            f" {len(self.missing):,} missing"
        ]
        missing = [f"{name}: {why}" for name, why in self.missing.items()]
        for label, named in (("refused", self.refused), ("missing", missing)):
            lines += [f"{label}: {printable(line)}" for line in named[:MOST_NAMED]]
            if len(named) > MOST_NAMED:
                lines.append(f"{label}: and {len(named) - MOST_NAMED:,} more")
        return "\n".join(lines)


@contextmanager
def image_folder(to: Path | str) -> Iterator[Path]:
    """Create and lock a folder; only one process at a time may write there, and others wait.

    Raises `VragError` for an `OSError` within, such as that of a full disk.
    """
    root = Path(to).expanduser()
    try:
        with lock_folder(root):
            yield root
    except OSError as error:
        raise VragError(
            f"{error.filename or root}: cannot be written ({error.strerror or error}). Make room"
            " there, or choose a folder that you may write to (--to)."
        ) from error


def good_images(root: Path, wanted: Collection[str]) -> set[str]:
    """Return the wanted images, "<folder>/<file>", that exist in `root`; each is opened, and a
    damaged one counts as missing.
    """
    names = sorted(name for name in wanted if (root / name).is_file())
    images = (ImageFile(root / name) for name in names)
    with ThreadPoolExecutor(4) as pool:
        faults = progress(pool.map(damage, images), "opening existing images", len(names), "images")
        return {name for name, fault in zip(names, faults, strict=True) if not fault}


def write_missing(root: Path, missing: Mapping[str, str]) -> None:
    """Write `root`/missing.txt, a line with name and reason for each image; none without any."""
    path = root / "missing.txt"
    if missing:
        lines = [f"{name}\t{' '.join(missing[name].split())}\n" for name in sorted(missing)]
        write_file(path, "".join(lines))
    else:
        path.unlink(missing_ok=True)


def is_image_name(name: str) -> bool:
    """Return whether `name` is a printable "<folder>/<file>" that stays in the folder."""
    parts = name.split("/")
    steps = escapes_folder(name) or not {"", "."}.isdisjoint(parts)
    return len(parts) == 2 and not steps and not re.search(r"[\x00-\x1f\x7f]", name)


def write_atomically(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file, which gets its name only when it is complete, and create its folder.

    It is not synced to disk, which would take an hour for 100,000 files.
    """
    part = path.with_name(f".{path.name}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    part.unlink(missing_ok=True)
    try:
        with part.open("xb") as file:  # never through a link
            file.writelines(pieces)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def printable(text: str) -> str:
    """Return a text without control characters, which could move the cursor of a terminal."""
    return "".join(sign if sign.isprintable() else "�" for sign in text)
