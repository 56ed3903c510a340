"""Images out of the archive of all images, which is read once and never kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.fetching.filling import ImageFolder, is_image_name
from vrag_kit.fetching.inventory import Inventory, find_damage, look_around
from vrag_kit.fetching.search import Search
from vrag_kit.files import one_at_a_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What a run of `fetch_images` found and did."""

    wanted: int
    """Images that are wanted, each counted once."""
    had: int
    """Of these, there before this run."""
    by_size: int
    """Of these, listed in manifest.csv, so that this run compared their sizes and did
    not open them.
    """
    extracted: int = 0
    """Written by this run, out of an archive."""
    fetched: int | None = None
    """Written by this run, each from its own address; None where an archive was read."""
    refused: tuple[str, ...] = ()
    """Members of the archive that point outside, or cannot be the image that they are
    named like: "<name>: <why>".
    """
    repeated: int = 0
    """Members passed over, for this run had written an image of that name before."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Images that are not there → why."""
    damaged: Mapping[str, str] = field(default_factory=dict)
    """Images that are there and cannot be opened → why."""

    @property
    def complete(self) -> bool:
        """Whether every image is there and none is known to be damaged."""
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


def fetch_images(wanted: Iterable[str], archive: Path | str, to: Path | str) -> Fetched:
    """Extract the `wanted` images, "<folder>/<file>", from a gzip tar, a file or an
    http(s) URL, to `to`/<folder>/<file>.

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

    Raises `VragError` for a name of another form, an archive that cannot be read, and a
    folder that cannot be written.
    """
    names = sorted(set(wanted))
    for name in names:
        if not is_image_name(name):
            raise VragError(f"image {name!r} cannot be fetched; expected '<folder>/<file>'.")
    root = Path(to).expanduser()
    folder = ImageFolder(root)
    with one_at_a_time(root, "fetching images"):
        there = look_around(folder, names)
        if len(there.good) == len(names):
            folder.finish(there.good, {})
            sizes = ", of the sizes in manifest.csv" if there.by_size else ""
            print(
                f"{root}: all {len(names):,} images are there{sizes}; nothing to fetch", flush=True
            )
            return Fetched(wanted=len(names), had=len(names), by_size=there.by_size)
        search = Search(folder, str(archive), names, there)
        search.run()
        return _conclude(folder, names, there, search)


def _conclude(
    folder: ImageFolder, names: Sequence[str], there: Inventory, search: Search
) -> Fetched:
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
    before = Fetched(wanted=len(names), had=had, by_size=there.by_size)
    return replace(
        before,
        extracted=len(search.found) - had,
        refused=tuple(search.refused),
        repeated=search.repeated,
        missing=missing,
        damaged=damaged,
    )


def _damage(folder: ImageFolder, search: Search, names: Sequence[str]) -> dict[str, str]:
    """Those of the new images that cannot be opened → why, and what to do."""
    damaged = find_damage(folder, names, "opening what was extracted")
    for name in damaged:
        if folder.unchanged(name, search.found[name]):
            damaged[name] += f" It is damaged in {search.name}; give another archive for it."
    return damaged


def _few(label: str, lines: Sequence[str], most: int = 20) -> list[str]:
    """The first of the lines, which cannot move the cursor, then a count."""
    plain = ["".join(sign if sign.isprintable() else "�" for sign in line) for line in lines[:most]]
    shown = [f"{label}: {line}" for line in plain]
    if len(lines) > most:
        shown.append(f"{label}: and {len(lines) - most:,} more")
    return shown
