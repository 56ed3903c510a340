"""Extract images from the archive of all images, which is streamed and never stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.fetching.filling import ImageFolder, is_image_name
from vrag_kit.fetching.inventory import Inventory, find_damaged_images, scan_folder
from vrag_kit.fetching.search import Extraction
from vrag_kit.files import lock_folder
from vrag_kit.log import logger


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchReport:
    """The result of fetching images, by `fetch_images` or `download_images`."""

    wanted: int
    """Number of distinct images that are wanted."""
    had: int
    """Wanted images that existed before this run."""
    by_size: int
    """Existing images that manifest.csv lists; this run compared their sizes and did not
    open them.
    """
    extracted: int = 0
    """Images that this run extracted from an archive."""
    fetched: int | None = None
    """Images that this run downloaded by URL; None if an archive was read."""
    refused: tuple[str, ...] = ()
    """Archive members that point outside, or cannot be the image that their name says:
    "<name>: <reason>".
    """
    repeated: int = 0
    """Members skipped because this run had already written an image of that name."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Missing image → reason."""
    damaged: Mapping[str, str] = field(default_factory=dict)
    """Existing image that cannot be opened → reason."""

    @property
    def complete(self) -> bool:
        """Whether every image exists and none is known to be damaged."""
        return not self.missing and not self.damaged

    def __str__(self) -> str:
        new = f"{self.extracted:,} extracted"
        if self.fetched is not None:
            new = f"{self.fetched:,} fetched"
        faults = f"{len(self.missing):,} missing, {len(self.damaged):,} damaged"
        lines = [f"{self.wanted:,} images wanted: {self.had:,} were there, {new}, {faults}"]
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


def fetch_images(wanted: Iterable[str], archive: Path | str, to: Path | str) -> FetchReport:
    """Extract the `wanted` images, "<folder>/<file>", from a gzip tar to `to`/<folder>/<file>.

    The archive, a file or an http(s) URL, is streamed and not stored; reading stops as soon
    as all images are found. Members are matched by the last two parts of their names.
    Existing images are not fetched again. After an interruption the next run resumes near
    the place where the last one stopped, if the server supports Range and the archive is the
    same; else it reads from the beginning, and extracted images stay. Every new image is
    opened, `to`/manifest.csv lists the good ones (image, bytes, sha256), and
    `to`/missing.txt the missing or damaged ones. Later runs compare only the sizes of images
    in the manifest. An image that was damaged after it was written is fetched again; one
    that is damaged in the archive is reported, and sought only in another archive.

    Raises `VragError` for a name of another form, an unreadable archive, and an unwritable
    folder.
    """
    names = sorted(set(wanted))
    for name in names:
        if not is_image_name(name):
            raise VragError(f"image {name!r} cannot be fetched; expected '<folder>/<file>'.")
    root = Path(to).expanduser()
    folder = ImageFolder(root)
    with lock_folder(root, "fetching images"):
        there = scan_folder(folder, names)
        if len(there.good) == len(names):
            folder.finish(there.good, {})
            sizes = ", of the sizes in manifest.csv" if there.by_size else ""
            logger.info(f"{root}: all {len(names):,} images are there{sizes}; nothing to fetch")
            return FetchReport(wanted=len(names), had=len(names), by_size=there.by_size)
        search = Extraction(folder, str(archive), names, there)
        search.run()
        return _conclude(folder, names, there, search)


def _conclude(
    folder: ImageFolder, names: Sequence[str], there: Inventory, search: Extraction
) -> FetchReport:
    """Open what is new, and write down what is good and what is not."""
    had = len(there.good) + len(search.suspect)
    new = [name for name in names if name in search.found and name not in there.good]
    damaged = _damage(folder, search, new)
    missing = {
        name: search.reasons.get(name, f"not in {search.name}")
        for name in names
        if name not in search.found
    }
    good = {name: copy for name, copy in search.found.items() if name not in damaged}
    folder.finish(good, missing | damaged)
    before = FetchReport(wanted=len(names), had=had, by_size=there.by_size)
    return replace(
        before,
        extracted=len(search.found) - had,
        refused=tuple(search.refused),
        repeated=search.repeated,
        missing=missing,
        damaged=damaged,
    )


def _damage(folder: ImageFolder, search: Extraction, names: Sequence[str]) -> dict[str, str]:
    """Those of the new images that cannot be opened → why, and what to do."""
    damaged = find_damaged_images(folder, names, "opening what was extracted")
    for name in damaged:
        if folder.matches_checksum(name, search.found[name]):
            damaged[name] += f" It is damaged in {search.name}; give another archive for it."
    return damaged


def _few(label: str, lines: Sequence[str], most: int = 20) -> list[str]:
    """The first of the lines, which cannot move the cursor, then a count."""
    plain = ["".join(sign if sign.isprintable() else "�" for sign in line) for line in lines[:most]]
    shown = [f"{label}: {line}" for line in plain]
    if len(lines) > most:
        shown.append(f"{label}: and {len(lines) - most:,} more")
    return shown
