"""Find the hub revision of a data set's files from the places where they are stored."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from vrag_kit.log import logger

_COMMIT = re.compile(r"[0-9a-f]{40}")


def hub_revision(folder: Path, files: Iterable[Path]) -> str:
    """Return the commit of `files` in `folder`, seven digits long, as the hub's cache or download
    folder records it. Different commits are joined by commas; "" if none is recorded.
    """
    cached = folder.resolve().name
    if _COMMIT.fullmatch(cached):
        return cached[:7]
    notes = folder / ".cache" / "huggingface" / "download"
    found = set()
    for path in files:
        note = notes / f"{path.relative_to(folder)}.metadata"
        if note.is_file():
            found.add(note.read_text(encoding="utf-8").splitlines()[0].strip()[:7])
    return ", ".join(sorted(found))


def log_revision(name: str, folder: Path, files: Iterable[Path], holds: str) -> None:
    """Print the revision and the contents of a data set, because revisions of one data set
    differ.
    """
    revision = hub_revision(folder, files)
    told = f"revision {revision}" if revision else "unknown revision"
    if "," in revision:
        told = f"files of several revisions ({revision})"
    logger.info(f"{name}, {told}: {holds}")
