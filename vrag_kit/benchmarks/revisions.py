"""Which revision of a data set of the hub files are, as far as their places tell."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_COMMIT = re.compile(r"[0-9a-f]{40}")


def revision_of(folder: Path, files: Iterable[Path]) -> str:
    """The commit of these files of `folder`, seven digits of it, as the hub's cache or
    its download into a folder note it; several, with commas, where they differ; "" where
    nothing is noted.
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


def say_revision(name: str, folder: Path, files: Iterable[Path], holds: str) -> None:
    """Print of which revision a data set is, and what it holds: revisions of one name
    differ.
    """
    revision = revision_of(folder, files)
    told = f"revision {revision}" if revision else "unknown revision"
    if "," in revision:
        told = f"files of several revisions ({revision})"
    print(f"{name}, {told}: {holds}", flush=True)
