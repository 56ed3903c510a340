"""CRAG-MM's rows from the hub, or as they were downloaded by hand, and the pictures that
its rows name by address.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from vrag_kit.benchmarks.crag_mm_images import all_sessions, picture_url, url_file
from vrag_kit.benchmarks.crag_mm_index import SPLITS
from vrag_kit.benchmarks.crag_mm_marks import MARKS, read_diagnostic, write_marks
from vrag_kit.benchmarks.crag_mm_rows import MULTI, SINGLE, find_split, list_split
from vrag_kit.errors import VragError
from vrag_kit.fetching.by_address import AGENT, fetch_by_address
from vrag_kit.fetching.fetching import Fetched
from vrag_kit.fetching.filling import writing
from vrag_kit.fetching.hub import from_hub
from vrag_kit.fetching.search import open_archive
from vrag_kit.fetching.unpacking import DAMAGED, members, put

PAGE = "https://huggingface.co/crag-mm-2025"
"""Where the authors offer rows and indexes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where the parts of CRAG-MM come from: names on the hub, or what was downloaded by
    hand; "" for none.
    """

    single: str = SINGLE
    multi: str = MULTI
    diagnostic: str = ""


def fetch_all(
    sources: Sources, to: Path, *, split: str = "", agent: str = "", allow_private: bool = False
) -> Fetched:
    """Fetch the rows to `to`/single-turn and `to`/multi-turn, both splits unless one is
    named, then the pictures to `to`/images; what was found of these.

    Raises `VragError` for a source that cannot be read, and rows that cannot be used.
    """
    splits = (split,) if split else SPLITS
    wanted: list[list[Path]] = []
    for source, folder in ((sources.single, "single-turn"), (sources.multi, "multi-turn")):
        if source:
            found = fetch_rows(source, to / folder, splits)
            count = sum(len(shards) for shards in found)
            print(f"rows: {count} shards in {to / folder}", flush=True)
            wanted += found
    if sources.diagnostic:
        rows = to / "single-turn"
        count = fetch_diagnostic(sources.diagnostic, rows)
        print(f"marks of {count:,} questions in {rows / MARKS}", flush=True)
    return fetch_pictures(wanted, to / "images", agent=agent or AGENT, allow_private=allow_private)


def fetch_rows(source: str, to: Path, splits: Sequence[str]) -> list[list[Path]]:
    """The shards of each of these splits in `to`/data, from the hub
    ("<owner>/<name>@<revision>"), a folder, or an archive (.zip, .tar.gz, .tar) that were
    downloaded by hand; those that are there already stay.

    Raises `VragError` for a source that cannot be read, and for shards that are missing.
    """
    place = Path(source).expanduser()
    if place.is_dir():
        for split in splits:
            _copy(list_split(place, split), to / "data")
    elif place.is_file() or source.startswith(("http://", "https://")):
        _unpack(source, to / "data", splits)
    else:
        patterns = [f"data/{split}-*.parquet" for split in splits]
        from_hub(source, to, patterns)
    return [find_split(to, split) for split in splits]


def fetch_pictures(
    splits: Iterable[Sequence[Path]],
    images: Path,
    *,
    agent: str = AGENT,
    allow_private: bool = False,
) -> Fetched:
    """Fetch the pictures that the rows of these splits, each its shards, name by address
    to `images`/url, as `fetch_by_address` does; those that lie in rows go to
    `images`/rows.

    Raises `VragError` for rows that cannot be used, and a folder that cannot be written.
    """
    addresses = {}
    for shards in splits:
        for each in all_sessions(shards, images):
            if url := picture_url(each.session):
                addresses[url_file(url)] = url
    return fetch_by_address(addresses, images, agent=agent, allow_private=allow_private)


def fetch_diagnostic(source: str, rows: Path) -> int:
    """Write the marks of `DIAGNOSTIC`, from the hub or a folder, beside the rows; how
    many there are.
    """
    folder = Path(source).expanduser()
    if not folder.is_dir():
        folder = rows / "diagnostic"
        from_hub(source, folder, ["data/test-*.parquet", "test-*.parquet"])
    marks = read_diagnostic(folder)
    write_marks(rows / MARKS, marks)
    return len(marks)


def _copy(shards: Sequence[Path], to: Path) -> None:
    with writing(to):
        to.mkdir(parents=True, exist_ok=True)
    for shard in shards:
        target = to / shard.name
        if target.is_file() and target.stat().st_size == shard.stat().st_size:
            continue
        part = target.with_name(f".{target.name}.part")
        with writing(target):
            shutil.copyfile(shard, part)
            part.replace(target)


def _unpack(source: str, to: Path, splits: Sequence[str]) -> None:
    """The shards of an archive, whatever folders it has."""
    with writing(to):
        to.mkdir(parents=True, exist_ok=True)
    seen: dict[str, str] = {}
    with open_archive(source) as file:
        try:
            for member in members(file, PAGE):
                path = PurePosixPath(member.name)
                wanted = any(path.match(f"{split}-*.parquet") for split in splits)
                if not wanted:
                    continue
                before = seen.setdefault(path.name, member.name)
                if before != member.name:
                    raise VragError(
                        f"{file.name}: holds both {before} and {member.name}; expected the shards"
                        " of one data set. Unpack it, and give the folder of one."
                    )
                put(to / path.name, member.pieces())
        except DAMAGED as error:
            raise VragError(
                f"{file.name}: cut off or damaged ({error}). Download the archive again."
            ) from error
