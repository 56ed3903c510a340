"""Parquet shards of a data set, in a folder or on the hub: find, order and read them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.types import Json

_SHARD = re.compile(r"(.+)-(\d+)-of-(\d+)\.parquet")


def local_folder(rows: Path | str, what: str, patterns: Sequence[str]) -> Path:
    """Return a folder of rows; for a hub name, fetch the files of `patterns` once to its cache.

    A hub name is "<owner>/<name>@<revision>". Raises `VragError`, with `what` as the
    expected content, for anything else.
    """
    folder = Path(rows).expanduser()
    name = str(rows)
    if folder.is_dir():
        return folder
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise VragError(f"{folder}: no such folder; expected the one with {what}.")
    from huggingface_hub import snapshot_download

    try:
        fetched = snapshot_download(
            name.partition("@")[0],
            repo_type="dataset",
            revision=name.partition("@")[2] or None,
            allow_patterns=list(patterns),
        )
    except (OSError, ValueError) as error:
        raise VragError(
            f"{name!r} is no folder here and no data set that can be fetched from the Hugging Face"
            f" hub: {str(error).strip().splitlines()[0]} Check name and network, or give a folder"
            " of shards."
        ) from error
    return Path(fetched)


def by_number(shards: Iterable[Path]) -> list[Path]:
    """Sort shards by the numbers in their names, whatever their digits."""
    return sorted(shards, key=_number)


def shards_problem(shards: Sequence[Path]) -> str:
    """Describe which shards are missing or too many by the numbers in their names; "" if they
    are complete or have no numbers.
    """
    counts = {_number(path)[1] for path in shards}
    numbers = [_number(path)[0] for path in shards]
    if 0 in counts:
        return ""
    told = max(counts)
    expected = f"{len(shards)} shards of {told}"
    if missing := [number for number in range(told) if number not in numbers]:
        more = " and others are" if missing[1:] else " is"
        return f"{expected}; number {missing[0]}{more} missing. Fetch the data set again."
    if len(shards) > told or len(counts) > 1:
        return f"{expected}; remove those that belong to another data set, or an older one."
    return ""


def read_shard(path: Path, columns: Sequence[str], what: str) -> Iterator[tuple[str, Json]]:
    """Yield (where, unparsed row) for every row, with all columns and a few rows in memory.

    `what` names the data set in messages. Raises `VragError` for a truncated or damaged file,
    and if one of `columns` is missing.
    """
    import pyarrow as pa  # heavy
    import pyarrow.parquet as pq

    number = 0
    try:
        with pq.ParquetFile(path) as shard:
            if lacking := [name for name in columns if name not in shard.schema_arrow.names]:
                raise VragError(
                    f"{path}: no column {lacking[0]!r}; found"
                    f" {', '.join(shard.schema_arrow.names)}. Is this {what}?"
                )
            for batch in shard.iter_batches(batch_size=4):
                for row in batch.to_pylist():
                    yield f"{path.name} row {number}", row
                    number += 1
    except (pa.ArrowException, OSError) as error:
        size = path.stat().st_size if path.exists() else 0
        raise VragError(
            f"{path}: cannot be read behind row {number}: {str(error).splitlines()[0]} The file"
            f" has {size:,} bytes and is cut short or damaged. Fetch it again;"
            " `vrag check` lists all that is wrong."
        ) from error


def _number(path: Path) -> tuple[int, int, str]:
    """(number of a shard, how many its name tells of, name); 0, 0 without numbers."""
    match = _SHARD.fullmatch(path.name)
    return (int(match[2]), int(match[3]), path.name) if match else (0, 0, path.name)
