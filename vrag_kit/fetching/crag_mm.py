"""Fetch CRAG-MM's rows, from the hub or from a manual download, and the images that the rows
name by URL.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from vrag_kit.benchmarks.crag_mm_images import all_sessions, cached_image_name, image_url
from vrag_kit.benchmarks.crag_mm_index import SPLITS
from vrag_kit.benchmarks.crag_mm_marks import MARKS, read_diagnostic, write_annotations
from vrag_kit.benchmarks.crag_mm_rows import MULTI, SINGLE, find_split, list_split
from vrag_kit.errors import VragError
from vrag_kit.fetching.archives import DAMAGED, iter_members, write_atomically
from vrag_kit.fetching.by_address import AGENT, download_images
from vrag_kit.fetching.fetching import FetchReport
from vrag_kit.fetching.filling import catch_write_errors
from vrag_kit.fetching.hub import download_from_hub
from vrag_kit.fetching.search import open_archive
from vrag_kit.log import logger

PAGE = "https://huggingface.co/crag-mm-2025"
"""The authors' page with rows and indexes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CragMMSources:
    """Sources of CRAG-MM's parts: hub names, or files that were downloaded manually; "" for
    none.
    """

    single: str = SINGLE
    multi: str = MULTI
    diagnostic: str = ""


def fetch_all(
    sources: CragMMSources,
    to: Path,
    *,
    split: str = "",
    agent: str = "",
    allow_private: bool = False,
) -> FetchReport:
    """Fetch the rows of both data sets, then their images; returns a report on the images.

    Rows go to `to`/single-turn and `to`/multi-turn, both splits unless `split` names one, and
    images to `to`/images. Raises `VragError` for an unreadable source, and for unusable rows.
    """
    splits = (split,) if split else SPLITS
    wanted: list[list[Path]] = []
    for source, folder in ((sources.single, "single-turn"), (sources.multi, "multi-turn")):
        if source:
            found = fetch_rows(source, to / folder, splits)
            count = sum(len(shards) for shards in found)
            logger.info(f"rows: {count} shards in {to / folder}")
            wanted += found
    if sources.diagnostic:
        rows = to / "single-turn"
        count = fetch_diagnostic(sources.diagnostic, rows)
        logger.info(f"marks of {count:,} questions in {rows / MARKS}")
    return fetch_crag_mm_images(
        wanted, to / "images", agent=agent or AGENT, allow_private=allow_private
    )


def fetch_rows(source: str, to: Path, splits: Sequence[str]) -> list[list[Path]]:
    """Fetch the shards of `splits` to `to`/data; returns them by split.

    `source` is a hub name ("<owner>/<name>@<revision>"), a folder, or an archive (.zip,
    .tar.gz, .tar). Existing shards are not fetched again from the hub or a folder. Raises
    `VragError` for an unreadable source, and for missing shards.
    """
    place = Path(source).expanduser()
    if place.is_dir():
        for split in splits:
            _copy(list_split(place, split), to / "data")
    elif place.is_file() or source.startswith(("http://", "https://")):
        _unpack(source, to / "data", splits)
    else:
        patterns = [f"data/{split}-*.parquet" for split in splits]
        download_from_hub(source, to, patterns)
    return [find_split(to, split) for split in splits]


def fetch_crag_mm_images(
    splits: Iterable[Sequence[Path]],
    images: Path,
    *,
    agent: str = AGENT,
    allow_private: bool = False,
) -> FetchReport:
    """Fetch the images that rows name by URL to `images`/url, as `download_images` does.

    Each of `splits` is a list of shards; images stored in rows are written to `images`/rows.
    Raises `VragError` for unusable rows, and for an unwritable folder.
    """
    addresses = {}
    for shards in splits:
        for each in all_sessions(shards, images):
            if url := image_url(each.session):
                addresses[cached_image_name(url)] = url
    return download_images(addresses, images, agent=agent, allow_private=allow_private)


def fetch_diagnostic(source: str, rows: Path) -> int:
    """Write the annotations of `DIAGNOSTIC`, from the hub or a folder, into `rows`; returns
    their number.
    """
    folder = Path(source).expanduser()
    if not folder.is_dir():
        folder = rows / "diagnostic"
        download_from_hub(source, folder, ["data/test-*.parquet", "test-*.parquet"])
    marks = read_diagnostic(folder)
    write_annotations(rows / MARKS, marks)
    return len(marks)


def _copy(shards: Sequence[Path], to: Path) -> None:
    with catch_write_errors(to):
        to.mkdir(parents=True, exist_ok=True)
    for shard in shards:
        target = to / shard.name
        if target.is_file() and target.stat().st_size == shard.stat().st_size:
            continue
        part = target.with_name(f".{target.name}.part")
        with catch_write_errors(target):
            shutil.copyfile(shard, part)
            part.replace(target)


def _unpack(source: str, to: Path, splits: Sequence[str]) -> None:
    """The shards of an archive, whatever folders it has."""
    with catch_write_errors(to):
        to.mkdir(parents=True, exist_ok=True)
    seen: dict[str, str] = {}
    with open_archive(source) as file:
        try:
            for member in iter_members(file, PAGE):
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
                write_atomically(to / path.name, member.pieces())
        except DAMAGED as error:
            raise VragError(
                f"{file.name}: cut off or damaged ({error}). Download the archive again."
            ) from error
